// All runs, newest first: outcome, workflow, goal, iteration, age, cost.
import { Failed, call, useResource } from "./api";
import { useEvents } from "./follow";
import { age, cost, count, moment, outcomeWord, tokens, usedTokens } from "./format";
import { React, useEffect, useMemo, useRef, useState } from "./sdk";
import type { Element } from "./sdk";
import type { Problem, RunEvent, RunPage, RunSummary } from "./types";
import { Link, LinkDot } from "./Link";
import { Loading, Pill, Text, Trouble, toneOf, useNow } from "./ui";

const PAGE = 50;
const MOST = 200;
const STATES = [
  "live",
  "verified",
  "unverified",
  "cap_reached",
  "stalled",
  "blocked",
  "budget",
  "tampered",
  "cancelled",
  "failed",
];
// What changes nothing that a list or a run's own answer holds, such as a tool call of a specialist.
export const NO_CHANGE = new Set(["tool", "retry", "written", "overlap"]);

function addressOf(state: string, text: string, limit: number, before?: number): string {
  const query = new URLSearchParams({ limit: String(limit) });
  if (state) query.set("state", state);
  if (text) query.set("text", text);
  if (before) query.set("before", String(before));
  return `/runs?${query.toString()}`;
}

export function stateOf(run: RunSummary): string {
  return run.outcome ?? (run.status === "running" ? "live" : run.status);
}

// A value that follows `value` once it has stood still for `ms`.
function useSettled(value: string, ms: number): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

function numberOf(run: RunSummary): number {
  return Number(run.run_id.slice(1));
}

function merged(first: RunSummary[], older: RunSummary[]): RunSummary[] {
  const known = new Set(first.map((r) => r.run_id));
  return [...first, ...older.filter((r) => !known.has(r.run_id))];
}

interface Older {
  key: string;
  runs: RunSummary[];
  next: number | null;
  problem: Problem | null;
}

const NONE: Older = { key: "", runs: [], next: null, problem: null };

export function RunList(): Element {
  const [state, setState] = useState("");
  const [typed, setTyped] = useState("");
  const text = useSettled(typed.trim(), 250);
  const key = addressOf(state, text, PAGE);
  const [older, setOlder] = useState<Older>(NONE);
  const mine = older.key === key ? older : NONE;
  // What is shown is asked for anew as a whole when something happens, up to one large page.
  const asked = Math.min(MOST, PAGE + mine.runs.length);
  const page = useResource<RunPage>(addressOf(state, text, asked));
  const last = useRef<RunPage | null>(null);
  if (page.data) last.current = page.data;
  const shown = page.data ?? (older.key === key ? last.current : null);
  const runs = useMemo(() => merged(shown?.runs ?? [], mine.runs), [shown, mine.runs]);
  const due = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const from = useRef<number | null>(null);
  if (page.data && from.current === null) from.current = page.data.last_event;
  const link = useEvents("/events", from.current, (events: RunEvent[]) => {
    if (events.every((e) => NO_CHANGE.has(e.kind))) return;
    clearTimeout(due.current);
    due.current = setTimeout(page.reload, 150);
  });
  const now = useNow(shown?.now ?? null, 10_000);

  async function more(): Promise<void> {
    const oldest = runs[runs.length - 1];
    if (!oldest) return;
    try {
      const next = await call<RunPage>(addressOf(state, text, PAGE, numberOf(oldest)));
      setOlder({ key, runs: merged(mine.runs.length ? mine.runs : [], next.runs), next: next.next_before, problem: null });
    } catch (error) {
      if (error instanceof Failed) setOlder({ ...mine, key, problem: error.problem });
    }
  }

  const hasMore = runs.length > 0 && (mine.runs.length ? mine.next !== null : (shown?.next_before ?? null) !== null);
  return (
    <div className="mc-view">
      <Filters
        state={state}
        choose={setState}
        typed={typed}
        type={setTyped}
        counts={shown?.counts ?? last.current?.counts ?? {}}
        link={link}
      />
      {page.problem && <Trouble problem={page.problem} retry={page.reload} />}
      {!shown && !page.problem && <Loading what="runs" />}
      {shown && runs.length === 0 && <Empty filtered={Boolean(state || text)} />}
      {runs.length > 0 && (
        <>
          <div className="mc-row mc-row-head" aria-hidden="true">
            <span>Outcome</span>
            <span>Goal</span>
            <span>Iteration</span>
            <span>Started</span>
            <span>Cost</span>
          </div>
          <ul className="mc-list" aria-label="Runs">
            {runs.map((run) => (
              <Row key={run.run_id} run={run} now={now} />
            ))}
          </ul>
          <p className="mc-foot" role="status">
            {count(runs.length, "run")} of {(shown?.total ?? runs.length).toLocaleString("en")} shown
          </p>
          {mine.problem && <Trouble problem={mine.problem} />}
          {hasMore && (
            <button type="button" className="mc-button" onClick={() => void more()}>
              Show older runs
            </button>
          )}
        </>
      )}
    </div>
  );
}

