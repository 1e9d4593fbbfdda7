// What the engine's own checks said: the proof, beside what was claimed.
import { Failed, call, useResource } from "./api";
import { count, duration } from "./format";
import { React, useState } from "./sdk";
import type { Element } from "./sdk";
import type { CheckResult, EvidenceDetail, OutputPart, Problem } from "./types";
import { Loading, Output, Pill, Text, Trouble } from "./ui";

export function CheckPill({ check }: { check: CheckResult }): Element {
  const title = `${check.command}: ${check.counts}, ${duration(check.duration_s)}`;
  return (
    <Pill tone={check.passed ? "ok" : "bad"} title={title}>
      {check.passed ? "pass" : "FAIL"} {check.counts}
    </Pill>
  );
}

// Each check on the starting tree and on the newest one that it ran on.
export function Proof({ before, after }: { before: CheckResult[]; after: CheckResult[] }): Element {
  const names = [...new Set([...before, ...after].map((c) => c.name))];
  if (names.length === 0) return <p className="mc-note">No check has run: nothing is proved.</p>;
  return (
    <div className="mc-scroll" tabIndex={0} role="region" aria-label="Checks of the engine">
      <table className="mc-table">
        <thead>
          <tr>
            <th scope="col">Check</th>
            <th scope="col">Starting tree</th>
            <th scope="col">Newest tree</th>
          </tr>
        </thead>
        <tbody>
          {names.map((name) => {
            const first = before.find((c) => c.name === name);
            const last = after.find((c) => c.name === name);
            return (
              <tr key={name}>
                <th scope="row">
                  <code>
                    <Text>{(last ?? first)?.command ?? name}</Text>
                  </code>
                </th>
                <td>{first ? <CheckPill check={first} /> : "not run"}</td>
                <td>
                  {last ? <CheckPill check={last} /> : "not run yet"}{" "}
                  {last && <span className="mc-dim mc-mono">{last.tree.slice(0, 8)}</span>}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function CheckDetail({ run, step, check }: { run: string; step: number; check: CheckResult }): Element {
  const path = `/runs/${encodeURIComponent(run)}/steps/${step}/evidence/${check.index}`;
  const [shown, setShown] = useState<"" | "output" | "cases">("");
  const failed = (check.cases["failed"] ?? 0) + (check.cases["error"] ?? 0);
  const total = Object.values(check.cases).reduce((a, b) => a + b, 0);
  return (
    <div className="mc-check">
      <div className="mc-check-head">
        <CheckPill check={check} />
        <code>
          <Text>{check.command}</Text>
        </code>
        <span className="mc-dim">
          {check.exit_code === null ? "timed out" : `exit ${check.exit_code}`}, {duration(check.duration_s)}, tree{" "}
          <span className="mc-mono">{check.tree.slice(0, 8) || "unknown"}</span>
        </span>
      </div>
      {check.failing.length > 0 && (
        <ul className="mc-failing" aria-label="Failing cases">
          {check.failing.map((name) => (
            <li key={name}>
              <Text>{name}</Text>
            </li>
          ))}
          {failed > check.failing.length && <li className="mc-dim">and {failed - check.failing.length} more</li>}
        </ul>
      )}
      <div className="mc-actions">
        {check.has_output && (
          <button
            type="button"
            className="mc-button"
            aria-expanded={shown === "output"}
            onClick={() => setShown(shown === "output" ? "" : "output")}
          >
            {shown === "output" ? "Hide output" : "Show output"}
          </button>
        )}
        {total > 0 && (
          <button
            type="button"
            className="mc-button"
            aria-expanded={shown === "cases"}
            onClick={() => setShown(shown === "cases" ? "" : "cases")}
          >
            {shown === "cases" ? "Hide cases" : `Show ${count(total, "case")}`}
          </button>
        )}
      </div>
      {shown === "output" && <CheckOutput path={`${path}/output`} />}
      {shown === "cases" && <Cases path={path} />}
    </div>
  );
}

function CheckOutput({ path }: { path: string }): Element {
  const last = useResource<OutputPart>(path);
  const [earlier, setEarlier] = useState<OutputPart[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const trouble = problem ?? last.problem;
  if (trouble) return <Trouble problem={trouble} retry={last.reload} />;
  if (!last.data) return <Loading what="the output" />;
  const parts = [...earlier, last.data];
  const first = parts[0] ?? last.data;

  async function more(): Promise<void> {
    try {
      const part = await call<OutputPart>(`${path}?end=${first.start}`);
      setEarlier((old) => [part, ...old]);
    } catch (error) {
      if (error instanceof Failed) setProblem(error.problem);
    }
  }

  const text = parts.map((p) => p.text).join("");
  return (
    <div>
      {first.start > 0 && (
        <div className="mc-more">
          <button type="button" className="mc-button" onClick={() => void more()}>
            Show earlier output
          </button>
          <span className="mc-dim">{count(first.start, "byte")} before this</span>
        </div>
      )}
      {text ? <Output text={text} label="Output of the check" /> : <p className="mc-note">It printed nothing.</p>}
    </div>
  );
}

function Cases({ path }: { path: string }): Element {
  const found = useResource<EvidenceDetail>(path);
  if (found.problem) return <Trouble problem={found.problem} retry={found.reload} />;
  if (!found.data) return <Loading what="the cases" />;
  const { cases, cases_total, environment } = found.data;
  return (
    <div className="mc-output mc-cases" tabIndex={0} role="region" aria-label="Cases of the check">
      {environment && (
        <p className="mc-dim">
          <Text>{environment}</Text>
        </p>
      )}
      <ul>
        {cases.map((one) => (
          <li key={one.id}>
            <Pill tone={one.result === "passed" ? "ok" : one.result === "skipped" ? "plain" : "bad"}>{one.result}</Pill>{" "}
            <Text>{one.id}</Text>
          </li>
        ))}
      </ul>
      {cases_total > cases.length && <p className="mc-dim">and {count(cases_total - cases.length, "more case")}</p>}
    </div>
  );
}
