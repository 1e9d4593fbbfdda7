// One run: what it was asked, what is proved, what it cost, what it did, and how to stop it.
import { useResource } from "./api";
import { Proof } from "./Checks";
import { Commands } from "./Commands";
import { DiffView } from "./DiffView";
import { Events, KEPT_EVENTS } from "./Events";
import { useEvents } from "./follow";
import { age, cost, count, dollars, duration, moment, outcomeWord, tokens, usedTokens } from "./format";
import { Link, LinkDot } from "./Link";
import { NO_CHANGE, stateOf } from "./RunList";
import { React, useRef, useState } from "./sdk";
import type { Element } from "./sdk";
import { Timeline } from "./Timeline";
import type { Budget, ReportText, RunDetail, RunEvent, RunSummary } from "./types";
import { Bar, Loading, Long, Output, Panel, Pill, TabPanel, Tabs, Text, Trouble, toneOf, useNow } from "./ui";
import { goTo } from "./where";

const GATHER_MS = 120;

interface Seen {
  events: RunEvent[];
  left: number;
}

export function RunView({ id, tab }: { id: string; tab: string }): Element {
  const path = `/runs/${encodeURIComponent(id)}`;
  const found = useResource<RunDetail>(path);
  const [seen, setSeen] = useState<Seen>({ events: [], left: 0 });
  const due = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const known = useRef(0);
  if (found.data) known.current = found.data.last_event;
  const link = useEvents(`${path}/events`, found.data ? 0 : null, (events) => {
    setSeen((old) => {
      const all = [...old.events, ...events];
      const over = Math.max(0, all.length - KEPT_EVENTS);
      return { events: all.slice(over), left: old.left + over };
    });
    if (events.some((e) => e.id > known.current && !NO_CHANGE.has(e.kind))) {
      clearTimeout(due.current);
      due.current = setTimeout(found.reload, GATHER_MS);
    }
  });
  const live = found.data !== null && found.data.run.outcome === null;
  const now = useNow(found.data?.now ?? null, live ? 1000 : 30_000);
  const detail = found.data;
  return (
    <div className="mc-view">
      <nav aria-label="Back">
        <Link to={{ view: "runs" }} className="mc-link">
          ← All runs
        </Link>
      </nav>
      {found.problem && <Trouble problem={found.problem} retry={found.reload} />}
      {!detail && !found.problem && <Loading what="the run" />}
      {detail && (
        <>
          <Head detail={detail} now={now} link={link} reload={found.reload} />
          <div className="mc-two">
            <Panel title="Verified by the engine's own checks">
              <Proof before={detail.baseline} after={detail.evidence} />
            </Panel>
            <Panel title="Budgets">
              <Budgets budgets={detail.budgets} outcome={detail.run.outcome} />
              <Cost run={detail.run} />
            </Panel>
          </div>
          <Tabs
            label={`Parts of ${detail.run.run_id}`}
            chosen={tab}
            choose={(key) => goTo({ view: "run", id, tab: key })}
            tabs={[
              { key: "steps", label: `Steps ${detail.steps.length}` },
              { key: "diff", label: detail.changed_count ? `Diff ${detail.changed_count}` : "Diff" },
              { key: "events", label: `Events ${seen.events.length + seen.left}` },
              { key: "report", label: "Report" },
            ]}
          />
          <TabPanel name={tab}>
            {tab === "steps" && (
              <Timeline run={id} steps={detail.steps} now={live ? now : 0} cap={detail.run.cap} />
            )}
            {tab === "diff" && <RunDiff detail={detail} path={path} />}
            {tab === "events" && <Events events={seen.events} left={seen.left} link={link} />}
            {tab === "report" && <Report path={path} ready={detail.has_report} />}
          </TabPanel>
        </>
      )}
    </div>
  );
}

