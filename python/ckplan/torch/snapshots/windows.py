"""Divides a history into training steps, at the steps of an optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ckplan.torch.snapshots.snapshot_file import ALLOC, Event


@dataclass(frozen=True)
class Window:
    """A range of events; ``end`` is excluded."""

    begin: int
    end: int


def windows(events: Sequence[Event]) -> list[Window]:
    """Returns the parts of a history that allocate something outside of an optimizer's step.

    An optimizer is recognised by the Python stacks of its allocations. If these were not recorded,
    or it allocates nothing, the whole history is one part.
    """
    found, begin, has_own = [], 0, False
    for position, event in enumerate(events):
        if event.action != ALLOC:
            continue
        if not _is_of_optimizer(event.frames):
            has_own = True
            continue
        if has_own:
            found.append(Window(begin, position))
        begin, has_own = position + 1, False
    if has_own:
        found.append(Window(begin, len(events)))
    return found


def place(frames: Sequence[Any]) -> str:
    """Returns the innermost line of Python outside of PyTorch that led to an event, or ""."""
    for frame in frames:
        name, line, function = _frame(frame)
        if name.endswith(".py") and "/torch/" not in name:
            return f"{name.rpartition('/')[2]}:{line} {function}"
    return ""


def _is_of_optimizer(frames: Sequence[Any]) -> bool:
    for frame in frames:
        name, _, function = _frame(frame)
        if function == "step" and "optim" in name and name.endswith(".py"):
            return True
    return False


def _frame(frame: Any) -> tuple[str, int, str]:
    if not isinstance(frame, dict):
        return "", 0, ""
    name, line, function = (frame.get(key) for key in ("filename", "line", "name"))
    return (
        name if isinstance(name, str) else "",
        line if isinstance(line, int) else 0,
        function if isinstance(function, str) else "",
    )
