"""Every error this package raises, on one screen.

MatrixError                 code, what was expected, what was found, what to do
├── InputError              the person's input can't be used; exit code 2
│   ├── UnknownPersona      a role, lens, domain or workflow outside the catalogue
│   ├── WorkspaceRefused    the path is no repository, or a place runs never work in
│   ├── CheckNotFound       the check command does not exist
│   ├── ModelMissing        the host has no model to talk to
│   ├── WorkspaceBusy       another live run holds the workspace
│   ├── RunUnknown          no run with that id
│   └── EngineMissing       the durable engine is not installed
├── StoreError              the run store can't be used right now
│   ├── StoreUnwritable     its directory can't be written
│   ├── StoreTooNew         a newer version wrote it
│   └── StoreUntrusted      it holds rows that this program did not write
└── DefinitionError         a persona or workflow file is malformed
"""

from __future__ import annotations


class MatrixError(Exception):
    """A broken promise, told in one line: what was expected, what was found, what to do."""

    code = "matrix_error"
    exit_code = 1

    def __init__(self, expected: str, found: str, remedy: str) -> None:
        super().__init__(expected, found, remedy)
        self.expected = expected
        self.found = found
        self.remedy = remedy

    def __str__(self) -> str:
        return f"expected {self.expected}; found {self.found}; {self.remedy}"


class InputError(MatrixError):
    """The person's input can't be used."""

    code = "input"
    exit_code = 2


class UnknownPersona(InputError):
    """A role, lens, domain or workflow outside the catalogue."""

    code = "unknown_persona"


class WorkspaceRefused(InputError):
    """The path is no repository, or a place where runs never work."""

    code = "workspace_refused"


class CheckNotFound(InputError):
    """The check command does not exist."""

    code = "check_not_found"


class ModelMissing(InputError):
    """The host has no model to talk to."""

    code = "model_missing"


class WorkspaceBusy(InputError):
    """Another live run holds the workspace."""

    code = "workspace_busy"


class RunUnknown(InputError):
    """No run has that id."""

    code = "run_unknown"


class EngineMissing(InputError):
    """The durable engine is not installed."""

    code = "engine_missing"


class StoreError(MatrixError):
    """The run store can't be used right now."""

    code = "store"
    exit_code = 2


class StoreUnwritable(StoreError):
    """The directory of the store can't be written."""

    code = "store_unwritable"


class StoreTooNew(StoreError):
    """A newer version of this program wrote the store."""

    code = "store_too_new"


class StoreUntrusted(StoreError):
    """The store holds rows that this program did not write."""

    code = "store_untrusted"


class DefinitionError(MatrixError):
    """A persona or workflow file is malformed."""

    code = "definition"
