// Numbers and times as people read them.
export function tokens(count: number): string {
  if (count < 1000) return String(count);
  if (count < 999_500) return `${(count / 1000).toFixed(count < 9_950 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(count < 9_950_000 ? 2 : 0)}M`;
}

export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return seconds > 0 && seconds < 10 ? `${seconds.toFixed(1)} s` : `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
}

export function age(at: number, now: number): string {
  const s = Math.max(0, Math.floor(now - at));
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86_400)} d ago`;
}

export function moment(at: number): string {
  return at ? new Date(at * 1000).toLocaleString() : "";
}

export function clock(at: number): string {
  return new Date(at * 1000).toLocaleTimeString();
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

const WORDS: Record<string, string> = {
  cap_reached: "cap reached",
  live: "live",
};

export function outcomeWord(state: string): string {
  return WORDS[state] ?? state.replaceAll("_", " ");
}
