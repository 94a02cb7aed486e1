"""Implements ``ckplan.plan``: runs ``ckplan plan``, and returns the plan as a dictionary."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ckplan.invocation import run_program

# plan() sets these flags itself.
_RESERVED = frozenset({"output", "emit", "format", "messages", "color", "quiet", "help", "verbose"})


class PlanWarning(UserWarning):
    """A warning that the program printed while it made a plan."""


def plan(
    source: str | os.PathLike[str] | bytes | Mapping[str, Any],
    budget: int | str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Plans a training step, and returns the plan with the keys of docs/plan-format.md.

    ``source`` is the path of an ONNX model or of a graph file, the bytes of either, or a graph as a
    dictionary. Joint graphs work too (docs/joint-graphs.md).

    ``budget`` is a number of bytes, or a value of ``--budget``: ``"16GiB"``, ``"60%"``, ``"min"``,
    ``"balanced"``. Without one, the plan is that of ``ckplan plan`` without ``--budget``.

    ``options`` are the long flags of ``ckplan plan``, with ``_`` for ``-``: ``algo="best"``,
    ``budget_total="24GiB"``, ``time_limit="60s"``. True gives a flag without a value, None and
    False omit the flag, a list repeats it, and a dictionary repeats it as NAME=VALUE:
    ``dim={"batch": 64}``.

    Raises InfeasibleError if no plan fits the budget, PlanError for any other error of the
    program, and ProgramNotFoundError. The program's warnings become PlanWarnings.
    """
    flags = _flags({"budget": budget, **options})
    if isinstance(source, Mapping):
        return _run("-", flags, json.dumps(source).encode())
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _plan_bytes(bytes(source), flags)
    path = os.fspath(source)
    # "-" and "-x" would be read as standard input and as a flag.
    return _run(os.path.join(".", path) if path.startswith("-") else path, flags)


def _plan_bytes(content: bytes, flags: list[str]) -> dict[str, Any]:
    # A graph file is a JSON object. An ONNX file begins with a small field number, never with "{".
    if content.lstrip()[:1] == b"{":
        return _run("-", flags, content)
    with tempfile.TemporaryDirectory(prefix="ckplan-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(content)
        return _run(str(path), flags)


def _run(model: str, flags: list[str], graph: bytes | None = None) -> dict[str, Any]:
    answer = run_program("plan", model, "--no-config", "--output=-", *flags, stdin=graph)
    if answer.exit_code != 0:
        raise answer.error()
    for warning in answer.warnings():
        warnings.warn(warning, PlanWarning, 4)
    plan: dict[str, Any] = json.loads(answer.output)
    return plan


def _flags(options: Mapping[str, Any]) -> list[str]:
    return [flag for name, value in options.items() for flag in _flag(name, value)]


def _flag(name: str, value: Any) -> Iterable[str]:
    if name in _RESERVED:
        raise TypeError(f"plan() does not accept {name!r}: it returns the plan as a dictionary")
    flag = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, Mapping):
        return [f"{flag}={key}={_text(name, item)}" for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [f"{flag}={_text(name, item)}" for item in value]
    return [f"{flag}={_text(name, value)}"]


def _text(name: str, value: Any) -> str:
    # Floats are rejected: 0.6 could mean 60% or 0.6 bytes.
    if isinstance(value, (str, int, os.PathLike)) and not isinstance(value, bool):
        return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    share = share_meant(value) if name.startswith("budget") else None
    hint = f'; did you mean "{share}"?' if share else ""
    raise TypeError(f"option {name!r} must be a string or a whole number, not {value!r}{hint}")


def share_meant(value: Any) -> str | None:
    """Returns the percentage that a number between 0 and 1 probably stands for: "60%" for 0.6."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return f"{number * 100:.4g}%" if 0 < number < 1 else None
