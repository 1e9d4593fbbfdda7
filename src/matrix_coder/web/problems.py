"""Errors as JSON: a stable code, what was expected and found, what to do next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from ..core.errors import InputError, MatrixError, RunUnknown, StoreError, WorkspaceBusy
from .shapes import Problem

_STATUS: tuple[tuple[type[MatrixError], int], ...] = (
    (RunUnknown, 404),
    (WorkspaceBusy, 409),
    (InputError, 400),
    (StoreError, 503),
)


class NotHere(MatrixError):
    """The run has no such step, check or file."""

    code = "not_here"


class CommandUnknown(MatrixError):
    """No command has that name."""

    code = "command_unknown"


_STATUS_HERE: dict[type[MatrixError], int] = {NotHere: 404, CommandUnknown: 404}


def problem_of(error: MatrixError) -> Problem:
    """The error as it is sent."""
    return Problem(code=error.code, message=f"expected {error.expected}; found {error.found}", next=error.remedy)


def status_of(error: MatrixError) -> int:
    """The HTTP status of an error."""
    here = _STATUS_HERE.get(type(error))
    return here or next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def _answer(status: int, problem: Problem) -> Response:
    return JSONResponse(problem.model_dump(), status_code=status)


def _invalid(error: RequestValidationError) -> Problem:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return Problem(code="request", message=f"expected a valid {where}; found: {first['msg']}", next="mend the request")


class ProblemRoute(APIRoute):
    """A route whose expected errors are answers."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's own handler, with expected errors turned into JSON."""
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except MatrixError as error:
                return _answer(status_of(error), problem_of(error))
            except RequestValidationError as error:
                return _answer(422, _invalid(error))
            except sqlite3.Error as error:
                busy = Problem(code="store", message=f"expected a usable run store; found {error}", next="try again")
                return _answer(503, busy)

        return answer
