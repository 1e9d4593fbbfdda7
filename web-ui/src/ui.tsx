// The small parts that every view is made of.
import { duration } from "./format";
import { React, useEffect, useId, useRef, useState } from "./sdk";
import type { Element, Node } from "./sdk";
import type { Problem } from "./types";

// Characters that are drawn as nothing or turn the text around them: shown as what they are.
const HIDDEN =
  // eslint-disable-next-line no-control-regex
  /([\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}])/u;

// Text that a model, a file or a person wrote. It is never taken for markup.
export function Text({ children }: { children: string }): Element {
  if (!HIDDEN.test(children)) return <bdi>{children}</bdi>;
  const parts = children.split(HIDDEN);
  return (
    <bdi>
      {parts.map((part, i) =>
        i % 2 === 0 ? (
          part
        ) : (
          <span key={i} className="mc-hidden-char">
            {`U+${(part.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`}
          </span>
        ),
      )}
    </bdi>
  );
}

export type Tone = "ok" | "bad" | "warn" | "info" | "plain" | "claim";

const TONES: Record<string, Tone> = {
  verified: "ok",
  unverified: "warn",
  cap_reached: "warn",
  stalled: "warn",
  blocked: "info",
  budget: "warn",
  tampered: "bad",
  cancelled: "plain",
  failed: "bad",
  live: "info",
  running: "info",
  queued: "plain",
  paused: "warn",
  done: "plain",
  PASS: "ok",
  FAIL: "bad",
  BLOCKED: "info",
  UNVERIFIABLE: "warn",
  BLOCKER: "bad",
  HIGH: "bad",
  MED: "warn",
  LOW: "plain",
  NIT: "plain",
};

export function toneOf(word: string): Tone {
  return TONES[word] ?? "plain";
}

export function Pill({ tone, title, children }: { tone: Tone; title?: string; children: Node }): Element {
  return (
    <span className={`mc-pill mc-${tone}`} title={title}>
      {children}
    </span>
  );
}

export function Panel({ title, extra, children }: { title: string; extra?: Node; children: Node }): Element {
  const id = useId();
  return (
    <section className="mc-panel" aria-labelledby={id}>
      <div className="mc-panel-head">
        <h3 id={id}>{title}</h3>
        {extra}
      </div>
      {children}
    </section>
  );
}

export function Loading({ what }: { what: string }): Element {
  return (
    <div className="mc-note" role="status">
      <span className="mc-spinner" aria-hidden="true" />
      Loading {what} …
    </div>
  );
}

export function Trouble({ problem, retry }: { problem: Problem; retry?: () => void }): Element {
  return (
    <div className="mc-trouble" role="alert">
      <p>
        <strong>
          <Text>{problem.message}</Text>
        </strong>
      </p>
      <p>
        <Text>{problem.next}</Text> <span className="mc-dim">({problem.code})</span>
      </p>
      {retry && (
        <button type="button" className="mc-button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

// Long text, folded to a few lines until it is asked for.
export function Long({ text, lines = 4, limit = 360 }: { text: string; lines?: number; limit?: number }): Element {
  const [open, setOpen] = useState(false);
  const long = text.length > limit || text.split("\n").length > lines;
  return (
    <>
      <div className={long && !open ? "mc-long mc-clamped" : "mc-long"} style={{ "--mc-lines": lines } as never}>
        <Text>{text}</Text>
      </div>
      {long && (
        <button type="button" className="mc-link" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`}
        </button>
      )}
    </>
  );
}

export function Output({ text, label }: { text: string; label: string }): Element {
  return (
    <pre className="mc-output" tabIndex={0} role="region" aria-label={label}>
      <Text>{text}</Text>
    </pre>
  );
}

export interface Tab {
  key: string;
  label: Node;
}

// Tabs by the pattern that screen readers know: arrow keys move, one tab is in the tab order.
export function Tabs({ tabs, chosen, choose, label }: {
  tabs: Tab[];
  chosen: string;
  choose: (key: string) => void;
  label: string;
}): Element {
  const list = useRef<HTMLDivElement>(null);
  const at = tabs.findIndex((t) => t.key === chosen);
  function move(event: { key: string; preventDefault(): void }): void {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    if (!next) return;
    choose(next.key);
    list.current?.querySelector<HTMLElement>(`[data-key="${next.key}"]`)?.focus();
  }
  return (
    <div className="mc-tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
      {tabs.map((tab) => (
        <button
          key={tab.key}
          type="button"
          role="tab"
          id={`mc-tab-${tab.key}`}
          data-key={tab.key}
          aria-selected={tab.key === chosen}
          aria-controls={`mc-tabpanel-${tab.key}`}
          tabIndex={tab.key === chosen ? 0 : -1}
          onClick={() => choose(tab.key)}
        >
          {tab.label}
        </button>
      ))}
    </div>
  );
}

export function TabPanel({ name, children }: { name: string; children: Node }): Element {
  return (
    <div role="tabpanel" id={`mc-tabpanel-${name}`} aria-labelledby={`mc-tab-${name}`} className="mc-tabpanel">
      {children}
    </div>
  );
}

// Seconds since the epoch by the server's clock, renewed every `every` ms.
export function useNow(server: number | null, every: number): number {
  const offset = useRef(0);
  const last = useRef<number | null>(null);
  if (server !== null && server !== last.current) {
    last.current = server;
    offset.current = server - Date.now() / 1000;
  }
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), every);
    return () => clearInterval(timer);
  }, [every]);
  return Date.now() / 1000 + offset.current;
}

export function Bar({ label, used, limit, calm = false, show }: {
  label: string;
  used: number;
  limit: number;
  calm?: boolean;
  show: (n: number) => string;
}): Element {
  const share = limit > 0 ? Math.min(1, used / limit) : 0;
  const tone: Tone = calm ? "plain" : share >= 1 ? "bad" : share >= 0.8 ? "warn" : "plain";
  return (
    <div className="mc-budget">
      <div className="mc-budget-words">
        <span>{label}</span>
        <span>
          {show(used)} <span className="mc-dim">of {show(limit)}</span>
        </span>
      </div>
      <div
        className={`mc-bar mc-${tone}`}
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={limit}
        aria-valuenow={Math.min(used, limit)}
        aria-valuetext={`${show(used)} of ${show(limit)}`}
      >
        <span style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  );
}

export function seconds(n: number): string {
  return duration(n);
}
