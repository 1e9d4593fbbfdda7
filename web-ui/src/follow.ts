// The live stream: server-sent events read from an authorised fetch, taken up again where it stopped.
import { BASE } from "./api";
import { sdk, useEffect, useRef, useState } from "./sdk";
import type { RunEvent } from "./types";

export type LinkState = "connecting" | "live" | "waiting";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8000;

function isEvent(value: unknown): value is RunEvent {
  return typeof value === "object" && value !== null && "id" in value && "kind" in value;
}

function eventOf(message: string): RunEvent | null {
  const data = message
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => line.slice(6))
    .join("\n");
  if (!data) return null;
  try {
    const event: unknown = JSON.parse(data);
    return isEvent(event) ? event : null;
  } catch {
    return null;
  }
}

async function read(body: ReadableStream<Uint8Array>, onEvents: (events: RunEvent[]) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const parts = rest.split("\n\n");
    rest = parts.pop() ?? "";
    const events = parts.map(eventOf).filter((e): e is RunEvent => e !== null);
    if (events.length > 0) onEvents(events);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

// Follow `path` from the event after `after` until the signal says stop. Each event is handed over once, in order.
async function follow(
  path: string,
  after: number,
  signal: AbortSignal,
  onEvents: (events: RunEvent[]) => void,
  onState: (state: LinkState) => void,
): Promise<void> {
  let seen = after;
  let wait = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const answer = await sdk.authedFetch(`${BASE}${path}?after=${seen}`, { signal });
      if (answer.ok && answer.body) {
        onState("live");
        wait = FIRST_PAUSE_MS;
        await read(answer.body, (events) => {
          const fresh = events.filter((e) => e.id > seen);
          seen = events.reduce((most, e) => Math.max(most, e.id), seen);
          if (fresh.length > 0) onEvents(fresh);
        });
        continue;
      }
    } catch {
      // The connection broke, or the page was left; the loop decides.
    }
    if (signal.aborted) return;
    onState("waiting");
    await pause(wait, signal);
    wait = Math.min(wait * 2, LONGEST_PAUSE_MS);
  }
}

// Whether the stream is live; `onEvents` gets what happens. Nothing is asked for while `after` is null.
export function useEvents(path: string, after: number | null, onEvents: (events: RunEvent[]) => void): LinkState {
  const [state, setState] = useState<LinkState>("connecting");
  const handler = useRef(onEvents);
  handler.current = onEvents;
  const ready = after !== null;
  const begin = useRef(0);
  if (after !== null) begin.current = after;
  useEffect(() => {
    if (!ready) return undefined;
    const stop = new AbortController();
    setState("connecting");
    void follow(path, begin.current, stop.signal, (events) => handler.current(events), (now) => {
      if (!stop.signal.aborted) setState(now);
    });
    return () => stop.abort();
  }, [path, ready]);
  return state;
}
