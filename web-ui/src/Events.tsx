// The events of a run as they happen.
import type { LinkState } from "./follow";
import { clock } from "./format";
import { LinkDot } from "./Link";
import { React, useEffect, useRef } from "./sdk";
import type { Element } from "./sdk";
import type { RunEvent } from "./types";
import { Text } from "./ui";

export const KEPT_EVENTS = 400;

function word(data: Record<string, unknown>, key: string): string {
  const value = data[key];
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function checks(rows: unknown): string {
  if (!Array.isArray(rows)) return "";
  return rows
    .map((row: unknown) => {
      const check = (row ?? {}) as Record<string, unknown>;
      return `${word(check, "command")} ${check["passed"] === true ? "passes" : "fails"} (${word(check, "counts")})`;
    })
    .join(", ");
}

function files(data: Record<string, unknown>): string {
  const names = data["files"];
  if (typeof names === "number") return `${names} files`;
  return Array.isArray(names) ? names.map(String).join(", ") : "";
}

const TEXTS: Record<string, (data: Record<string, unknown>) => string> = {
  queued: () => "waits for the worker",
  baseline: (d) => `starting tree: ${checks(d["checks"]) || "no check found"}`,
  step: (d) => `step ${word(d, "step")} begins: ${word(d, "name")}, iteration ${word(d, "iteration")}`,
  attempt: (d) => `step ${word(d, "step")}: attempt ${word(d, "attempt")}; the one before was cut off`,
  check: (d) => `the engine ran ${checks(d["checks"])}`,
  tool: (d) => `${word(d, "name")} ${word(d, "preview")}${d["refused"] ? ` refused: ${word(d, "refused")}` : ""}`,
  retry: (d) => `trying again in ${word(d, "seconds")} s: ${word(d, "words")}`,
  verdict: (d) => {
    const verified = checks(d["verified"]);
    return `${word(d, "name")} claims ${word(d, "claimed")}: ${word(d, "summary") || "no summary"}${
      verified ? ` | verified: ${verified}` : ""
    }`;
  },
  waiting: (d) => `waits ${word(d, "seconds")} s: ${word(d, "words")}`,
  written: (d) => `step ${word(d, "step")} wrote though it only reads, and is put back: ${files(d)}`,
  unit: (d) => {
    const why = word(d, "why");
    return `unit ${word(d, "unit")} is ${word(d, "state")}${why ? `: ${why}` : ""} ${files(d)}`;
  },
  overlap: (d) => {
    const pairs = Array.isArray(d["pairs"]) ? d["pairs"].map(String).join("; ") : "";
    return `units overlap, ${d["asked_again"] === true ? "the plan is asked for again" : "they become one"}: ${pairs}`;
  },
  tampering: (d) => `${d["certain"] === true ? "the tests were gamed" : "the tests may be gamed"}: ${word(d, "text")}`,
  unpriced: (d) => word(d, "words"),
  paused: (d) => `is paused: ${word(d, "reason")}`,
  reopened: () => "goes on",
  dropped: (d) => `the checkout ${word(d, "path")} is removed for good`,
  "no branch": (d) => `no branch could be made for unit ${word(d, "unit")}: ${word(d, "why")}`,
  undone: (d) => `${files(d)} put back as they were before ${d["step"] ? `step ${word(d, "step")}` : "the run"}`,
  taken: (d) => `${files(d)} brought into the repository`,
  steer: (d) => `a person says: ${word(d, "text")}`,
  answer: (d) => `a person answers: ${word(d, "text")}`,
  raise: (d) => `a person allows more: ${word(d, "text")}`,
  approve: () => "a person approves",
  pause: () => "was asked to wait before its next step",
  cancel: () => "was asked to stop",
  ended: (d) => `ended: ${word(d, "outcome")} ${word(d, "reason")}`,
};

export function eventText(event: RunEvent): string {
  const known = TEXTS[event.kind];
  if (known) return known(event.data);
  return Object.keys(event.data).length > 0 ? JSON.stringify(event.data) : "";
}

export function Events({ events, left, link }: { events: RunEvent[]; left: number; link: LinkState }): Element {
  const box = useRef<HTMLOListElement>(null);
  const stick = useRef(true);
  useEffect(() => {
    if (stick.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [events]);
  function scrolled(): void {
    const el = box.current;
    if (el) stick.current = el.scrollHeight - el.scrollTop - el.clientHeight < 40;
  }
  return (
    <div>
      <div className="mc-diff-bar">
        <span className="mc-dim">{left > 0 ? `the newest ${events.length} of ${events.length + left}` : ""}</span>
        <LinkDot state={link} />
      </div>
      {events.length === 0 && <p className="mc-note">Nothing has happened yet.</p>}
      <ol className="mc-events" ref={box} onScroll={scrolled} tabIndex={0} aria-label="Events, oldest first">
        {events.map((event) => (
          <li key={event.id}>
            <time dateTime={new Date(event.at * 1000).toISOString()}>{clock(event.at)}</time>
            <span className="mc-kind">{event.kind}</span>
            <span className="mc-event-text">
              <Text>{eventText(event).slice(0, 600)}</Text>
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}
