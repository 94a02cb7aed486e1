"""Finds where a sequence repeats itself, as the operations of a model's equal layers do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

LEAST = 3
"""The minimum number of periods in a run."""

_CANDIDATES = 24
"""How many distances between equal items are tried as periods, most frequent first."""


@dataclass(frozen=True)
class Run:
    """A part of a sequence that consists of ``count`` equal periods."""

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.count * self.period

    def position(self, number: int) -> int:
        """Returns where a period begins."""
        return self.start + number * self.period

    def contains(self, position: int) -> bool:
        return self.start <= position < self.end


def runs(
    forms: Sequence[Hashable], same: Callable[[int, int], bool], begin: int, end: int
) -> list[Run]:
    """Returns the runs between two positions, in order; they do not overlap.

    ``same(i, p)`` returns whether the items at ``i`` and ``i + p`` correspond. It is called only if
    their ``forms`` are equal.
    """
    best = None
    for period in _periods(forms, begin, end):
        for found in _of_period(forms, same, begin, end, period):
            if best is None or found.end - found.start > best.end - best.start:
                best = found
    if best is None:
        return []
    before = runs(forms, same, begin, best.start)
    return [*before, best, *runs(forms, same, best.end, end)]


def _periods(forms: Sequence[Hashable], begin: int, end: int) -> list[int]:
    last: dict[Hashable, int] = {}
    covered: Counter[int] = Counter()
    for position in range(begin, end):
        form = forms[position]
        if form in last:
            distance = position - last[form]
            covered[distance] += distance
        last[form] = position
    rows = sorted(covered.items(), key=lambda row: (-row[1], row[0]))
    return sorted(period for period, _ in rows[:_CANDIDATES])


def _of_period(
    forms: Sequence[Hashable],
    same: Callable[[int, int], bool],
    begin: int,
    end: int,
    period: int,
) -> list[Run]:
    found, first = [], begin
    for position in range(begin, end - period + 1):
        is_same = (
            position < end - period
            and forms[position] == forms[position + period]
            and same(position, period)
        )
        if is_same:
            continue
        count = (position - first) // period + 1
        if count >= LEAST:
            found.append(Run(first, period, count))
        first = position + 1
    return found
