// Which view the address names: #/runs, #/runs/r8/diff, #/routing, #/settings.
import { useEffect, useState } from "./sdk";

export type Place =
  | { view: "runs" }
  | { view: "run"; id: string; tab: string }
  | { view: "routing" }
  | { view: "settings" };

export const RUN_TABS = ["steps", "diff", "events", "report"];

// An address that somebody made up may not be decodable; then it is taken as it stands.
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function placeOf(hash: string): Place {
  const [, view = "", id = "", tab = ""] = hash.replace(/^#/, "").split("/");
  if (view === "runs" && id) return { view: "run", id: decoded(id), tab: RUN_TABS.includes(tab) ? tab : "steps" };
  if (view === "routing" || view === "settings") return { view };
  return { view: "runs" };
}

export function hrefOf(place: Place): string {
  if (place.view === "run") {
    return `#/runs/${encodeURIComponent(place.id)}${place.tab === "steps" ? "" : `/${place.tab}`}`;
  }
  return `#/${place.view}`;
}

export function usePlace(): Place {
  const [hash, setHash] = useState(window.location.hash);
  useEffect(() => {
    const look = (): void => setHash(window.location.hash);
    window.addEventListener("hashchange", look);
    window.addEventListener("popstate", look);
    return () => {
      window.removeEventListener("hashchange", look);
      window.removeEventListener("popstate", look);
    };
  }, []);
  return placeOf(hash);
}

export function goTo(place: Place): void {
  window.location.hash = hrefOf(place);
}
