"""The buffers that a plan of a joint graph allocates and frees, in the order of its runs.

By the rules of docs/joint-graphs.md, a run makes new versions of the values that its operation
writes, and a version lives until its last read before the next run of the same operation. The last
version of a result stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ckplan.torch.estimation.allocator import Event
from ckplan.torch.graph import VALUE, JointGraph


@dataclass
class Version:
    """The version of a value that one run made."""

    value: int
    bytes: int
    made: int
    """The position of the run that makes it."""
    last: int
    """The position of the last run that needs it; the number of runs if it stays."""


@dataclass(frozen=True)
class Trace:
    """The events of a step, and the buffers left at its end, with their values."""

    events: list[Event]
    left: dict[int, int]
    num_buffers: int


def versions(graph: JointGraph, steps: Sequence[int], kinds: Collection[str]) -> list[Version]:
    """Returns the versions made by the runs ``steps``, which are ids of operations, in order.

    Lists only values of the given kinds.
    """
    current: dict[int, Version] = {}
    made: list[Version] = []
    for position, step in enumerate(steps):
        operation = graph.operations[step]
        for value in operation.reads:
            if value in current:
                current[value].last = position
        for value in operation.writes:
            row = graph.values[value]
            if row.alias_of is not None:
                if row.alias_of in current:
                    current[value] = current[row.alias_of]
                    current[value].last = position
            elif row.kind in kinds:
                version = Version(value, row.bytes, position, position)
                current[value] = version
                made.append(version)
    for value in graph.results:
        if value in current:
            current[value].last = len(steps)
    return made


def trace(
    graph: JointGraph, steps: Sequence[int], workspaces: Mapping[int, int] | None = None
) -> Trace:
    """Returns the allocations and frees of the runs ``steps``, which are ids of operations.

    ``workspaces``: the bytes that an operation temporarily needs besides its results, by its id.
    """
    workspaces = workspaces or {}
    all_versions = versions(graph, steps, (VALUE,))
    begins: list[list[int]] = [[] for _ in steps]
    ends: list[list[int]] = [[] for _ in range(len(steps) + 1)]
    for buffer, version in enumerate(all_versions):
        begins[version.made].append(buffer)
        ends[version.last].append(buffer)
    events = []
    num_buffers = len(all_versions)
    for position, new in enumerate(begins):
        events += [Event(buffer, all_versions[buffer].bytes) for buffer in new]
        workspace = workspaces.get(steps[position], 0)
        if workspace:
            events += [Event(num_buffers, workspace), Event(num_buffers, -workspace)]
            num_buffers += 1
        events += [Event(buffer, -all_versions[buffer].bytes) for buffer in ends[position]]
    left = {buffer: all_versions[buffer].value for buffer in ends[len(steps)]}
    return Trace(events, left, num_buffers)


def peak(events: Iterable[Event]) -> tuple[int, int]:
    """Returns the peak of live bytes, and the position of the first event that reaches it."""
    live = most = at = 0
    for position, event in enumerate(events):
        live += event.bytes
        if live > most:
            most, at = live, position
    return most, at