function Filters(props: {
  state: string;
  choose: (state: string) => void;
  typed: string;
  type: (text: string) => void;
  counts: Record<string, number>;
  link: "connecting" | "live" | "waiting";
}): Element {
  const all = Object.values(props.counts).reduce((a, b) => a + b, 0);
  const present = STATES.filter((s) => (props.counts[s] ?? 0) > 0 || s === props.state);
  return (
    <div className="mc-filters">
      <div className="mc-chips" role="group" aria-label="Show runs that are">
        {["", ...present].map((s) => (
          <button
            key={s}
            type="button"
            className="mc-chip"
            aria-pressed={props.state === s}
            onClick={() => props.choose(s)}
          >
            {s ? outcomeWord(s) : "all"} <span className="mc-dim">{s ? (props.counts[s] ?? 0) : all}</span>
          </button>
        ))}
      </div>
      <div className="mc-search">
        <input
          type="search"
          value={props.typed}
          placeholder="Goal, workspace or id"
          aria-label="Search runs by goal, workspace or id"
          onChange={(event) => props.type(event.target.value)}
        />
        <LinkDot state={props.link} />
      </div>
    </div>
  );
}

function Empty({ filtered }: { filtered: boolean }): Element {
  if (filtered) return <p className="mc-note">No run matches. Choose “all” and clear the search to see every run.</p>;
  return (
    <div className="mc-empty">
      <h3>No runs yet</h3>
      <p>Start one in a chat, in the repository that it should work on:</p>
      <code>matrix ralph: make the tests pass</code>
      <p>or in a terminal:</p>
      <code>matrix-coder run ralph "make the tests pass"</code>
    </div>
  );
}

const Row = React.memo(function Row({ run, now }: { run: RunSummary; now: number }): Element {
  const state = stateOf(run);
  const money = cost(run);
  return (
    <li>
      <Link className="mc-row" to={{ view: "run", id: run.run_id, tab: "steps" }}>
        <span className="mc-cell-state">
          <Pill tone={toneOf(state)}>{outcomeWord(state)}</Pill>
          <span className="mc-dim">
            {run.run_id} <Text>{run.workflow}</Text>
          </span>
        </span>
        <span className="mc-cell-goal">
          <span className="mc-goal">
            <Text>{run.goal.slice(0, 400)}</Text>
          </span>
          {run.reason && (
            <span className="mc-reason">
              <Text>{run.reason.slice(0, 300)}</Text>
            </span>
          )}
        </span>
        <span className="mc-cell" data-label="iteration">
          {run.iteration}/{run.cap}
        </span>
        <span className="mc-cell" data-label="started" title={moment(run.created_at)}>
          {age(run.created_at, now)}
        </span>
        <span className="mc-cell mc-cell-cost" title={`${run.input_tokens} tokens in, ${run.output_tokens} out`}>
          {money && <span className={run.cost_usd > 0 ? undefined : "mc-dim"}>{money}</span>}{" "}
          <span className="mc-dim">{tokens(usedTokens(run))} tokens</span>
        </span>
      </Link>
    </li>
  );
});
