// The steps of a run on a time line: who, what was claimed, what was verified, how long, how much.
import { CheckDetail, CheckPill } from "./Checks";
import { DiffView } from "./DiffView";
import { cost, duration, moment, spent, tokens, usedTokens } from "./format";
import { React, useId, useMemo, useState } from "./sdk";
import type { Element } from "./sdk";
import type { ReportShape, StepShape } from "./types";
import { UnitFacts, UnitPill, Units } from "./Units";
import { Long, Pill, Text, toneOf } from "./ui";

interface Span {
  from: number;
  to: number;
}

function spanOf(steps: StepShape[], now: number): Span {
  const starts = steps.map((s) => s.started_at).filter((t) => t > 0);
  const ends = steps.map((s) => s.ended_at || now || s.started_at);
  return { from: Math.min(...starts), to: Math.max(...ends) };
}

function routeOf(step: StepShape, whole: boolean): string {
  if (step.unit) return step.unit.name;
  // What its units are worked on by differs from one to the next.
  if (whole) return step.name;
  return step.role + (step.lens ? `:${step.lens}` : "") + (step.domain ? `@${step.domain}` : "");
}

interface Whole {
  step: StepShape;
  units: StepShape[];
}

interface Turn {
  iteration: number;
  steps: StepShape[];
  wholes: Whole[];
}

// The steps by iteration, each unit below the step that it is a part of.
function turnsOf(steps: StepShape[]): Turn[] {
  const turns = new Map<number, Turn>();
  for (const step of steps) {
    const turn = turns.get(step.iteration) ?? { iteration: step.iteration, steps: [], wholes: [] };
    turns.set(step.iteration, turn);
    turn.steps.push(step);
    const whole = step.unit ? turn.wholes[turn.wholes.length - 1] : undefined;
    if (whole && step.name.startsWith(`${whole.step.name}/`)) whole.units.push(step);
    else turn.wholes.push({ step, units: [] });
  }
  return [...turns.values()];
}

export function Timeline({ run, steps, now, cap }: {
  run: string;
  steps: StepShape[];
  now: number;
  cap: number;
}): Element {
  const turns = useMemo(() => turnsOf(steps), [steps]);
  if (steps.length === 0) {
    return <p className="mc-note">No step has begun: the engine records the starting tree and runs the checks first.</p>;
  }
  const { from, to } = spanOf(steps, now);
  return (
    <div className="mc-timeline">
      {turns.map((turn) => (
        <section key={turn.iteration} aria-label={`Iteration ${turn.iteration}`}>
          <h4 className="mc-iteration">
            <span>
              Iteration {turn.iteration} <span className="mc-dim">of {cap}</span>
            </span>
            <Used of={turn.steps} />
          </h4>
          <ol className="mc-steps">
            {turn.wholes.map(({ step, units }) => (
              <li key={step.number} className="mc-step">
                <Step run={run} step={step} units={units} from={from} to={to} now={step.ended_at ? 0 : now} />
                {units.length > 0 && (
                  <ol className="mc-units" aria-label={`Units of step ${step.number}`}>
                    {units.map((unit) => (
                      <li key={unit.number} className="mc-unit">
                        <Step run={run} step={unit} units={NO_UNITS} from={from} to={to} now={unit.ended_at ? 0 : now} />
                      </li>
                    ))}
                  </ol>
                )}
              </li>
            ))}
          </ol>
        </section>
      ))}
    </div>
  );
}

function Used({ of }: { of: StepShape[] }): Element {
  const used = spent(of);
  const money = cost(used);
  return (
    <span className="mc-dim">
      {tokens(usedTokens(used))} tokens{money && `, ${money}`}
    </span>
  );
}

const NO_UNITS: StepShape[] = [];

