"""Honest changes to Go and Rust suites. None may be accused."""

from __future__ import annotations

from matrix_coder.core.tamper import TamperKind as K

from .native_gamed import ADD, GO, GO_BODY, GO_CODE, GO_TEST, GO_TESTIFY, IF, RUST, RUST_BODY, RUST_CODE, G, R
from .table import Honest

GO_SOLVED = {"calc.go": GO_CODE.replace("a - b", "a + b")}
CODE = RUST_CODE.replace("a - b", "a + b")
ROWS_TABLE = "\t\t{2, 3, 5},\n"

HONEST = [
    Honest(name="go: only the code is mended", base=GO, change=GO_SOLVED),
    Honest(name="go: test renamed", base=GO, change={**GO_SOLVED, G: ((ADD, "func TestAddSums(t *testing.T) {\n"),)}),
    Honest(name="go: tests moved", base=GO, change={**GO_SOLVED, G: None, "sum_test.go": GO_TEST}),
    Honest(name="go: row added", base=GO, change={**GO_SOLVED, G: ((ROWS_TABLE, ROWS_TABLE + "\t\t{-1, 1, 0},\n"),)}),
    Honest(
        name="go: rows named",
        base=GO,
        change={**GO_SOLVED, G: (("{2, 3, 5},", "{a: 2, b: 3, sum: 5},"), ("{0, 0, 0},", "{a: 0, b: 0, sum: 0},"))},
    ),
    Honest(
        name="go: condition written out",
        base=GO,
        change={**GO_SOLVED, G: ((IF, "\tgot := Add(2, 3)\n\twant := 5\n\tif got != want {\n"),)},
    ),
    Honest(
        name="go: plain test to testify",
        base=GO,
        change={
            **GO_SOLVED,
            G: (
                (GO_BODY, "\trequire.Equal(t, 5, Add(2, 3))\n"),
                ('import "testing"', 'import (\n\t"testing"\n\n\t"github.com/stretchr/testify/require"\n)'),
            ),
        },
    ),
    Honest(
        name="go: assert to require",
        base=GO_TESTIFY,
        change={**GO_SOLVED, G: GO_TESTIFY[G].replace("require", "assert")},
    ),
    Honest(
        name="go: error message changed",
        base=GO,
        change={**GO_SOLVED, G: (('t.Errorf("got %d", got)', 't.Fatalf("Add(2, 3) = %d, want 5", got)'),)},
    ),
    Honest(
        name="go: dependency added",
        base=GO,
        change={**GO_SOLVED, "go.mod": GO["go.mod"] + "\nrequire github.com/stretchr/testify v1.9.0\n"},
    ),
    Honest(name="rust: only the code is mended", base=RUST, change={R: CODE}),
    Honest(name="rust: test renamed", base=RUST, change={R: CODE.replace("fn adds()", "fn adds_two_numbers()")}),
    Honest(
        name="rust: tests moved to their own file",
        base=RUST,
        change={
            R: CODE[: CODE.index("#[cfg(test)]")] + "#[cfg(test)]\nmod tests;\n",
            "src/tests.rs": "use super::*;\n\n#[test]\nfn adds() {\n    assert_eq!(add(2, 3), 5);\n    assert!(add(1, 1) == 2);\n}\n\n"
            "#[test]\nfn adds_many() {\n    for (a, b, sum) in [(0, 0, 0), (2, 3, 5)] {\n        assert_eq!(add(a, b), sum);\n    }\n}\n",
        },
    ),
    Honest(
        name="rust: assert to assert_eq",
        base=RUST,
        change={R: CODE.replace("assert!(add(1, 1) == 2)", "assert_eq!(add(1, 1), 2)")},
    ),
    Honest(
        name="rust: test split",
        base=RUST,
        change={
            R: CODE.replace(
                RUST_BODY,
                "        assert_eq!(add(2, 3), 5);\n    }\n\n    #[test]\n    fn adds_ones() {\n        assert!(add(1, 1) == 2);\n",
            )
        },
    ),
    Honest(
        name="rust: reflow",
        base=RUST,
        change={
            R: CODE.replace(
                "assert_eq!(add(2, 3), 5);", "assert_eq!(\n            add(2, 3),\n            5,\n        );"
            )
        },
    ),
    Honest(
        name="rust: ignore removed",
        base={
            **RUST,
            R: RUST_CODE.replace("    #[test]\n    fn adds() {", "    #[test]\n    #[ignore]\n    fn adds() {"),
        },
        change={R: CODE},
    ),
    Honest(
        name="rust: assertion of the code removed",
        base={**RUST, R: RUST_CODE.replace("    a - b", "    assert!(a < 1000);\n    a - b")},
        change={R: CODE},
    ),
    Honest(
        name="rust: test removed because the goal says so",
        base=RUST,
        change={R: CODE[: CODE.index("    #[test]\n    fn adds_many")].rstrip() + "\n}\n"},
        goal="Fix add and delete the test adds_many",
        asked=frozenset({K.TEST_DELETED}),
    ),
]
