// Calls of the API, and what a failed one says.
import { sdk, useCallback, useEffect, useRef, useState } from "./sdk";
import type { Problem } from "./types";

export const BASE = "/api/plugins/matrix_coder/v1";

export class Failed extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

function isProblem(value: unknown): value is Problem {
  return typeof value === "object" && value !== null && "code" in value && "message" in value && "next" in value;
}

async function problemOf(answer: Response): Promise<Problem> {
  const told: unknown = await answer.json().catch(() => null);
  if (isProblem(told)) return told;
  if (answer.status === 401) {
    return { code: "session", message: "The dashboard no longer knows this page's session.", next: "Reload the page." };
  }
  if (answer.status === 404) {
    return { code: "no_api", message: "The dashboard does not serve this plugin's API.", next: "Restart the dashboard." };
  }
  return { code: "http", message: `The dashboard answered with ${answer.status}.`, next: "Try again." };
}

const AGAIN_MS = 3000;
const UNREACHABLE: Problem = {
  code: "unreachable",
  message: "The dashboard does not answer.",
  next: "Check that `hermes dashboard` is running; this page goes on by itself.",
};

export async function call<T>(path: string, init?: RequestInit): Promise<T> {
  let answer: Response;
  try {
    answer = await sdk.authedFetch(BASE + path, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Failed(UNREACHABLE);
  }
  if (!answer.ok) throw new Failed(await problemOf(answer));
  return (await answer.json()) as T;
}

export function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return call<T>(path, { method: "POST", headers, body: JSON.stringify(body) });
}

export interface Resource<T> {
  data: T | null;
  problem: Problem | null;
  loading: boolean;
  reload(): void;
}

// The answer of one address. While it is asked for again the last answer stays; another address starts afresh.
export function useResource<T>(path: string | null): Resource<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; problem: Problem | null }>({
    path: null,
    data: null,
    problem: null,
  });
  const [asked, setAsked] = useState(0);
  const newest = useRef(0);
  useEffect(() => {
    if (path === null) return undefined;
    const mine = ++newest.current;
    const stop = new AbortController();
    call<T>(path, { signal: stop.signal }).then(
      (data) => mine === newest.current && setState({ path, data, problem: null }),
      (error: unknown) => {
        if (mine !== newest.current || !(error instanceof Failed)) return;
        setState((old) => ({ path, data: old.path === path ? old.data : null, problem: error.problem }));
      },
    );
    return () => stop.abort();
  }, [path, asked]);
  // A dashboard that does not answer is asked again until it does; any other trouble waits for the person.
  const away = state.path === path && state.problem?.code === UNREACHABLE.code;
  useEffect(() => {
    if (!away) return undefined;
    const timer = setTimeout(() => setAsked((n) => n + 1), AGAIN_MS);
    return () => clearTimeout(timer);
  }, [away, state]);
  const reload = useCallback(() => setAsked((n) => n + 1), []);
  const current = state.path === path;
  return {
    data: current ? state.data : null,
    problem: current ? state.problem : null,
    loading: path !== null && !current,
    reload,
  };
}
