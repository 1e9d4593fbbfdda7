// The units that a step is made of: what each owns, what it came to, and how it can still be taken.
import { count } from "./format";
import { React } from "./sdk";
import type { Element } from "./sdk";
import type { PlannedUnit, UnitShape } from "./types";
import { Long, Pill, Text } from "./ui";
import type { Tone } from "./ui";

// A unit is merged only while the engine's checks stay as good as they were, so its state has a colour to give.
const TONES: Record<UnitShape["state"], Tone> = {
  "": "info",
  ready: "info",
  merging: "info",
  merged: "ok",
  done: "plain",
  empty: "warn",
  failed: "bad",
};

export function UnitPill({ unit, live }: { unit: UnitShape; live: boolean }): Element {
  const state = unit.state || (live ? "at work" : "not finished");
  return (
    <>
      {" "}
      <Pill tone={unit.state || live ? TONES[unit.state] : "plain"}>{state}</Pill>
    </>
  );
}

function Names({ title, names, more = 0 }: { title: string; names: string[]; more?: number }): Element | null {
  if (names.length === 0) return null;
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <ul className="mc-names">
          {names.map((name) => (
            <li key={name}>
              <code>
                <Text>{name}</Text>
              </code>
            </li>
          ))}
          {more > 0 && <li className="mc-dim">and {count(more, "more file")}</li>}
        </ul>
      </dd>
    </div>
  );
}

export function UnitFacts({ unit }: { unit: UnitShape }): Element {
  return (
    <dl className="mc-facts mc-unit-facts">
      {unit.goal && (
        <div>
          <dt>to do</dt>
          <dd>
            <Long text={unit.goal} />
          </dd>
        </div>
      )}
      {unit.why && (
        <div className="mc-unit-why">
          <dt>{unit.state || "why"}</dt>
          <dd>
            <Long text={unit.why} />
          </dd>
        </div>
      )}
      {unit.topic && (
        <div>
          <dt>topic</dt>
          <dd>
            <Long text={unit.topic} />
          </dd>
        </div>
      )}
      <Names title="may change" names={unit.owns} />
      <Names title="changed" names={unit.files} more={unit.files_total - unit.files.length} />
      {unit.checkout && (
        <div>
          <dt>kept in</dt>
          <dd>
            <code>
              <Text>{unit.checkout}</Text>
            </code>
            {unit.branch && (
              <>
                {" "}
                on branch{" "}
                <code>
                  <Text>{unit.branch}</Text>
                </code>
              </>
            )}
          </dd>
        </div>
      )}
      {unit.command && (
        <div>
          <dt>take it later with the button “Merge a unit”, or</dt>
          <dd>
            <code>
              <Text>{unit.command}</Text>
            </code>
          </dd>
        </div>
      )}
    </dl>
  );
}

// The units of a plan, before anybody worked on them.
export function Units({ units }: { units: PlannedUnit[] }): Element | null {
  if (units.length === 0) return null;
  return (
    <div>
      <h5>Planned units</h5>
      <ul className="mc-bullets">
        {units.map((unit) => (
          <li key={unit.name}>
            <strong>
              <Text>{unit.name}</Text>
            </strong>{" "}
            <span className="mc-dim">
              <Text>{unit.role}</Text>
            </span>{" "}
            <code>
              <Text>{unit.files.join(", ") || unit.topic}</Text>
            </code>
            <Long text={unit.goal} />
          </li>
        ))}
      </ul>
    </div>
  );
}