function Head({ detail, now, link, reload }: {
  detail: RunDetail;
  now: number;
  link: "connecting" | "live" | "waiting";
  reload: () => void;
}): Element {
  const { run } = detail;
  const state = stateOf(run);
  const begun = run.started_at || run.created_at;
  return (
    <header className="mc-head">
      <div className="mc-head-top">
        <h2>
          {run.run_id} <Text>{run.workflow}</Text>
        </h2>
        <span role="status">
          <Pill tone={toneOf(state)}>{outcomeWord(state)}</Pill>
        </span>
        <span className="mc-dim">
          iteration {run.iteration} of {run.cap}
        </span>
        {!run.outcome && <LinkDot state={link} />}
      </div>
      <div className="mc-goal-big">
        <Long text={run.goal} />
      </div>
      {run.reason && (
        <div className="mc-why">
          <Long text={run.reason} />
        </div>
      )}
      {detail.question && (
        <div className="mc-question">
          <strong>It asks you:</strong> <Long text={detail.question} />
        </div>
      )}
      <dl className="mc-facts">
        <Fact name="workspace" value={run.workspace} />
        {run.origin && <Fact name="for the repository" value={run.origin} />}
        {run.domain && <Fact name="domain" value={run.domain} />}
        <Fact name="started" value={age(begun, now)} title={moment(begun)} />
        <Fact name={run.ended_at ? "took" : "runs for"} value={duration((run.ended_at || now) - begun)} />
        {run.session_id && <Fact name="chat" value={run.session_id} />}
      </dl>
      <Commands run={run.run_id} ended={run.outcome !== null} offers={detail.commands} done={reload} />
    </header>
  );
}

function Fact({ name, value, title }: { name: string; value: string; title?: string }): Element {
  return (
    <div title={title}>
      <dt>{name}</dt>
      <dd>
        <Text>{value}</Text>
      </dd>
    </div>
  );
}

const SHOW: Record<Budget["name"], (n: number) => string> = {
  iterations: (n) => String(n),
  tokens,
  seconds: duration,
  money: dollars,
};
const LABELS: Record<Budget["name"], string> = {
  iterations: "Iterations",
  tokens: "Tokens",
  seconds: "Time of work",
  money: "Money",
};

// All iterations used is no trouble by itself: the last one may have done it.
function Budgets({ budgets, outcome }: { budgets: Budget[]; outcome: string | null }): Element {
  const calm = (b: Budget): boolean => b.name === "iterations" && outcome !== "cap_reached";
  return (
    <>
      {budgets.map((b) => (
        <Bar key={b.name} label={LABELS[b.name]} used={b.used} limit={b.limit} calm={calm(b)} show={SHOW[b.name]} />
      ))}
    </>
  );
}

// All that the run cost, and what of it nobody can tell.
function Cost({ run }: { run: RunSummary }): Element | null {
  const money = cost(run);
  if (!money) return null;
  return (
    <p className="mc-cost">
      <span>{run.outcome ? "Cost" : "Cost so far"}</span> <strong>{money}</strong>
      {run.unpriced_tokens > 0 && (
        <span className="mc-dim">
          {count(run.unpriced_tokens, "token")} of {usedTokens(run).toLocaleString("en")} had no price the host knows
          {run.money_usd > 0 && "; the money budget does not count them"}
        </span>
      )}
    </p>
  );
}

function RunDiff({ detail, path }: { detail: RunDetail; path: string }): Element {
  const [asked, setAsked] = useState(0);
  if (!detail.has_diff) return <p className="mc-note">There is no diff: the run has recorded no tree.</p>;
  return (
    <>
      {detail.run.outcome === null && (
        <div className="mc-more">
          <span className="mc-dim">What the run has changed so far.</span>
          <button type="button" className="mc-button" onClick={() => setAsked(asked + 1)}>
            Show the newest
          </button>
        </div>
      )}
      <DiffView key={asked} path={`${path}/diff`} label="the diff" />
    </>
  );
}

function Report({ path, ready }: { path: string; ready: boolean }): Element {
  const found = useResource<ReportText>(ready ? `${path}/report` : null);
  if (!ready) return <p className="mc-note">The report is written when the run ends.</p>;
  if (found.problem) return <Trouble problem={found.problem} retry={found.reload} />;
  if (!found.data) return <Loading what="the report" />;
  return <Output text={found.data.markdown} label="The final report, in Markdown" />;
}
