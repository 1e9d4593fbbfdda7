// The steps of a run on a time line: who, what was claimed, what was verified, how long, how much.
import { CheckDetail, CheckPill } from "./Checks";
import { DiffView } from "./DiffView";
import { duration, moment, tokens } from "./format";
import { React, useId, useState } from "./sdk";
import type { Element } from "./sdk";
import type { ReportShape, StepShape } from "./types";
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

function routeOf(step: StepShape): string {
  return step.role + (step.lens ? `:${step.lens}` : "") + (step.domain ? `@${step.domain}` : "");
}

function iterationsOf(steps: StepShape[]): [number, StepShape[]][] {
  const groups = new Map<number, StepShape[]>();
  for (const step of steps) groups.set(step.iteration, [...(groups.get(step.iteration) ?? []), step]);
  return [...groups];
}

export function Timeline({ run, steps, now, cap }: {
  run: string;
  steps: StepShape[];
  now: number;
  cap: number;
}): Element {
  if (steps.length === 0) {
    return <p className="mc-note">No step has begun: the engine records the starting tree and runs the checks first.</p>;
  }
  const span = spanOf(steps, now);
  return (
    <div className="mc-timeline">
      {iterationsOf(steps).map(([iteration, group]) => (
        <section key={iteration} aria-label={`Iteration ${iteration}`}>
          <h4 className="mc-iteration">
            Iteration {iteration} <span className="mc-dim">of {cap}</span>
          </h4>
          <ol className="mc-steps">
            {group.map((step) => (
              <Step key={step.number} run={run} step={step} span={span} now={step.ended_at ? 0 : now} />
            ))}
          </ol>
        </section>
      ))}
    </div>
  );
}

const Step = React.memo(function Step({ run, step, span, now }: {
  run: string;
  step: StepShape;
  span: Span;
  now: number;
}): Element {
  const [open, setOpen] = useState(false);
  const id = useId();
  const live = step.ended_at === 0 && now > 0;
  const took = Math.max(0, (step.ended_at || now || step.started_at) - step.started_at);
  const all = Math.max(1, span.to - span.from);
  const left = ((step.started_at - span.from) / all) * 100;
  const cutOff = step.ended_at === 0 && !live;
  const claimed = cutOff ? "cut off" : step.report?.verdict ?? step.status;
  // Colour is for what was verified; a claim has none to give.
  const proved = step.evidence.length === 0 ? "plain" : step.evidence.every((c) => c.passed) ? "ok" : "bad";
  return (
    <li className="mc-step">
      <button type="button" className="mc-step-head" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        <span className="mc-caret" aria-hidden="true" />
        <span className="mc-step-name">
          <span className="mc-dim">{step.number}.</span> <Text>{routeOf(step)}</Text>
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
          {duration(took)} <span className="mc-dim">{tokens(step.input_tokens + step.output_tokens)} tokens</span>
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
    </li>
  );
});

function StepBody({ run, step }: { run: string; step: StepShape }): Element {
  const [diff, setDiff] = useState(false);
  return (
    <>
      {step.report ? (
        <Report report={step.report} />
      ) : (
        <p className="mc-note">No report {step.ended_at ? "was handed in." : "yet."}</p>
      )}
      {step.note && (
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
      <Texts title="Open questions" texts={report.open_questions} />
      <Texts title="What is good" texts={report.positive_observations} />
      {report.recommendation && <Texts title="Recommendation" texts={[report.recommendation]} />}
    </>
  );
}
