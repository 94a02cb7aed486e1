"""One call of the program ``ckplan``: what it writes, and its messages as data."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from ckplan.program import find_program

INFEASIBLE = 4
"""The exit code of the program where no plan fits the budget."""


class PlanError(RuntimeError):
    """The program made no plan. The text is its message.

    ``exit_code`` is the program's, as docs/plan-format.md lists them. ``kind``, ``remedy`` and
    ``least_bytes`` are those of the program's message (``ckplan schema message``); ``kind`` is
    empty where the program could not say more than its exit code.
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
    """No plan fits the budget. ``least_bytes`` is the least that does, if the program knows it."""


@dataclass(frozen=True)
class Answer:
    """What the program has written, and how it ended."""

    output: bytes
    messages: list[dict[str, Any]]
    """As ``ckplan schema message`` describes them, in the order in which they came."""
    exit_code: int

    def warnings(self) -> list[str]:
        """Its warnings, a line each."""
        return [line["message"] for line in self.messages if line["level"] == "warning"]

    def refusal(self) -> PlanError:
        """The error that it ended with, if ``exit_code`` is not 0."""
        errors = [line for line in self.messages if line["level"] == "error"]
        if not errors:  # It was killed, for example.
            said = [line["message"] for line in self.messages if line["level"] == "text"]
            ended = f"ckplan ended with {self.exit_code}"
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


def ask(*arguments: str, stdin: bytes | None = None) -> Answer:
    """Runs the program. Raises ProgramNotFoundError."""
    done = subprocess.run(
        [str(find_program()), *arguments, "--messages=json"],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
    lines = done.stderr.decode(errors="replace").splitlines()
    return Answer(done.stdout, [_message(line) for line in lines], done.returncode)


def _message(line: str) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    # What a library, the system or an older program writes is a text without a known meaning.
    is_known = isinstance(message, dict) and "level" in message
    return message if is_known else {"level": "text", "message": line}
