"""Compares the memory of a planned training step with a recorded memory snapshot.

Matched allocations divide the history into *moments*, one for each run of the plan that allocates.
At each moment the bytes in memory can differ for four reasons: an allocation was not planned, a
planned one was not made, or a planned one was freed later or earlier.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ckplan.torch.errors import SnapshotError
from ckplan.torch.snapshots.alignment import align, overlap
from ckplan.torch.snapshots.comparison import (
    EARLIER,
    LATER,
    NOT_MADE,
    NOT_PLANNED,
    Comparison,
    Difference,
    Module,
    Moment,
)
from ckplan.torch.snapshots.planned_memory import Planned
from ckplan.torch.snapshots.snapshot_file import (
    ALLOC,
    FREE,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    Snapshot,
)
from ckplan.torch.snapshots.windows import Window, place, windows


def compare(snapshot: Snapshot, plan: Planned, step: int | None = None) -> Comparison:
    """Compares one step of a history with its plan. Raises SnapshotError.

    ``step`` counts from 0; by default it is the last step with the most allocations of planned
    sizes.
    """
    found = windows(snapshot.events)
    sizes = [version.bytes for version in plan.versions]
    chosen = _choose_window(snapshot, found, sizes, step)
    matched = _Matched(snapshot, found[chosen], plan)
    if not matched.pairs:
        raise SnapshotError(
            f"step {chosen} has no allocation of a planned size, so it is not the planned step"
        )
    return _SideBySide(matched, plan).comparison(snapshot, chosen, len(found))


def _choose_window(
    snapshot: Snapshot, found: list[Window], sizes: list[int], step: int | None
) -> int:
    if not found:
        raise SnapshotError("its history has no allocation outside of an optimizer's step")
    if step is not None:
        if not 0 <= step < len(found):
            raise SnapshotError(f"it has no step {step}: its steps are 0 to {len(found) - 1}")
        return step
    scores = [
        overlap(sizes, [e.bytes for e in snapshot.events[w.begin : w.end] if e.action == ALLOC])
        for w in found
    ]
    return max(range(len(found)), key=lambda position: (scores[position], position))


@dataclass
class _Recorded:
    """An allocation of the history: the positions of its events, and its bytes."""

    made: int
    freed: int
    bytes: int
    place: str


class _Matched:
    """The allocations of a recorded step, and which of them are planned."""

    def __init__(self, snapshot: Snapshot, window: Window, plan: Planned):
        found = _allocations(snapshot, window)
        pairs = align([v.bytes for v in plan.versions], [row.bytes for row in found])
        # Allocations before the first planned one come before the step.
        first, last = (pairs[0][1], pairs[-1][1]) if pairs else (0, len(found) - 1)
        self.recorded = found[first : last + 1]
        self.window = Window(found[first].made, found[last].made + 1)
        self.pairs = {version: allocation - first for version, allocation in pairs}
        self._runs: list[int] = []
        self._events: list[int] = []
        for version, allocation in self.pairs.items():
            run = plan.versions[version].made
            if self._runs and self._runs[-1] == run:
                self._events[-1] = self.recorded[allocation].made
                continue
            self._runs.append(run)
            self._events.append(self.recorded[allocation].made)

    @property
    def count(self) -> int:
        """Returns the number of moments."""
        return len(self._runs)

    def run(self, moment: int) -> int:
        """Returns the run of a moment; -1 for the time before the first moment."""
        return self._runs[moment] if moment >= 0 else -1

    def of_run(self, run: int) -> int:
        """Returns the last moment at or before a run."""
        return bisect.bisect_right(self._runs, run) - 1

    def of_event(self, event: int) -> int:
        """Returns the last moment that ends at or before an event.

        A moment begins with the first allocation of its run, and ends with the last.
        """
        return bisect.bisect_right(self._events, event) - 1


def _allocations(snapshot: Snapshot, window: Window) -> list[_Recorded]:
    found: list[_Recorded] = []
    live: dict[int, _Recorded] = {}
    for position in range(window.begin, len(snapshot.events)):
        event = snapshot.events[position]
        if event.action == ALLOC and position < window.end:
            row = _Recorded(position, len(snapshot.events), event.bytes, "")
            row.place = place(event.frames)
            live[event.address] = row
            found.append(row)
        elif event.action == FREE and event.address in live:
            live.pop(event.address).freed = position
    return found


class _SideBySide:
    """The planned and the recorded memory, by moment."""

    def __init__(self, matched: _Matched, plan: Planned):
        self._matched, self._plan = matched, plan
        self._of_recorded = {allocation: v for v, allocation in matched.pairs.items()}
        self._peak_event, self._peak_bytes = _find_peak(matched)
        self._peak_moment = matched.of_event(self._peak_event)

    def comparison(self, snapshot: Snapshot, step: int, steps: int) -> Comparison:
        plan, matched = self._plan, self._matched
        planned_peak = self._planned_peak()
        at_peak = sum(v.bytes for v in plan.versions if self._is_planned(v, self._peak_moment))
        recorded_peak = self._moment(self._peak_moment, at_peak, self._peak_bytes)
        uncounted = sum(v.bytes for v in plan.versions if not plan.is_counted(v))
        return Comparison(
            plan=plan.name,
            device=snapshot.device,
            step=step,
            steps=steps,
            planned=len(plan.versions),
            recorded=len(matched.recorded),
            matched=len(matched.pairs),
            before_bytes=_bytes_before(snapshot, matched.window),
            reserved_bytes=_reserved_peak(snapshot, matched.window),
            apart_bytes=uncounted,
            planned_peak=planned_peak,
            recorded_peak=recorded_peak,
            modules=self._modules(),
            partings=sorted(
                self._differences(), key=lambda row: (row.run, row.cause, row.operation)
            ),
        )

    def _is_planned(self, version: Any, moment: int) -> bool:
        first, last = self._matched.of_run(version.made), self._matched.of_run(version.last)
        return first <= moment <= last

    def _is_recorded(self, row: _Recorded) -> bool:
        """Returns whether an allocation is in memory at the recorded peak."""
        return row.made <= self._peak_event < row.freed

    def _moment(self, moment: int, planned: int, recorded: int) -> Moment:
        run = self._matched.run(moment)
        operation, module = self._names(run)
        return Moment(run, operation, module, planned, recorded)

    def _names(self, run: int) -> tuple[str, str]:
        if run < 0:
            return "(before the first planned allocation)", ""
        operation = self._plan.operation(run)
        return operation.name, operation.module

    def _planned_peak(self) -> Moment:
        """Returns the moment of the planned peak, and the bytes recorded there."""
        changes = [0] * (self._matched.count + 2)
        for version in self._plan.versions:
            changes[self._matched.of_run(version.made) + 1] += version.bytes
            changes[self._matched.of_run(version.last) + 2] -= version.bytes
        live = most = at = 0
        for position, change in enumerate(changes):
            live += change
            if live > most:
                most, at = live, position - 1
        recorded = sum(
            row.bytes
            for row in self._matched.recorded
            if self._matched.of_event(row.made) <= at <= self._matched.of_event(row.freed)
        )
        return self._moment(at, most, recorded)

    def _modules(self) -> list[Module]:
        planned: Counter[str] = Counter()
        recorded: Counter[str] = Counter()
        for version in self._plan.versions:
            if self._is_planned(version, self._peak_moment):
                planned[self._plan.operation(version.made).module] += version.bytes
        for position, row in enumerate(self._matched.recorded):
            if self._is_recorded(row):
                recorded[self._module(position, row)] += row.bytes
        names = sorted(planned.keys() | recorded.keys(), key=lambda n: (-recorded[n], n))
        return [Module(name, planned[name], recorded[name]) for name in names]

    def _module(self, position: int, row: _Recorded) -> str:
        """Returns the module of an allocation or, if it is unplanned, of the current run."""
        version = self._of_recorded.get(position)
        if version is not None:
            return self._plan.operation(self._plan.versions[version].made).module
        return self._names(self._matched.run(self._matched.of_event(row.made)))[1]

    def _differences(self) -> Iterable[Difference]:
        matched, plan = self._matched, self._plan
        for position, row in enumerate(matched.recorded):
            if position not in self._of_recorded:
                first, last = matched.of_event(row.made), matched.of_event(row.freed)
                yield self._difference(
                    NOT_PLANNED, first, last, row.bytes, self._is_recorded(row), row.place
                )
        for position, version in enumerate(plan.versions):
            first, last = matched.of_run(version.made), matched.of_run(version.last)
            is_planned = first <= self._peak_moment <= last
            if position not in matched.pairs:
                operation, module = self._names(version.made)
                yield Difference(
                    NOT_MADE,
                    version.made,
                    version.last,
                    operation,
                    module,
                    version.bytes,
                    "",
                    is_planned,
                )
                continue
            row = matched.recorded[matched.pairs[position]]
            is_recorded = self._is_recorded(row)
            freed = matched.of_event(row.freed)
            if freed > last or (is_recorded and not is_planned):
                yield self._difference(
                    LATER,
                    last,
                    freed,
                    version.bytes,
                    is_recorded and not is_planned,
                    "",
                    version.made,
                )
            elif freed < last or (is_planned and not is_recorded):
                yield self._difference(
                    EARLIER,
                    freed,
                    last,
                    version.bytes,
                    is_planned and not is_recorded,
                    "",
                    version.made,
                )

    def _difference(
        self,
        cause: str,
        first: int,
        last: int,
        size: int,
        is_at_peak: bool,
        where: str,
        allocated_by: int | None = None,
    ) -> Difference:
        """Returns the difference from ``first`` to ``last``.

        ``allocated_by`` is the run that allocates, if not that of ``first``.
        """
        run = self._matched.run(first)
        operation, module = self._names(run if allocated_by is None else allocated_by)
        return Difference(
            cause, run, self._matched.run(last), operation, module, size, where, is_at_peak
        )


def _find_peak(matched: _Matched) -> tuple[int, int]:
    """Returns the event at which the step has the most bytes in memory, and these bytes."""
    changes = [(row.made, row.bytes) for row in matched.recorded]
    changes += [(row.freed, -row.bytes) for row in matched.recorded]
    live = most = at = 0
    for position, change in sorted(changes):
        live += change
        if live > most and position < matched.window.end:
            most, at = live, position
    return at, most


def _bytes_before(snapshot: Snapshot, window: Window) -> int:
    live = snapshot.bytes_before()
    for event in snapshot.events[: window.begin]:
        if event.action == ALLOC:
            live += event.bytes
        elif event.action == FREE:
            live -= event.bytes
    return live


def _reserved_peak(snapshot: Snapshot, window: Window) -> int:
    """Returns the peak of the segments' bytes while a step runs."""
    live = sum(segment.bytes for segment in snapshot.segments)
    most = live if window.end == len(snapshot.events) else 0
    for position in range(len(snapshot.events) - 1, window.begin - 1, -1):
        event = snapshot.events[position]
        if event.action in (SEGMENT_ALLOC, SEGMENT_MAP):
            live -= event.bytes
        elif event.action in (SEGMENT_FREE, SEGMENT_UNMAP):
            live += event.bytes
        if position <= window.end:
            most = max(most, live)
    return most
