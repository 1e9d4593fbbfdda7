// Links between the page's views, and the mark that tells whether the stream is live.
import type { LinkState } from "./follow";
import { React } from "./sdk";
import type { Element, Node } from "./sdk";
import { hrefOf } from "./where";
import type { Place } from "./where";

export function Link({ to, className, children, current }: {
  to: Place;
  className?: string;
  children: Node;
  current?: boolean;
}): Element {
  return (
    <a href={hrefOf(to)} className={className} aria-current={current ? "page" : undefined}>
      {children}
    </a>
  );
}

const WORDS: Record<LinkState, string> = {
  connecting: "connecting",
  live: "connected",
  waiting: "reconnecting",
};

export function LinkDot({ state }: { state: LinkState }): Element {
  return (
    <span className={`mc-dot mc-dot-${state}`} role="status" aria-label={`Updates: ${WORDS[state]}`}>
      <span aria-hidden="true">{WORDS[state]}</span>
    </span>
  );
}
