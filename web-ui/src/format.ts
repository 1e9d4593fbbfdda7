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

// `$5.02`; less than a dime to the hundredth of a cent, and never less than that for more than nothing.
export function dollars(amount: number): string {
  const shown = amount > 0 ? Math.max(amount, 0.0001) : 0;
  const cents = shown >= 0.1 || shown.toFixed(4).endsWith("00");
  if (!cents) return `$${shown.toFixed(4)}`;
  return `$${shown.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

export interface Spent {
  input_tokens: number;
  output_tokens: number;
  cost_usd: number;
  unpriced_tokens: number;
}

export function spent(parts: Spent[]): Spent {
  const sum = (key: keyof Spent): number => parts.reduce((all, part) => all + part[key], 0);
  return {
    input_tokens: sum("input_tokens"),
    output_tokens: sum("output_tokens"),
    cost_usd: sum("cost_usd"),
    unpriced_tokens: sum("unpriced_tokens"),
  };
}

export function usedTokens(used: Spent): number {
  return used.input_tokens + used.output_tokens;
}

// What it cost, as far as the host knows prices; empty where nothing was used.
export function cost(used: Spent): string {
  if (used.unpriced_tokens > 0) return used.cost_usd > 0 ? `at least ${dollars(used.cost_usd)}` : "no price known";
  return usedTokens(used) > 0 ? dollars(used.cost_usd) : "";
}
