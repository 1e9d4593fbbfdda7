// A diff, file by file: unified or side by side, large files folded and shown in parts.
import { Failed, call, useResource } from "./api";
import { linesOf, pairsOf } from "./diff";
import type { Line, Pair } from "./diff";
import { count } from "./format";
import { React, useId, useMemo, useState } from "./sdk";
import type { Element } from "./sdk";
import type { Diff, DiffFile, Problem } from "./types";
import { Loading, Pill, Text, Trouble } from "./ui";

const CHUNK = 300;
const FOLD_LINES = 200;
const OPEN_FILES = 20;
const SHOWN_FILES = 100;
const LONGEST_LINE = 2000;

type Mode = "unified" | "split";

export function DiffView({ path, label }: { path: string; label: string }): Element {
  const found = useResource<Diff>(path);
  const [mode, setMode] = useState<Mode>("unified");
  const [files, setFiles] = useState(SHOWN_FILES);
  const diff = found.data;
  if (found.problem) return <Trouble problem={found.problem} retry={found.reload} />;
  if (!diff) return <Loading what={label} />;
  if (diff.files.length === 0) return <p className="mc-note">No file differs.</p>;
  return (
    <div className="mc-diff">
      <div className="mc-diff-bar">
        <span>
          {count(diff.files_total, "file")} <span className="mc-plus">+{diff.added.toLocaleString("en")}</span>{" "}
          <span className="mc-minus">−{diff.removed.toLocaleString("en")}</span>
        </span>
        <div className="mc-chips" role="group" aria-label="Layout of the diff">
          <button type="button" className="mc-chip" aria-pressed={mode === "unified"} onClick={() => setMode("unified")}>
            unified
          </button>
          <button type="button" className="mc-chip" aria-pressed={mode === "split"} onClick={() => setMode("split")}>
            side by side
          </button>
        </div>
      </div>
      {diff.cut && <p className="mc-note">The diff is too large to read whole; its end is left off.</p>}
      {diff.files.slice(0, files).map((file) => (
        <FileDiff key={file.index} file={file} mode={mode} path={path} open={file.index < OPEN_FILES} />
      ))}
      {diff.files_total > files && (
        <button type="button" className="mc-button" onClick={() => setFiles(files + SHOWN_FILES)}>
          Show more of {count(diff.files_total, "file")}
        </button>
      )}
    </div>
  );
}

const CHANGES: Record<DiffFile["change"], string> = {
  added: "new",
  deleted: "deleted",
  changed: "",
  mode: "no lines changed",
};

function FileDiff(props: { file: DiffFile; mode: Mode; path: string; open: boolean }): Element {
  const { file, path } = props;
  const large = file.patch === null || file.added + file.removed > FOLD_LINES;
  const [open, setOpen] = useState(props.open && !large);
  const [patch, setPatch] = useState<string | null>(file.patch);
  const [problem, setProblem] = useState<Problem | null>(null);
  const id = useId();

  function toggle(): void {
    setOpen(!open);
    if (open || patch !== null) return;
    setProblem(null);
    call<DiffFile>(`${path}/${file.index}`).then(
      (whole) => setPatch(whole.patch ?? ""),
      (error: unknown) => error instanceof Failed && setProblem(error.problem),
    );
  }

  return (
    <section className="mc-file">
      <h4>
        <button type="button" aria-expanded={open} aria-controls={id} onClick={toggle}>
          <span className="mc-caret" aria-hidden="true" />
          <span className="mc-path">
            <Text>{file.path}</Text>
          </span>
          {CHANGES[file.change] && <Pill tone="plain">{CHANGES[file.change]}</Pill>}
          <span className="mc-plus">+{file.added.toLocaleString("en")}</span>
          <span className="mc-minus">−{file.removed.toLocaleString("en")}</span>
          {large && !open && <span className="mc-dim">large, folded</span>}
        </button>
      </h4>
      <div id={id} hidden={!open}>
        {problem && <Trouble problem={problem} />}
        {open && patch === null && !problem && <Loading what="the file" />}
        {open && patch !== null && patch.length < file.size && (
          <p className="mc-note">This file is too large to show whole; its end is left off.</p>
        )}
        {open && patch !== null && <Patch patch={patch} mode={props.mode} label={file.path} />}
      </div>
    </section>
  );
}

function Patch({ patch, mode, label }: { patch: string; mode: Mode; label: string }): Element {
  const lines = useMemo(() => linesOf(patch), [patch]);
  const pairs = useMemo(() => (mode === "split" ? pairsOf(lines) : []), [lines, mode]);
  const [shown, setShown] = useState(CHUNK);
  const total = mode === "split" ? pairs.length : lines.length;
  if (total === 0) return <p className="mc-note">No line differs.</p>;
  const chunks = Math.ceil(Math.min(shown, total) / CHUNK);
  return (
    <>
      <div className={`mc-patch mc-patch-${mode}`} tabIndex={0} role="region" aria-label={`Changes of ${label}`}>
        <div className="mc-patch-inner">
          {Array.from({ length: chunks }, (_, i) =>
            mode === "split" ? (
              <SplitChunk key={i} pairs={pairs.slice(i * CHUNK, (i + 1) * CHUNK)} />
            ) : (
              <Chunk key={i} lines={lines.slice(i * CHUNK, (i + 1) * CHUNK)} />
            ),
          )}
        </div>
      </div>
      {total > shown && (
        <div className="mc-more">
          <button type="button" className="mc-button" onClick={() => setShown(shown + CHUNK * 4)}>
            Show more lines
          </button>
          <span className="mc-dim">
            {shown.toLocaleString("en")} of {total.toLocaleString("en")} shown
          </span>
        </div>
      )}
    </>
  );
}

function shortened(text: string): string {
  if (text.length <= LONGEST_LINE) return text;
  return `${text.slice(0, LONGEST_LINE)} … [${text.length - LONGEST_LINE} more characters]`;
}

const SIGN: Record<Line["kind"], string> = { context: " ", add: "+", del: "−", hunk: "", note: "\\" };

const Chunk = React.memo(function Chunk({ lines }: { lines: Line[] }): Element {
  return (
    <div className="mc-chunk">
      {lines.map((line, i) => (
        <div key={i} className={`mc-line mc-line-${line.kind}`}>
          <span className="mc-num">{line.old ?? ""}</span>
          <span className="mc-num">{line.new ?? ""}</span>
          <span className="mc-sign">{SIGN[line.kind]}</span>
          <span className="mc-code">
            <Text>{shortened(line.text)}</Text>
          </span>
        </div>
      ))}
    </div>
  );
});

const SplitChunk = React.memo(function SplitChunk({ pairs }: { pairs: Pair[] }): Element {
  return (
    <div className="mc-chunk">
      {pairs.map((pair, i) =>
        pair.left?.kind === "hunk" ? (
          <div key={i} className="mc-line mc-line-hunk">
            <span className="mc-code">
              <Text>{shortened(pair.left.text)}</Text>
            </span>
          </div>
        ) : (
          <div key={i} className="mc-pair">
            <Half line={pair.left} side="old" />
            <Half line={pair.right} side="new" />
          </div>
        ),
      )}
    </div>
  );
});

function Half({ line, side }: { line: Line | null; side: "old" | "new" }): Element {
  if (!line) return <div className="mc-half mc-line-none" />;
  return (
    <div className={`mc-half mc-line-${line.kind}`}>
      <span className="mc-num">{line[side] ?? ""}</span>
      <span className="mc-sign">{SIGN[line.kind]}</span>
      <span className="mc-code">
        <Text>{shortened(line.text)}</Text>
      </span>
    </div>
  );
}
