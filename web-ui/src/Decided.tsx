// The last decisions of a chat session, as the chat kept them.
import { useResource } from "./api";
import { marked, outcomeMeaning, outcomeTone, Signals } from "./Decision";
import { age, moment } from "./format";
import { React, useId, useState } from "./sdk";
import type { Element } from "./sdk";
import type { DecidedSession, DecisionsAnswer, KeptDecision } from "./types";
import { Loading, Panel, Pill, Text, Trouble, useNow } from "./ui";

export function Decided(): Element {
  const [session, setSession] = useState("");
  const found = useResource<DecisionsAnswer>(`/decisions${session ? `?session=${encodeURIComponent(session)}` : ""}`);
  const now = useNow(found.data?.now ?? null, 10_000);
  const again = (
    <button type="button" className="mc-button" onClick={found.reload}>
      Show the newest
    </button>
  );
  return (
    <Panel title="Last decisions of a chat" extra={again}>
      {found.problem && <Trouble problem={found.problem} retry={found.reload} />}
      {!found.data && !found.problem && <Loading what="the decisions" />}
      {found.data && <Kept answer={found.data} choose={setSession} now={now} />}
    </Panel>
  );
}

function Kept({ answer, choose, now }: {
  answer: DecisionsAnswer;
  choose: (session: string) => void;
  now: number;
}): Element {
  const { sessions, decisions, session_id, remembers } = answer;
  if (!remembers) {
    return (
      <p className="mc-note">
        None is kept: <code>routing.remember</code> is <code>false</code>.
      </p>
    );
  }
  if (sessions.length === 0) return <p className="mc-note">No chat has routed a message yet.</p>;
  return (
    <>
      <label className="mc-field">
        Chat session
        <select value={session_id} onChange={(event) => choose(event.target.value)}>
          {sessions.map((one) => (
            <option key={one.session_id} value={one.session_id}>
              {nameOf(one, now)}
            </option>
          ))}
        </select>
      </label>
      {decisions.length === 0 && <p className="mc-note">No decision of this session is kept any more.</p>}
      <ol className="mc-decisions" aria-label="Decisions, newest first">
        {decisions.map((one, i) => (
          <One key={`${one.at}-${decisions.length - i}`} kept={one} now={now} />
        ))}
      </ol>
    </>
  );
}

// An option holds plain text only: characters that turn the text around are left out of it.
function nameOf(one: DecidedSession, now: number): string {
  const plain = (text: string): string => text.replace(/[\p{Cc}\p{Cf}]/gu, "�");
  return `${plain(one.session_id)}, ${age(one.at, now)}: ${plain(one.message).slice(0, 60)}`;
}

function One({ kept, now }: { kept: KeptDecision; now: number }): Element {
  const [open, setOpen] = useState(false);
  const id = useId();
  const { decision, message } = kept;
  return (
    <li>
      <button
        type="button"
        className="mc-decision-head"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
      >
        <span className="mc-caret" aria-hidden="true" />
        <Pill tone={outcomeTone(decision.verdict)}>{decision.outcome}</Pill>
        <span className="mc-decision-message">
          <Text>{message || "(empty)"}</Text>
          {kept.cut && <span className="mc-dim"> …</span>}
        </span>
        <span className="mc-decision-route">
          {decision.route ? <Text>{decision.route}</Text> : <span className="mc-dim">no route</span>}
        </span>
        <span className="mc-dim" title={moment(kept.at)}>
          {age(kept.at, now)}
        </span>
      </button>
      <div id={id} hidden={!open} className="mc-decision-body">
        {open && (
          <>
            <p className="mc-dim">{outcomeMeaning(decision.outcome)}</p>
            <p className="mc-message">{marked(message, decision.signals)}</p>
            {kept.cut && <p className="mc-note">Only the beginning of the message is kept.</p>}
            {decision.signals.length === 0 ? (
              <p className="mc-note">No signal fired.</p>
            ) : (
              <Signals signals={decision.signals} />
            )}
          </>
        )}
      </div>
    </li>
  );
}
