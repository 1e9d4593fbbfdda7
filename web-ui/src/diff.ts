// A patch as lines to show.
export type Kind = "context" | "add" | "del" | "hunk" | "note";

export interface Line {
  kind: Kind;
  text: string;
  old: number | null;
  new: number | null;
}

export interface Pair {
  left: Line | null;
  right: Line | null;
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

export function linesOf(patch: string): Line[] {
  const rows = patch.split("\n");
  if (rows[rows.length - 1] === "") rows.pop();
  let old = 0;
  let now = 0;
  return rows.map((row): Line => {
    const hunk = HUNK.exec(row);
    if (hunk) {
      old = Number(hunk[1]);
      now = Number(hunk[2]);
      return { kind: "hunk", text: row, old: null, new: null };
    }
    const text = row.slice(1);
    if (row.startsWith("+")) return { kind: "add", text, old: null, new: now++ };
    if (row.startsWith("-")) return { kind: "del", text, old: old++, new: null };
    if (row.startsWith("\\")) return { kind: "note", text: row.slice(2), old: null, new: null };
    return { kind: "context", text, old: old++, new: now++ };
  });
}

// Removed and added lines of one change beside each other.
export function pairsOf(lines: Line[]): Pair[] {
  const pairs: Pair[] = [];
  let removed: Line[] = [];
  let added: Line[] = [];
  const flush = (): void => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) {
      pairs.push({ left: removed[i] ?? null, right: added[i] ?? null });
    }
    removed = [];
    added = [];
  };
  for (const line of lines) {
    if (line.kind === "del") removed.push(line);
    else if (line.kind === "add") added.push(line);
    else if (line.kind !== "note") {
      flush();
      pairs.push({ left: line, right: line });
    }
  }
  flush();
  return pairs;
}
