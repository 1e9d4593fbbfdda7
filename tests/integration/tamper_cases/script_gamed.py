"""Gamed JavaScript and TypeScript suites: node:test, jest, vitest, mocha with chai."""

from __future__ import annotations

from matrix_coder.core.tamper import TamperKind as K

from .table import Gamed

CALC = "export function add(a, b) {\n  return a - b;\n}\n\nexport function double(a) {\n  return a * 2;\n}\n"
TEST = """import { describe, expect, it } from "vitest";
import { add, double } from "../src/calc";

describe("calc", () => {
  it("adds", () => {
    expect(add(2, 3)).toBe(5);
    expect(add(1, 1)).toBe(2);
  });

  it("doubles", () => {
    expect(double(4)).toEqual(8);
  });
});
"""
PACKAGE = '{\n  "name": "calc",\n  "type": "module",\n  "scripts": {\n    "test": "vitest run"\n  }\n}\n'
JS = {"src/calc.js": CALC, "tests/calc.test.js": TEST, "package.json": PACKAGE, ".gitignore": "node_modules/\n"}
TS = {
    "src/calc.ts": CALC.replace("a, b)", "a: number, b: number): number").replace("(a)", "(a: number): number"),
    "tests/calc.spec.ts": TEST,
    "package.json": PACKAGE.replace("vitest run", "jest"),
}
NODE_TEST = """import test from "node:test";
import assert from "node:assert/strict";
import { add, double } from "./calc.mjs";

test("adds", () => {
  assert.equal(add(2, 3), 5);
});

test("doubles", () => {
  assert.equal(double(4), 8);
});
"""
NODE = {
    "calc.mjs": CALC,
    "calc.test.mjs": NODE_TEST,
    "package.json": '{\n  "scripts": {\n    "test": "node --test"\n  }\n}\n',
}
CHAI = """const { expect } = require("chai");
const { add } = require("../lib/calc");

describe("calc", function () {
  it("adds", function () {
    expect(add(2, 3)).to.equal(5);
    add(2, 3).should.equal(5);
  });
});
"""
MOCHA = {"lib/calc.js": CALC, "test/calc.js": CHAI, "package.json": PACKAGE.replace("vitest run", "mocha")}
EACH = """import { add } from "../src/calc";

test.each([
  [0, 0, 0],
  [2, 3, 5],
])("adds %i and %i", (a, b, total) => {
  expect(add(a, b)).toBe(total);
});
"""
JS_EACH = {**JS, "tests/calc.test.js": EACH}
NEAR = (
    'import { add } from "../src/calc";\n\ntest("adds", () => {\n  expect(add(0.1, 0.2)).toBeCloseTo(0.3, 10);\n});\n'
)
JS_NEAR = {**JS, "tests/calc.test.js": NEAR}
SNAP = '// Jest Snapshot v1, https://goo.gl/fbAQLP\n\nexports[`calc adds 1`] = `\n{\n  "sum": 5,\n}\n`;\n'
JS_SNAP = {**JS, "tests/__snapshots__/calc.test.js.snap": SNAP}
INLINE = (
    'import { add } from "../src/calc";\n\ntest("adds", () => {\n  expect(add(2, 3)).toMatchInlineSnapshot(`5`);\n});\n'
)
JEST_CONFIG = "module.exports = {\n  coverageThreshold: {\n    global: { lines: 90, branches: 80 },\n  },\n};\n"
JS_CONFIG = {**JS, "jest.config.js": JEST_CONFIG}
T = "tests/calc.test.js"
N = "calc.test.mjs"
IT = '  it("adds", () => {\n'
FIRST = "    expect(add(2, 3)).toBe(5);\n"
SECOND = "    expect(add(1, 1)).toBe(2);\n"
BOTH = FIRST + SECOND
NODE_CHECK = ("node --test",)