const Step = React.memo(function Step({ run, step, units, from, to, now }: {
  run: string;
  step: StepShape;
  units: StepShape[];
  from: number;
  to: number;
  now: number;
}): Element {
  const [open, setOpen] = useState(false);
  const id = useId();
  const live = step.ended_at === 0 && now > 0;
  const took = Math.max(0, (step.ended_at || now || step.started_at) - step.started_at);
  const all = Math.max(1, to - from);
  const left = ((step.started_at - from) / all) * 100;
  const cutOff = step.ended_at === 0 && !live;
  const claimed = cutOff ? "cut off" : step.report?.verdict ?? step.status;
  // Colour is for what was verified; a claim has none to give.
  const proved = step.evidence.length === 0 ? "plain" : step.evidence.every((c) => c.passed) ? "ok" : "bad";
  const used = spent([step, ...units]);
  const money = cost(used);
  return (
    <>
      <button type="button" className="mc-step-head" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        <span className="mc-caret" aria-hidden="true" />
        <span className="mc-step-name">
          <span className="mc-dim">{step.number}.</span> <Text>{routeOf(step, units.length > 0)}</Text>
          {step.unit && (
            <span className="mc-dim">
              {" "}
              <Text>{step.role}</Text>
            </span>
          )}
          {step.unit && <UnitPill unit={step.unit} live={live} />}
          {step.attempt > 1 && <span className="mc-dim"> attempt {step.attempt}</span>}
        </span>
        <span className="mc-step-claim">
          <span className="mc-dim">{live || cutOff ? "is" : "claimed"}</span>{" "}
          <Pill tone={live ? toneOf(claimed) : "claim"}>
            <Text>{claimed}</Text>
          </Pill>
        </span>
        <span className="mc-step-proof">
          {step.evidence.length > 0 && (
            <>
              <span className="mc-dim">verified</span>{" "}
              {step.evidence.map((check) => (
                <CheckPill key={check.index} check={check} />
              ))}
            </>
          )}
        </span>
        <span className="mc-step-cost">
          {duration(took)} <span className="mc-dim">{tokens(usedTokens(used))} tokens</span>
          {money && <span className="mc-money">{money}</span>}
        </span>
        <span className="mc-track" aria-hidden="true">
          <span
            className={live ? "mc-track-live" : `mc-track-${proved}`}
            style={{ left: `${left}%`, width: `${Math.max(0.6, (took / all) * 100)}%` }}
          />
        </span>
      </button>
      {step.report?.summary && !open && (
        <p className="mc-step-summary">
          <Text>{step.report.summary.slice(0, 240)}</Text>
        </p>
      )}
      <div id={id} hidden={!open} className="mc-step-body">
        {open && <StepBody run={run} step={step} />}
      </div>
    </>
  );
});

function StepBody({ run, step }: { run: string; step: StepShape }): Element {
  const [diff, setDiff] = useState(false);
  return (
    <>
      {step.unit && <UnitFacts unit={step.unit} />}
      {step.report ? (
        <Report report={step.report} />
      ) : (
        <p className="mc-note">No report {step.ended_at ? "was handed in." : "yet."}</p>
      )}
      {step.note && !step.unit?.state && (
        <p className="mc-note">
          <Text>{step.note}</Text>
        </p>
      )}
      {step.evidence.length > 0 && (
        <div>
          <h5>Verified by the engine</h5>
          {step.evidence.map((check) => (
            <CheckDetail key={check.index} run={run} step={step.number} check={check} />
          ))}
        </div>
      )}
      <p className="mc-dim mc-facts">
        began {moment(step.started_at)}
        {step.ended_at ? `, ended ${moment(step.ended_at)}` : ""}; {step.input_tokens.toLocaleString("en")} tokens in,{" "}
        {step.output_tokens.toLocaleString("en")} out
        {cost(step) && `, ${cost(step)}`}
        {step.unpriced_tokens > 0 && ` (${step.unpriced_tokens.toLocaleString("en")} tokens had no price)`}
        {step.child_session && (
          <>
            ; session <Text>{step.child_session}</Text>
          </>
        )}
      </p>
      {step.has_diff && (
        <>
          <div className="mc-actions">
            <button type="button" className="mc-button" aria-expanded={diff} onClick={() => setDiff(!diff)}>
              {diff ? "Hide what it changed" : "Show what it changed"}
            </button>
          </div>
          {diff && <DiffView path={`/runs/${encodeURIComponent(run)}/steps/${step.number}/diff`} label="the diff" />}
        </>
      )}
    </>
  );
}

function Texts({ title, texts }: { title: string; texts: string[] }): Element | null {
  if (texts.length === 0) return null;
  return (
    <div>
      <h5>{title}</h5>
      <ul className="mc-bullets">
        {texts.map((text, i) => (
          <li key={i}>
            <Long text={text} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Report({ report }: { report: ReportShape }): Element {
  return (
    <>
      <div>
        <h5>Claimed by the specialist</h5>
        <Long text={report.summary || "It gave no summary."} />
      </div>
      {report.findings.length > 0 && (
        <div>
          <h5>Findings</h5>
          <ul className="mc-findings">
            {report.findings.map((finding, i) => (
              <li key={i}>
                <Pill tone={toneOf(finding.severity)}>
                  <Text>{finding.severity}</Text>
                </Pill>
                {finding.file && (
                  <code className="mc-place">
                    <Text>{finding.line === null ? finding.file : `${finding.file}:${finding.line}`}</Text>
                  </code>
                )}
                <div className="mc-finding-text">
                  <Long text={finding.summary} />
                </div>
              </li>
            ))}
          </ul>
        </div>
      )}
      {report.dropped_findings > 0 && (
        <p className="mc-dim">{report.dropped_findings} more named a place that does not exist, and was dropped.</p>
      )}
      <Units units={report.units} />
      <Texts title="Open questions" texts={report.open_questions} />
      <Texts title="What is good" texts={report.positive_observations} />
      {report.recommendation && <Texts title="Recommendation" texts={[report.recommendation]} />}
    </>
  );
}
