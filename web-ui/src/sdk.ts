// What the host's dashboard lends to a page: its React, and a fetch that carries the session's token.
import type * as ReactTypes from "react";

interface Sdk {
  React: typeof ReactTypes;
  authedFetch(path: string, init?: RequestInit): Promise<Response>;
}

interface Plugins {
  register(name: string, component: () => ReactTypes.ReactElement): void;
}

declare global {
  interface Window {
    __HERMES_PLUGIN_SDK__: Sdk;
    __HERMES_PLUGINS__: Plugins;
  }
}

export const sdk = window.__HERMES_PLUGIN_SDK__;
export const React = sdk.React;
export const { useState, useEffect, useCallback, useMemo, useRef, useId } = React;
export type Node = ReactTypes.ReactNode;
export type Element = ReactTypes.ReactElement;
