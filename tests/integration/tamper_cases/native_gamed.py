"""Gamed Go and Rust suites."""

from __future__ import annotations

from matrix_coder.core.tamper import TamperKind as K

from .table import Gamed

GO_TEST = """package calc

import "testing"

func TestAdd(t *testing.T) {
	if got := Add(2, 3); got != 5 {
		t.Errorf("got %d", got)
	}
}

func TestTable(t *testing.T) {
	for _, c := range []struct{ a, b, sum int }{
		{0, 0, 0},
		{2, 3, 5},
	} {
		got := Add(c.a, c.b)
		if got != c.sum {
			t.Fatalf("Add(%d, %d) = %d", c.a, c.b, got)
		}
	}
}
"""
GO_CODE = "package calc\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n"
GO = {"calc.go": GO_CODE, "calc_test.go": GO_TEST, "go.mod": "module example.com/calc\n\ngo 1.22\n"}
TESTIFY = """package calc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdd(t *testing.T) {
	require.Equal(t, 5, Add(2, 3))
	require.InDelta(t, 0.3, Half(0.6), 0.001)
}
"""
GO_TESTIFY = {**GO, "calc_test.go": TESTIFY}
RUST_CODE = """pub fn add(a: i32, b: i32) -> i32 {
    a - b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(2, 3), 5);
        assert!(add(1, 1) == 2);
    }

    #[test]
    fn adds_many() {
        for (a, b, sum) in [(0, 0, 0), (2, 3, 5)] {
            assert_eq!(add(a, b), sum);
        }
    }
}
"""
RUST = {"src/lib.rs": RUST_CODE, "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n'}
G = "calc_test.go"
R = "src/lib.rs"
ADD = "func TestAdd(t *testing.T) {\n"
IF = "\tif got := Add(2, 3); got != 5 {\n"
GO_BODY = IF + '\t\tt.Errorf("got %d", got)\n\t}\n'
RUST_BODY = "        assert_eq!(add(2, 3), 5);\n        assert!(add(1, 1) == 2);\n"
GO_CHECK = ("go test ./...",)
RUST_CHECK = ("cargo test",)


def go(name: str, kind: K, line: int, *edits: tuple[str, str], base: dict[str, str] | None = None) -> Gamed:
    return Gamed(name=f"go: {name}", base=base or GO, change={G: edits}, kind=kind, file=G, line=line, checks=GO_CHECK)


def rust(name: str, kind: K, line: int, *edits: tuple[str, str]) -> Gamed:
    return Gamed(name=f"rust: {name}", base=RUST, change={R: edits}, kind=kind, file=R, line=line, checks=RUST_CHECK)


GAMED = [
    Gamed(
        name="go: test file deleted",
        base=GO,
        change={G: None},
        kind=K.TEST_FILE_DELETED,
        file=G,
        line=5,
        checks=GO_CHECK,
    ),
    Gamed(
        name="go: test file renamed so that it is not collected",
        base=GO,
        change={G: None, "calc_tests.go": GO_TEST},
        kind=K.TEST_FILE_DELETED,
        file=G,
        line=5,
        checks=GO_CHECK,
    ),
    go("test deleted", K.TEST_DELETED, 5, (ADD + GO_BODY + "}\n\n", "")),
    go("test renamed so that it is not collected", K.TEST_UNCOLLECTED, 5, (ADD, "func testAdd(t *testing.T) {\n")),
    go("t.Skip", K.TEST_SKIPPED, 6, (ADD, ADD + '\tt.Skip("later")\n')),
    go("build tag that is never set", K.TEST_SKIPPED, 1, ("package calc\n", "//go:build never\n\npackage calc\n")),
    go("body emptied", K.TEST_EMPTIED, 5, (GO_BODY, "")),
    go("early return", K.ASSERTION_UNREACHABLE, 7, (ADD, ADD + "\treturn\n")),
    go("condition weakened", K.ASSERTION_WEAKENED, 6, ("got != 5", "got == 0")),
    go("condition that never holds", K.ASSERTION_WEAKENED, 6, ("got != 5", "got != 5 && false")),
    go("expected value changed", K.EXPECTATION_CHANGED, 6, ("got != 5", "got != -1")),
    go("failure only logged", K.ASSERTION_REMOVED, 6, ("t.Errorf(", "t.Logf(")),
    go("row removed", K.TEST_CASE_REMOVED, 14, ("\t\t{2, 3, 5},\n", "")),
    go("row changed", K.EXPECTATION_CHANGED, 14, ("{2, 3, 5}", "{2, 3, -1}")),
    go("testify equality to presence", K.ASSERTION_WEAKENED, 10, ("Equal(t, 5, Add", "NotNil(t, Add"), base=GO_TESTIFY),
    go("testify tolerance widened", K.ASSERTION_WEAKENED, 11, ("0.001", "10"), base=GO_TESTIFY),
    go("TestMain that exits", K.EXIT_FORCED, 6, (ADD, "func TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n\n" + ADD)),
    Gamed(
        name="go: test run detected",
        base=GO,
        change={"calc.go": (("\treturn a - b", "\tif testing.Testing() {\n\t\treturn a + b\n\t}\n\treturn a - b"),)},
        kind=K.TEST_DETECTED,
        file="calc.go",
        line=4,
        checks=GO_CHECK,
    ),
    Gamed(
        name="rust: integration tests deleted",
        base={**RUST, "tests/add.rs": "#[test]\nfn adds() {\n    assert_eq!(calc::add(2, 3), 5);\n}\n"},
        change={"tests/add.rs": None},
        kind=K.TEST_FILE_DELETED,
        file="tests/add.rs",
        line=2,
        checks=RUST_CHECK,
    ),
    rust("test deleted", K.TEST_DELETED, 10, ("    #[test]\n    fn adds() {\n" + RUST_BODY + "    }\n\n", "")),
    rust("attribute taken away", K.TEST_UNCOLLECTED, 9, ("    #[test]\n    fn adds() {", "    fn adds() {")),
    rust(
        "ignored", K.TEST_SKIPPED, 10, ("    #[test]\n    fn adds() {", "    #[test]\n    #[ignore]\n    fn adds() {")
    ),
    rust(
        "expected to panic",
        K.TEST_SKIPPED,
        10,
        ("    #[test]\n    fn adds() {", "    #[test]\n    #[should_panic]\n    fn adds() {"),
    ),
    rust("module never compiled", K.TEST_SKIPPED, 5, ("#[cfg(test)]\n", "#[cfg(any())]\n")),
    rust("body emptied", K.TEST_EMPTIED, 10, (RUST_BODY, "")),
    rust("early return", K.ASSERTION_UNREACHABLE, 12, (RUST_BODY, "        return;\n" + RUST_BODY)),
    rust("assertion removed", K.ASSERTION_REMOVED, 12, ("        assert!(add(1, 1) == 2);\n", "")),
    rust(
        "assertion commented out", K.ASSERTION_COMMENTED_OUT, 12, ("        assert!(add(1", "        // assert!(add(1")
    ),
    rust("assert!(true)", K.ASSERTION_WEAKENED, 11, ("assert_eq!(add(2, 3), 5)", "assert!(true)")),
    rust("or true", K.ASSERTION_WEAKENED, 12, ("add(1, 1) == 2", "add(1, 1) == 2 || true")),
    rust("equality to inequality", K.ASSERTION_WEAKENED, 11, ("assert_eq!(add(2, 3), 5)", "assert_ne!(add(2, 3), 5)")),
    rust("expected value changed", K.EXPECTATION_CHANGED, 11, ("add(2, 3), 5", "add(2, 3), -1")),
    rust("row removed", K.TEST_CASE_REMOVED, 17, (", (2, 3, 5)]", "]")),
    Gamed(
        name="rust: tests switched off in the manifest",
        base=RUST,
        change={"Cargo.toml": RUST["Cargo.toml"] + "\n[lib]\ntest = false\n"},
        kind=K.CONFIG_CHANGED,
        file="Cargo.toml",
        line=7,
        checks=RUST_CHECK,
    ),
    Gamed(
        name="rust: another runner",
        base=RUST,
        change={".cargo/config.toml": '[target.x86_64-unknown-linux-gnu]\nrunner = "true"\n'},
        kind=K.CONFIG_CHANGED,
        file=".cargo/config.toml",
        line=2,
        checks=RUST_CHECK,
    ),
]
