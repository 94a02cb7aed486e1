"""Matches recorded allocations with planned ones.

Both are sequences of sizes, aligned as in a text diff so that as few as possible remain unmatched.
The history has more than the planned step, so allocations before the first match and after the last
one cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from ckplan.torch.errors import SnapshotError

_MOST_CELLS = 400_000_000
"""The largest table, two bytes a cell."""


def overlap(planned: Sequence[int], recorded: Sequence[int]) -> int:
    """Returns how many allocations have a counterpart of the same size, in any order."""
    return sum((Counter(planned) & Counter(recorded)).values())


def align(planned: Sequence[int], recorded: Sequence[int]) -> list[tuple[int, int]]:
    """Returns pairs of equal sizes by their positions, in order. Raises SnapshotError.

    Of several best alignments, it returns the one that ends last, with the earliest pairs.
    """
    if (len(planned) + 1) * (len(recorded) + 1) > _MOST_CELLS:
        raise SnapshotError(
            f"{len(recorded)} recorded allocations are too many to match with {len(planned)} planned "
            "ones: record fewer steps, or choose one with --step"
        )
    table = _table(planned, recorded)
    at, pairs = _last_least(table[-1]), []
    for row in range(len(planned), 0, -1):
        # Skip unmatched recorded allocations, as long as that has the least cost.
        while at and table[row][at] == table[row][at - 1] + 1:
            at -= 1
        if not at:
            break
        is_same = planned[row - 1] == recorded[at - 1]
        if is_same and table[row][at] == table[row - 1][at - 1]:
            at -= 1
            pairs.append((row - 1, at))
    return pairs[::-1]


def _table(planned: Sequence[int], recorded: Sequence[int]) -> list[torch.Tensor]:
    """Returns the least number of unmatched allocations for each pair of prefixes."""
    kind = torch.int16 if len(planned) + len(recorded) < 1 << 15 else torch.int32
    sizes = torch.tensor(list(recorded), dtype=torch.int64)
    place = torch.arange(len(recorded) + 1, dtype=torch.int32)
    row = torch.zeros(len(recorded) + 1, dtype=torch.int32)
    table = [row.to(kind)]
    for size in planned:
        best = row + 1
        same = torch.where(sizes == size, row[:-1], 1 << 30)
        torch.minimum(best[1:], same, out=best[1:])
        # Each unmatched recorded allocation costs one more.
        row = torch.cummin(best - place, 0).values + place
        table.append(row.to(kind))
    return table


def _last_least(row: torch.Tensor) -> int:
    least = int(row.min())
    return int((row == least).nonzero()[-1])
