// How a message would be routed, and why (nothing starts); and how those of a chat were.
import { Failed, post } from "./api";
import { Decided } from "./Decided";
import { Decision } from "./Decision";
import { React, useState } from "./sdk";
import type { Element } from "./sdk";
import type { Problem, RouteAnswer } from "./types";
import { Trouble } from "./ui";

const EXAMPLES = [
  "review the auth endpoint",
  "fix README typo",
  "matrix ralph cap=3: make the tests pass",
  "plan a weekend trip to the mountains",
];

export function Routing(): Element {
  const [text, setText] = useState("");
  const [asked, setAsked] = useState("");
  const [answer, setAnswer] = useState<RouteAnswer | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);

  async function ask(message: string): Promise<void> {
    setText(message);
    if (!message.trim()) return;
    try {
      const told = await post<RouteAnswer>("/route", { text: message });
      setAnswer(told);
      setAsked(message);
      setProblem(null);
    } catch (error) {
      if (error instanceof Failed) setProblem(error.problem);
    }
  }

  function submit(event: { preventDefault(): void }): void {
    event.preventDefault();
    void ask(text);
  }

  return (
    <div className="mc-view">
      <form onSubmit={submit} className="mc-ask">
        <label htmlFor="mc-message">A message, as you would send it in a chat. Nothing starts here.</label>
        <textarea
          id="mc-message"
          rows={4}
          value={text}
          maxLength={100_000}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event)}
        />
        <div className="mc-actions">
          <button type="submit" className="mc-button mc-main" disabled={!text.trim()}>
            Show its route
          </button>
          {EXAMPLES.map((example) => (
            <button key={example} type="button" className="mc-chip" onClick={() => void ask(example)}>
              {example}
            </button>
          ))}
        </div>
      </form>
      {problem && <Trouble problem={problem} />}
      <div aria-live="polite" className="mc-view">{answer && <Decision answer={answer} message={asked} />}</div>
      <Decided />
    </div>
  );
}
