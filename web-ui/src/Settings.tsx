// The effective configuration, and where each value comes from.
import { useResource } from "./api";
import { React } from "./sdk";
import type { Element } from "./sdk";
import type { Setting, SettingsAnswer } from "./types";
import { Loading, Panel, Pill, Text, Trouble } from "./ui";

export function Settings(): Element {
  const found = useResource<SettingsAnswer>("/settings");
  if (found.problem) return <Trouble problem={found.problem} retry={found.reload} />;
  if (!found.data) return <Loading what="the settings" />;
  const { settings, places, problem, file } = found.data;
  return (
    <div className="mc-view">
      {problem && (
        <div className="mc-view">
          <Trouble problem={problem} retry={found.reload} />
          <p className="mc-note">No run starts until this is mended. These are the defaults.</p>
        </div>
      )}
      <Panel title="Settings in force">
        <p className="mc-dim">
          They are read from <code><Text>{file}</Text></code>, below{" "}
          <code>plugins.entries.matrix_coder.settings</code>, when a run or a chat starts.
        </p>
        <Rows rows={settings} label="Settings" defaults />
      </Panel>
      <Panel title="This installation">
        <Rows rows={places} label="Installation" defaults={false} />
      </Panel>
    </div>
  );
}

function Rows({ rows, label, defaults }: { rows: Setting[]; label: string; defaults: boolean }): Element {
  return (
    <ul className="mc-settings" aria-label={label}>
      {rows.map((row) => (
        <li key={row.name}>
          <code>{row.name}</code>
          <span className="mc-mono">
            <Text>{row.value || "(empty)"}</Text>
          </span>
          <span className="mc-source">
            {defaults && row.source !== "built-in default" && <Pill tone="info">set</Pill>}{" "}
            <span className="mc-dim">from</span> <Text>{row.source}</Text>
            {defaults && row.value !== row.default && (
              <span className="mc-dim">
                {" "}
                (default <Text>{row.default || "empty"}</Text>)
              </span>
            )}
          </span>
          <span className="mc-what mc-dim">{row.what}</span>
        </li>
      ))}
    </ul>
  );
}
