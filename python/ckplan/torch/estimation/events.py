"""The buffers that a plan of a joint graph makes and frees, in the order of its runs.

The rules are those of docs/joint-graphs.md: a run makes new versions of what its operation writes,
and a version lives until its last read before the next run of the same operation. The last version
of a result stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ckplan.torch.estimation.allocator import Event
from ckplan.torch.graph import VALUE, JointGraph


@dataclass
class _Version:
    """What one run made of a value. ``last`` is the position of the last run that needs it."""

    buffer: int
    bytes: int
    last: int


@dataclass(frozen=True)
class Trace:
    """The events of a step, and the buffers that are left at its end with the values they hold."""

    events: list[Event]
    left: dict[int, int]
    num_buffers: int


def trace(graph: JointGraph, steps: Sequence[int]) -> Trace:
    """Returns what the runs ``steps``, which are ids of operations, allocate and free."""
    versions: dict[int, _Version] = {}
    made: list[list[_Version]] = []
    for position, step in enumerate(steps):
        operation = graph.operations[step]
        for value in operation.reads:
            if value in versions:
                versions[value].last = position
        new = []
        for value in operation.writes:
            row = graph.values[value]
            if row.alias_of is not None:
                if row.alias_of in versions:
                    versions[value] = versions[row.alias_of]
                    versions[value].last = position
            elif row.kind == VALUE:
                version = _Version(0, row.bytes, position)
                versions[value] = version
                new.append(version)
        made.append(new)
    for value in graph.results:
        if value in versions:
            versions[value].last = len(steps)
    return _in_order(made, {value: versions[value] for value in graph.results if value in versions})


def _in_order(made: list[list[_Version]], results: dict[int, _Version]) -> Trace:
    ends: list[list[_Version]] = [[] for _ in range(len(made) + 1)]
    for version in (version for new in made for version in new):
        ends[version.last].append(version)
    events, count = [], 0
    for position, new in enumerate(made):
        for version in new:
            version.buffer = count
            count += 1
            events.append(Event(version.buffer, version.bytes))
        events += [Event(version.buffer, -version.bytes) for version in ends[position]]
    left = {version.buffer: value for value, version in results.items()}
    return Trace(events, left, count)


def peak(events: Iterable[Event]) -> tuple[int, int]:
    """Returns the most bytes that live at once, and the position of the first event with them."""
    live = most = at = 0
    for position, event in enumerate(events):
        live += event.bytes
        if live > most:
            most, at = live, position
    return most, at
