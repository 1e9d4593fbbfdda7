// Builds the page into the package. The first line of the script names the sources it was made from, so that a
// test can tell a stale one without Node.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = join(here, "..", "src", "matrix_coder", "dashboard", "dist");

export function sourceHash() {
  const hash = createHash("sha256");
  const names = readdirSync(join(here, "src"), { recursive: true }).map(String).filter((n) => /\.(tsx?|css)$/.test(n));
  for (const name of names.sort()) {
    hash.update(name.replaceAll("\\", "/") + "\0");
    hash.update(readFileSync(join(here, "src", name)));
    hash.update("\0");
  }
  return hash.digest("hex");
}

const stamp = `/* matrix-coder dashboard, built from web-ui/src sha256:${sourceHash()} */`;
const script = await build({
  entryPoints: [join(here, "src", "index.tsx")],
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome119", "firefox128", "safari17"],
  charset: "ascii",
  legalComments: "none",
  write: false,
});
writeFileSync(join(out, "index.js"), `${stamp}\n${script.outputFiles[0].text}`);
const style = await build({
  entryPoints: [join(here, "src", "style.css")],
  minify: true,
  target: ["chrome119", "firefox128", "safari17"],
  write: false,
});
writeFileSync(join(out, "style.css"), `${stamp}\n${style.outputFiles[0].text}`);
