"""Runs the program ``ckplan``, and returns its output and its messages as data."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from ckplan.program import find_program

INFEASIBLE = 4
"""The program's exit code if no plan fits the budget."""


class PlanError(RuntimeError):
    """The program failed to make a plan. The text is its message.

    ``exit_code`` is the program's, as docs/plan-format.md lists them. ``kind``, ``remedy`` and
    ``least_bytes`` are those of the program's message (``ckplan schema message``); ``kind`` is
    empty if the program ended without a message.
    """

    def __init__(
        self,
        message: str,
        exit_code: int,
        kind: str = "",
        remedy: dict[str, Any] | None = None,
        least_bytes: int | None = None,
    ):
        super().__init__(message)
        self.exit_code = exit_code
        self.kind = kind
        self.remedy = remedy
        self.least_bytes = least_bytes


class InfeasibleError(PlanError):
    """No plan fits the budget. ``least_bytes`` is the smallest budget that works, if known."""


@dataclass(frozen=True)
class ProgramResult:
    """The output of one run of the program, its messages and its exit code."""

    output: bytes
    messages: list[dict[str, Any]]
    """In the order they were printed, as ``ckplan schema message`` describes them."""
    exit_code: int

    def warnings(self) -> list[str]:
        """Returns the warnings, one line each."""
        return [line["message"] for line in self.messages if line["level"] == "warning"]

    def error(self) -> PlanError:
        """Returns the error of a run whose ``exit_code`` is not 0."""
        errors = [line for line in self.messages if line["level"] == "error"]
        if not errors:  # For example, the program was killed.
            said = [line["message"] for line in self.messages if line["level"] == "text"]
            ended = f"ckplan exited with code {self.exit_code}"
            return PlanError("\n".join(said) or ended, self.exit_code)
        error = errors[-1]
        kind = InfeasibleError if error["kind"] == "infeasible" else PlanError
        return kind(
            "\n  ".join([error["message"], *error["notes"]]),
            self.exit_code,
            error["kind"],
            error["remedy"],
            error["least_bytes"],
        )


def run_program(*arguments: str, stdin: bytes | None = None) -> ProgramResult:
    """Runs the program with these arguments. Raises ProgramNotFoundError."""
    done = subprocess.run(
        [str(find_program()), *arguments, "--messages=json"],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    lines = done.stderr.decode(errors="replace").splitlines()
    return ProgramResult(done.stdout, [_message(line) for line in lines], done.returncode)


def _message(line: str) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    # Libraries, the system and older versions of the program print plain text.
    is_known = isinstance(message, dict) and "level" in message
    return message if is_known else {"level": "text", "message": line}
