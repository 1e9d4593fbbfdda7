// The commands that the API offers for a run. What can't be taken back is asked once.
import { Failed, post } from "./api";
import { React, useEffect, useId, useRef, useState } from "./sdk";
import type { Element } from "./sdk";
import type { CommandAnswer, CommandArgument, CommandOffer, Problem } from "./types";
import { Text, Trouble } from "./ui";

const GRAVE = new Set(["cancel", "drop"]);

export function Commands({ run, ended, offers, done }: {
  run: string;
  ended: boolean;
  offers: CommandOffer[];
  done: () => void;
}): Element {
  const [asking, setAsking] = useState<CommandOffer | null>(null);
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);

  // What was said to a run at work is no news of one that has ended.
  useEffect(() => {
    if (ended) setSaid("");
  }, [ended]);

  async function give(offer: CommandOffer, values: Record<string, string | number>): Promise<void> {
    setAsking(null);
    setBusy(true);
    setProblem(null);
    try {
      const body = { name: offer.name, arguments: values };
      const answer = await post<CommandAnswer>(`/runs/${encodeURIComponent(run)}/commands`, body);
      setSaid(answer.message);
      done();
    } catch (error) {
      if (error instanceof Failed) setProblem(error.problem);
    } finally {
      setBusy(false);
    }
  }

  function press(offer: CommandOffer): void {
    if (offer.confirm || offer.arguments.length > 0) setAsking(offer);
    else void give(offer, {});
  }

  return (
    <div className="mc-commands">
      <div className="mc-actions">
        {offers.map((offer) => (
          <button
            key={offer.name}
            type="button"
            className={GRAVE.has(offer.name) ? "mc-button mc-danger" : "mc-button"}
            disabled={busy}
            onClick={() => press(offer)}
          >
            {offer.label}
          </button>
        ))}
      </div>
      <p className="mc-said" role="status">
        <Text>{busy ? "Being done …" : said}</Text>
      </p>
      {problem && <Trouble problem={problem} />}
      {asking && <Ask offer={asking} leave={() => setAsking(null)} go={(values) => void give(asking, values)} />}
    </div>
  );
}

function Ask({ offer, leave, go }: {
  offer: CommandOffer;
  leave: () => void;
  go: (values: Record<string, string | number>) => void;
}): Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [values, setValues] = useState<Record<string, string>>(() =>
    Object.fromEntries(offer.arguments.map((a) => [a.name, a.choices[0] ?? ""])),
  );
  const id = useId();
  useEffect(() => {
    dialog.current?.showModal();
    // Enter must not do what can't be taken back; where a text is asked for, it is what to begin with.
    dialog.current?.querySelector<HTMLElement>(offer.confirm ? "[data-back]" : "input, select")?.focus();
  }, [offer]);
  function submit(event: { preventDefault(): void }): void {
    event.preventDefault();
    const filled = offer.arguments.filter((a) => (values[a.name] ?? "").trim() !== "");
    go(Object.fromEntries(filled.map((a) => [a.name, a.kind === "number" ? Number(values[a.name]) : values[a.name] ?? ""])));
  }
  return (
    <dialog ref={dialog} className="mc-dialog" aria-labelledby={id} onClose={leave}>
      <form onSubmit={submit}>
        <h3 id={id}>{offer.label}</h3>
        {offer.confirm && <p>{offer.confirm}</p>}
        {offer.arguments.map((argument) => (
          <label key={argument.name} className="mc-field">
            {argument.label}
            <Value
              argument={argument}
              value={values[argument.name] ?? ""}
              change={(value) => setValues({ ...values, [argument.name]: value })}
            />
          </label>
        ))}
        <div className="mc-actions">
          <button type="button" className="mc-button" data-back="" onClick={() => dialog.current?.close()}>
            Go back
          </button>
          <button type="submit" className={GRAVE.has(offer.name) ? "mc-button mc-danger" : "mc-button mc-main"}>
            {offer.label}
          </button>
        </div>
      </form>
    </dialog>
  );
}

function Value({ argument, value, change }: {
  argument: CommandArgument;
  value: string;
  change: (value: string) => void;
}): Element {
  if (argument.kind === "choice") {
    return (
      <select value={value} required={argument.required} onChange={(event) => change(event.target.value)}>
        {argument.choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    );
  }
  return (
    <input
      type={argument.kind}
      step={argument.kind === "number" ? "any" : undefined}
      min={argument.kind === "number" ? 0 : undefined}
      required={argument.required}
      value={value}
      onChange={(event) => change(event.target.value)}
    />
  );
}
