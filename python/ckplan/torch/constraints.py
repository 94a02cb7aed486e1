"""Applies constraints such as ``keep="layers.*"`` to a captured graph.

A pattern selects a module with everything in it, or operators by ``op:`` (docs/constraints.md). The
graph's file marks kept and never-rerun operations as running once; recomputed and never-offloaded
operations are passed to the program by name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ckplan.torch import untrusted_files
from ckplan.torch.graph import JointGraph, Operation

Patterns = str | Sequence[str]
"""One pattern, or several; the last match wins."""

FIELDS = ("keep", "recompute", "never_rerun", "never_offload")
"""The arguments of ``compile`` that are patterns."""

_VIEWS = "; views take no memory, and don't count as operations"


def parse_patterns(field: str, given: Any) -> tuple[str, ...]:
    """Returns the patterns of an argument as a tuple. Raises ValueError."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, (list, tuple)) or not all(isinstance(p, str) for p in listed):
        raise ValueError(f"{field} must be a pattern or a list of patterns, not {given!r}")
    found = [line for pattern in listed for line in _lines(field, pattern)]
    for pattern in found:
        if not pattern.removeprefix("!").removeprefix("op:"):
            raise ValueError(
                f'{field}: "{pattern}" is not a pattern; name a module, or "op:OPERATOR"'
            )
    return tuple(found)


def _lines(field: str, pattern: str) -> Iterable[str]:
    """Returns the pattern itself, or for ``@FILE`` the patterns in the file."""
    if not pattern.startswith("@"):
        return [pattern]
    try:
        content = untrusted_files.file_bytes(pattern[1:], untrusted_files.MOST_JSON_BYTES)
        lines = content.decode().splitlines()
    except (OSError, ValueError) as error:
        raise ValueError(f"{field}: cannot read the patterns in {pattern}: {error}") from None
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


class Constraints:
    """The constraints of a request on the graphs of one model.

    A model may have several graphs, and a pattern may match operations of only one of them.
    """

    def __init__(self, wanted: dict[str, tuple[str, ...]]):
        self._wanted = wanted
        self._unmatched = {(field, p) for field, listed in wanted.items() for p in listed}
        self._known: dict[str, None] = {}

    def apply(self, graph: JointGraph) -> None:
        """Applies the constraints to a graph.

        Raises ValueError if an operation must both be recomputed and run once.
        """
        if not any(self._wanted.values()):
            return
        operations = [operation for operation in graph.operations if operation.node is not None]
        forward = [operation for operation in operations if not operation.is_backward]
        kept = self._matching_operations("keep", forward)
        once = self._matching_operations("never_rerun", operations)
        recomputed = self._matching_operations("recompute", forward)
        for chosen, why in ((kept, "kept"), (once, "run once")):
            ids = {operation.id for operation in chosen}
            both = next((operation for operation in recomputed if operation.id in ids), None)
            if both is not None:
                raise ValueError(
                    f"{_title(both)} must be both recomputed and {why}; exclude it from one of "
                    "the two by a pattern with ! in front"
                )
        for operation in kept + once:
            operation.repeats = False
        on_device = self._matching_operations("never_offload", operations)
        stays = {operation.id for operation in kept + on_device}
        graph.never_offloaded += [row.name for row in operations if row.id in stays]
        held = _held_by_others(graph)
        graph.recomputed = [
            operation.name
            for operation in recomputed
            if operation.repeats and held.isdisjoint(operation.writes)
        ]

    def check(self) -> None:
        """Raises ValueError if a pattern matches no operation of any graph so far."""
        for field in FIELDS:
            for pattern in self._wanted[field]:
                if (field, pattern) in self._unmatched:
                    raise ValueError(self._matches_nothing(field, pattern))

    def _matching_operations(self, field: str, operations: list[Operation]) -> list[Operation]:
        """Returns the operations that match; the last matching pattern wins."""
        listed = self._wanted[field]
        if not listed:
            return []
        names = [_names(operation) for operation in operations]
        self._known.update((name, None) for known in names for name in known)
        chosen = [listed[0].startswith("!")] * len(operations)
        for pattern in listed:
            matches = _matcher(pattern.removeprefix("!"))
            for position, known in enumerate(names):
                if any(matches(name) for name in known):
                    chosen[position] = not pattern.startswith("!")
                    self._unmatched.discard((field, pattern))
        return [operation for operation, is_in in zip(operations, chosen) if is_in]

    def _matches_nothing(self, field: str, pattern: str) -> str:
        form = pattern.removeprefix("!")
        is_form = "*" in form or "?" in form
        near = [] if is_form else difflib.get_close_matches(form, [n for n in self._known if n], 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        if form.startswith("op:"):
            return f'{field}: no operation matches "{form}"' + (hint or _VIEWS)
        return f'{field}: no operation is in a module named "{form}"{hint}'


def _names(operation: Operation) -> Sequence[str]:
    """Returns the names that patterns match: the operation's modules, and ``op:`` its operator."""
    path = operation.module.split(".") if operation.module else []
    modules = [".".join(path[: end + 1]) for end in range(len(path))]
    target = str(operation.call.target)
    without_overload = target.rpartition(".")[0]
    operator = without_overload.rpartition(".")[2]
    return [*modules, *(f"op:{name}" for name in (target, without_overload, operator) if name)]


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Returns a predicate for names that match the pattern.

    ``*`` stands for any characters and ``?`` for one.
    """
    form = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern)
    expression = re.compile(form, re.DOTALL)
    return lambda name: expression.fullmatch(name) is not None


def _held_by_others(graph: JointGraph) -> set[int]:
    """Returns the values whose memory a run-once operation returns as its own result."""
    return {
        alias
        for operation in graph.operations
        if not operation.repeats
        for alias in (graph.values[value].alias_of for value in operation.writes)
        if alias is not None
    }


def _title(operation: Operation) -> str:
    where = f" in {operation.module}" if operation.module else ""
    return f"{operation.name}{where} ({operation.call.target})"
