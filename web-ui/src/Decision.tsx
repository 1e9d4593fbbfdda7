// One routing decision and what decided.
import { React, useState } from "./sdk";
import type { Element, Node } from "./sdk";
import type { RouteAnswer, SignalShape } from "./types";
import { Panel, Pill, Text } from "./ui";
import type { Tone } from "./ui";

const OUTCOMES: Record<string, string> = {
  A: "named by the person: starts as asked",
  B: "not for Matrix Coder: an ordinary turn",
  C: "small coding work: handled directly, with a tip",
  D: "coding work: a specialist comes in for this turn",
  skip: "not a person's message: left alone",
};

export function outcomeMeaning(outcome: string): string {
  return OUTCOMES[outcome] ?? "";
}

export function outcomeTone(verdict: string): Tone {
  return verdict === "matrix" ? "ok" : verdict === "direct" ? "info" : "plain";
}

export function Decision({ answer, message }: { answer: RouteAnswer; message: string }): Element {
  const tone = outcomeTone(answer.verdict);
  const options = Object.entries(answer.options);
  return (
    <>
      <Panel title="Decision" extra={<Pill tone={tone}>{answer.outcome}</Pill>}>
        <p className="mc-goal-big">
          {answer.route ? <Text>{answer.route}</Text> : "no route"}
          <span className="mc-dim"> {outcomeMeaning(answer.outcome)}</span>
        </p>
        {answer.asks && (
          <p className="mc-question">
            <Text>{answer.answer}</Text>
          </p>
        )}
        <dl className="mc-facts">
          {answer.score !== null && <Item name="score" value={`${answer.score} (above 0 is coding)`} />}
          {answer.runner_up && <Item name="second best role" value={answer.runner_up} />}
          {options.map(([name, value]) => (
            <Item key={name} name={name} value={Array.isArray(value) ? value.join(", ") : String(value)} />
          ))}
          {answer.masked.length > 0 && <Item name="set apart" value={answer.masked.join(", ")} />}
        </dl>
        <p className="mc-message">{marked(message.trim(), answer.signals)}</p>
      </Panel>
      <Panel title="What decided">
        {answer.signals.length === 0 ? (
          <p className="mc-note">No signal fired.</p>
        ) : (
          <Signals signals={answer.signals} />
        )}
      </Panel>
    </>
  );
}

function Item({ name, value }: { name: string; value: string }): Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Text>{value}</Text>
      </dd>
    </div>
  );
}

// The message with the places that signals name. Spans count Unicode characters, so the text is cut by those.
export function marked(message: string, signals: SignalShape[]): Node[] {
  const letters = [...message];
  const votes = new Map<number, number>();
  for (const { span, weight } of signals) {
    for (let i = span[0]; i < Math.min(span[1], letters.length); i++) votes.set(i, (votes.get(i) ?? 0) + weight);
  }
  const parts: { text: string; sign: number }[] = [];
  letters.slice(0, 4000).forEach((letter, i) => {
    const vote = votes.get(i);
    const sign = vote === undefined ? 0 : vote >= 0 ? 1 : -1;
    const last = parts[parts.length - 1];
    if (last && last.sign === sign) last.text += letter;
    else parts.push({ text: letter, sign });
  });
  return parts.map((part, i) =>
    part.sign === 0 ? (
      <Text key={i}>{part.text}</Text>
    ) : (
      <mark key={i} className={part.sign > 0 ? "mc-for" : "mc-against"}>
        <Text>{part.text}</Text>
      </mark>
    ),
  );
}

const SHOWN_SIGNALS = 10;

export function Signals({ signals }: { signals: SignalShape[] }): Element {
  const [all, setAll] = useState(false);
  const most = Math.max(0.001, ...signals.map((s) => Math.abs(s.weight)));
  const shown = all ? signals : signals.slice(0, SHOWN_SIGNALS);
  return (
    <>
    <div className="mc-scroll" tabIndex={0} role="region" aria-label="Signals">
      <table className="mc-table">
        <thead>
          <tr>
            <th scope="col">Signal</th>
            <th scope="col">Rule</th>
            <th scope="col">Votes for</th>
            <th scope="col">Weight</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((signal, i) => (
            <tr key={i}>
              <th scope="row">
                <code>
                  <Text>{signal.text.slice(0, 200)}</Text>
                </code>
              </th>
              <td>{signal.rule}</td>
              <td>{signal.vote}</td>
              <td>
                <span className="mc-weight">
                  <span className="mc-weight-number">{signal.weight.toFixed(3)}</span>
                  <span
                    className={signal.weight >= 0 ? "mc-weight-bar mc-for" : "mc-weight-bar mc-against"}
                    style={{ width: `${(Math.abs(signal.weight) / most) * 5}rem` }}
                    aria-hidden="true"
                  />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
    {signals.length > SHOWN_SIGNALS && (
      <button type="button" className="mc-link" aria-expanded={all} onClick={() => setAll(!all)}>
        {all ? "Show the strongest" : `Show all ${signals.length} signals`}
      </button>
    )}
    </>
  );
}