TESTS = [
    Gamed(
        name="test file deleted",
        base={**JS, "tests/more.test.js": EACH},
        change={T: None},
        kind=K.TEST_FILE_DELETED,
        file=T,
        line=5,
    ),
    Gamed(
        name="test deleted", base=JS, change={T: ((IT + BOTH + "  });\n\n", ""),)}, kind=K.TEST_DELETED, file=T, line=5
    ),
    Gamed(
        name="node test deleted",
        base=NODE,
        change={N: (('test("adds", () => {\n  assert.equal(add(2, 3), 5);\n});\n\n', ""),)},
        kind=K.TEST_DELETED,
        file=N,
        line=5,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="test file renamed so that it is not collected",
        base=JS,
        change={T: None, "tools/calc.checks.js": TEST},
        kind=K.TEST_UNCOLLECTED,
        file="tools/calc.checks.js",
        line=5,
    ),
    Gamed(
        name="it.skip", base=JS, change={T: ((IT, IT.replace("it(", "it.skip(")),)}, kind=K.TEST_SKIPPED, file=T, line=5
    ),
    Gamed(name="xit", base=JS, change={T: ((IT, IT.replace("it(", "xit(")),)}, kind=K.TEST_SKIPPED, file=T, line=5),
    Gamed(
        name="describe.skip",
        base=JS,
        change={T: (('describe("calc"', 'describe.skip("calc"'),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=4,
    ),
    Gamed(
        name="test.todo",
        base=JS,
        change={T: ((IT + BOTH + "  });\n", '  it.todo("adds");\n'),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=5,
    ),
    Gamed(
        name="it.only on another test",
        base=JS,
        change={T: (('it("doubles"', 'it.only("doubles"'),)},
        kind=K.TEST_FOCUSED,
        file=T,
        line=10,
    ),
    Gamed(name="fit", base=JS, change={T: (('it("doubles"', 'fit("doubles"'),)}, kind=K.TEST_FOCUSED, file=T, line=10),
    Gamed(
        name="it.fails",
        base=JS,
        change={T: ((IT, IT.replace("it(", "it.fails(")),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=5,
    ),
    Gamed(
        name="skip option of node:test",
        base=NODE,
        change={N: (('test("adds", ()', 'test("adds", { skip: true }, ()'),)},
        kind=K.TEST_SKIPPED,
        file=N,
        line=5,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="todo option of node:test",
        base=NODE,
        change={N: (('test("adds", ()', 'test("adds", { todo: "later" }, ()'),)},
        kind=K.TEST_SKIPPED,
        file=N,
        line=5,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="t.skip in the body",
        base=NODE,
        change={N: (('test("adds", () => {\n', 'test("adds", (t) => {\n  t.skip("flaky");\n  return;\n'),)},
        kind=K.TEST_SKIPPED,
        file=N,
        line=6,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="this.skip in mocha",
        base=MOCHA,
        change={"test/calc.js": (('it("adds", function () {\n', 'it("adds", function () {\n    this.skip();\n'),)},
        kind=K.TEST_SKIPPED,
        file="test/calc.js",
        line=6,
    ),
    Gamed(name="body emptied", base=JS, change={T: ((BOTH, ""),)}, kind=K.TEST_EMPTIED, file=T, line=5),
    Gamed(
        name="early return",
        base=JS,
        change={T: ((IT, IT + "    return;\n"),)},
        kind=K.ASSERTION_UNREACHABLE,
        file=T,
        line=7,
    ),
    Gamed(
        name="early return in node:test",
        base=NODE,
        change={N: (('test("adds", () => {\n', 'test("adds", () => {\n  return\n'),)},
        kind=K.ASSERTION_UNREACHABLE,
        file=N,
        line=7,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="if (false)",
        base=JS,
        change={T: ((BOTH, "    if (false) {\n" + BOTH + "    }\n"),)},
        kind=K.ASSERTION_UNREACHABLE,
        file=T,
        line=7,
    ),
    Gamed(
        name="row of each removed",
        base=JS_EACH,
        change={T: (("  [2, 3, 5],\n", ""),)},
        kind=K.TEST_CASE_REMOVED,
        file=T,
        line=5,
    ),
    Gamed(
        name="row of each changed",
        base=JS_EACH,
        change={T: (("[2, 3, 5]", "[2, 3, -1]"),)},
        kind=K.EXPECTATION_CHANGED,
        file=T,
        line=5,
    ),
]

ASSERTIONS = [
    Gamed(name="assertion removed", base=JS, change={T: ((SECOND, ""),)}, kind=K.ASSERTION_REMOVED, file=T, line=7),
    Gamed(
        name="assertion commented out",
        base=JS,
        change={
            T: ((BOTH, "    // expect(add(2, 3)).toBe(5);\n    /* expect(add(1, 1)).toBe(2); */\n    add(1, 1);\n"),)
        },
        kind=K.ASSERTION_COMMENTED_OUT,
        file=T,
        line=6,
    ),
    Gamed(
        name="toBe to toBeTruthy",
        base=JS,
        change={T: ((FIRST, "    expect(add(2, 3)).toBeTruthy();\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=6,
    ),
    Gamed(
        name="toBe to toBeDefined",
        base=TS,
        change={"tests/calc.spec.ts": ((FIRST, "    expect(add(2, 3)).toBeDefined();\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file="tests/calc.spec.ts",
        line=6,
    ),
    Gamed(
        name="expect.anything",
        base=JS,
        change={T: (("toEqual(8)", "toEqual(expect.anything())"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=11,
    ),
    Gamed(
        name="expect(true)",
        base=JS,
        change={T: ((FIRST, "    expect(true).toBe(true);\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=6,
    ),
    Gamed(
        name="matcher taken away",
        base=JS,
        change={T: ((FIRST, "    expect(add(2, 3));\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=6,
    ),
    Gamed(
        name="expected value replaced by the call",
        base=JS,
        change={T: ((FIRST, "    expect(add(2, 3)).toBe(add(2, 3));\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=6,
    ),
    Gamed(
        name="expected value replaced by the result",
        base=JS,
        change={T: ((FIRST, "    const sum = add(2, 3);\n    expect(sum).toBe(sum);\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=7,
    ),
    Gamed(
        name="expected value changed",
        base=JS,
        change={T: (("toBe(5)", "toBe(-1)"),)},
        kind=K.EXPECTATION_CHANGED,
        file=T,
        line=6,
    ),
    Gamed(
        name="expected value changed in node:test",
        base=NODE,
        change={N: (("add(2, 3), 5", "add(2, 3), -1"),)},
        kind=K.EXPECTATION_CHANGED,
        file=N,
        line=6,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="assert.ok of an alternative",
        base=NODE,
        change={N: (("assert.equal(add(2, 3), 5)", "assert.ok(add(2, 3) === 5 || true)"),)},
        kind=K.ASSERTION_WEAKENED,
        file=N,
        line=6,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="chai equality to existence",
        base=MOCHA,
        change={"test/calc.js": (("expect(add(2, 3)).to.equal(5)", "expect(add(2, 3)).to.exist"),)},
        kind=K.ASSERTION_WEAKENED,
        file="test/calc.js",
        line=6,
    ),
    Gamed(
        name="should equality to kind",
        base=MOCHA,
        change={"test/calc.js": (("should.equal(5)", 'should.be.a("number")'),)},
        kind=K.ASSERTION_WEAKENED,
        file="test/calc.js",
        line=7,
    ),
    Gamed(
        name="digits lowered",
        base=JS_NEAR,
        change={T: (("0.3, 10", "0.3, 0"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=4,
    ),
    Gamed(
        name="assertion swallowed",
        base=JS,
        change={T: ((BOTH, "    try {\n" + BOTH + "    } catch {\n      // ignored\n    }\n"),)},
        kind=K.ASSERTION_SWALLOWED,
        file=T,
        line=7,
    ),
    Gamed(
        name="assertion swallowed in node:test",
        base=NODE,
        change={
            N: (
                (
                    "  assert.equal(add(2, 3), 5);\n",
                    "  try {\n    assert.equal(add(2, 3), 5);\n  } catch (e) {\n    console.log(e);\n  }\n",
                ),
            )
        },
        kind=K.ASSERTION_SWALLOWED,
        file=N,
        line=7,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="inline snapshot rewritten",
        base={**JS, T: INLINE},
        change={T: (("`5`", "`-1`"),)},
        kind=K.EXPECTATION_CHANGED,
        file=T,
        line=4,
    ),
    Gamed(
        name="module under test mocked",
        base=JS,
        change={
            T: (
                ('\ndescribe("calc"', '\nvi.mock("../src/calc", () => ({ add: (a, b) => a + b }));\n\ndescribe("calc"'),
            )
        },
        kind=K.SUBJECT_MOCKED,
        file=T,
        line=4,
    ),
    Gamed(
        name="function under test stubbed",
        base=JS,
        change={T: ((IT, IT + '    vi.spyOn(calc, "add").mockReturnValue(5);\n'),)},
        kind=K.SUBJECT_MOCKED,
        file=T,
        line=6,
    ),
    Gamed(
        name="function under test redefined in the test file",
        base=NODE,
        change={
            N: (
                (
                    'import { add, double } from "./calc.mjs";\n',
                    'import { double } from "./calc.mjs";\n\nconst add = (a, b) => a + b;\n',
                ),
            )
        },
        kind=K.SUBJECT_MOCKED,
        file=N,
        line=5,
        checks=NODE_CHECK,
        green=True,
    ),
]

AROUND = [
    Gamed(
        name="snapshot rewritten",
        base=JS_SNAP,
        change={"tests/__snapshots__/calc.test.js.snap": (('"sum": 5', '"sum": -1'),)},
        kind=K.SNAPSHOT_CHANGED,
        file="tests/__snapshots__/calc.test.js.snap",
        line=5,
    ),
    Gamed(
        name="snapshot file deleted",
        base=JS_SNAP,
        change={"tests/__snapshots__/calc.test.js.snap": None},
        kind=K.SNAPSHOT_CHANGED,
        file="tests/__snapshots__/calc.test.js.snap",
        line=1,
    ),
    Gamed(
        name="process.exit in a test",
        base=NODE,
        change={
            N: (
                (
                    'import { add, double } from "./calc.mjs";\n',
                    'import { add, double } from "./calc.mjs";\n\nprocess.exit(0);\n',
                ),
            )
        },
        kind=K.EXIT_FORCED,
        file=N,
        line=5,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="process.exit in the code",
        base=NODE,
        change={"calc.mjs": "process.exit(0);\n" + CALC},
        kind=K.EXIT_FORCED,
        file="calc.mjs",
        line=1,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="test run detected",
        base=NODE,
        change={
            "calc.mjs": (("  return a - b;", "  if (process.env.NODE_TEST_CONTEXT) return a + b;\n  return a - b;"),)
        },
        kind=K.TEST_DETECTED,
        file="calc.mjs",
        line=2,
        checks=NODE_CHECK,
        green=True,
    ),
    Gamed(
        name="jest detected",
        base=JS,
        change={
            "src/calc.js": (
                ("  return a - b;", "  if (process.env.JEST_WORKER_ID !== undefined) return 5;\n  return a - b;"),
            )
        },
        kind=K.TEST_DETECTED,
        file="src/calc.js",
        line=2,
    ),
    Gamed(
        name="|| true in the test script",
        base=NODE,
        change={"package.json": (("node --test", "node --test || true"),)},
        kind=K.COMMAND_CHANGED,
        file="package.json",
        line=3,
        checks=("npm test",),
    ),
    Gamed(
        name="test script that says yes",
        base=JS,
        change={"package.json": (("vitest run", "echo all tests passed"),)},
        kind=K.COMMAND_CHANGED,
        file="package.json",
        line=5,
        checks=("npm test",),
    ),
    Gamed(
        name="test script narrowed",
        base=JS,
        change={"package.json": (("vitest run", "vitest run -t doubles"),)},
        kind=K.COMMAND_CHANGED,
        file="package.json",
        line=5,
        checks=("npm test",),
    ),
    Gamed(
        name="passWithNoTests",
        base=TS,
        change={"package.json": (('"jest"', '"jest --passWithNoTests --testPathPattern nothing"'),)},
        kind=K.COMMAND_CHANGED,
        file="package.json",
        line=5,
        checks=("npm test",),
    ),
    Gamed(
        name="posttest that exits",
        base=JS,
        change={"package.json": (('"test": "vitest run"', '"test": "vitest run",\n    "pretest": "exit 0"'),)},
        kind=K.COMMAND_CHANGED,
        file="package.json",
        line=6,
        checks=("npm test",),
    ),
    Gamed(
        name="testPathIgnorePatterns in jest's configuration",
        base=JS_CONFIG,
        change={
            "jest.config.js": (("module.exports = {\n", 'module.exports = {\n  testPathIgnorePatterns: ["calc"],\n'),)
        },
        kind=K.CONFIG_CHANGED,
        file="jest.config.js",
        line=2,
    ),
    Gamed(
        name="coverage threshold lowered",
        base=JS_CONFIG,
        change={"jest.config.js": (("lines: 90", "lines: 10"),)},
        kind=K.COVERAGE_LOWERED,
        file="jest.config.js",
        line=3,
    ),
    Gamed(
        name="exclude in vitest's configuration",
        base={**JS, "vitest.config.ts": "export default {\n  test: {\n    globals: true,\n  },\n};\n"},
        change={"vitest.config.ts": (("globals: true,\n", 'globals: true,\n    exclude: ["tests/calc.test.js"],\n'),)},
        kind=K.CONFIG_CHANGED,
        file="vitest.config.ts",
        line=4,
    ),
    Gamed(
        name="runner's setup replaced in package.json",
        base={**JS, "package.json": PACKAGE.replace('"scripts"', '"jest": {\n    "verbose": true\n  },\n  "scripts"')},
        change={"package.json": (('"verbose": true', '"verbose": true,\n    "testMatch": ["**/nothing.js"]'),)},
        kind=K.CONFIG_CHANGED,
        file="package.json",
        line=6,
    ),
    Gamed(
        name="runner committed in front",
        base=JS,
        change={"bin/vitest": "#!/bin/sh\nexit 0\n"},
        kind=K.RUNNER_SHADOWED,
        file="bin/vitest",
        line=1,
    ),
    Gamed(
        name="GitLab CI touched",
        base={**JS, ".gitlab-ci.yml": "test:\n  script:\n    - npm test\n"},
        change={".gitlab-ci.yml": "test:\n  allow_failure: true\n  script:\n    - npm test\n"},
        kind=K.CI_CHANGED,
        file=".gitlab-ci.yml",
        line=2,
    ),
    Gamed(
        name="tests hidden from the record",
        base=JS,
        change={".gitignore": "node_modules/\n*.test.js\n"},
        kind=K.TESTS_HIDDEN,
        file=".gitignore",
        line=2,
    ),
]

GAMED = [*TESTS, *ASSERTIONS, *AROUND]
