"""Replays a recorded history through the simulation of PyTorch's allocator.

A history records the requests to the allocator and its answers: the addresses of blocks, and when
it got segments from the driver and gave them back. The replay makes the same requests. The driver's
answers come from the history, because the allocator cannot know them.
"""

from __future__ import annotations

import bisect
from collections import deque
from dataclasses import dataclass

from ckplan.torch.errors import SnapshotError
from ckplan.torch.estimation.allocator import MIN_BLOCK, SMALL_SIZE, Allocator, Block
from ckplan.torch.snapshots.snapshot_file import (
    ALLOC,
    FREE,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    Event,
    Snapshot,
)


@dataclass(frozen=True)
class Replayed:
    """How far a replay went: through all requests, or up to the first different answer."""

    requests: int
    """The number of requested blocks."""
    answered: int
    """How many of them got the recorded address, before the first that did not."""
    segments: int
    """The number of segments that the history gets from the driver."""
    peak_reserved_bytes: int
    reserved_bytes: int
    difference: str
    """The first difference, or an empty text."""


class _Different(Exception):
    """The replay differs from the history."""


def replay(snapshot: Snapshot) -> Replayed:
    """Returns how the replay answers the requests of a history. Raises SnapshotError."""
    _check(snapshot)
    run = _Run(snapshot)
    difference = ""
    try:
        for event in snapshot.events:
            run.step(event)
        run.end(snapshot)
    except _Different as found:
        difference = str(found)
    allocator = run.allocator
    return Replayed(
        sum(event.action == ALLOC for event in snapshot.events),
        run.answered,
        sum(event.action == SEGMENT_ALLOC for event in snapshot.events),
        allocator.peak_reserved_bytes,
        allocator.reserved_bytes,
        difference,
    )


def _check(snapshot: Snapshot) -> None:
    """Raises SnapshotError for features that the replay does not support."""
    streams = {event.stream for event in snapshot.events}
    pools = {segment.pool for segment in snapshot.segments if any(segment.pool)}
    if len(streams | {segment.stream for segment in snapshot.segments}) > 1:
        raise SnapshotError("it uses several streams, but the replay supports only one")
    if pools:
        raise SnapshotError("it uses private memory pools, which the replay does not support")
    actions = {event.action for event in snapshot.events}
    if actions & {SEGMENT_MAP, SEGMENT_UNMAP} or any(s.is_expandable for s in snapshot.segments):
        raise SnapshotError("it uses expandable segments, which the replay does not support")


class _Run:
    """The state of a replay."""

    def __init__(self, snapshot: Snapshot):
        self.answered = 0
        self._segments: deque[Event] = deque()
        self._returned: set[int] = set()
        self.allocator = Allocator(driver=self._driver)
        self._blocks: dict[int, Block] = {}
        used = _used_before(snapshot)
        for address, size in sorted(_segments_before(snapshot).items()):
            inside = sorted(at for at in used if address <= at < address + size)
            blocks = self.allocator.adopt(address, size, _spans(address + size, inside, used))
            self._blocks.update((block.address, block) for block in blocks)

    def step(self, event: Event) -> None:
        if event.action == SEGMENT_FREE:
            self._give_back(event)
        elif self._returned:
            raise _Different(f"the replay gives back {len(self._returned)} more segments")
        elif event.action == SEGMENT_ALLOC:
            self._segments.append(event)
        elif event.action == ALLOC and event.bytes:
            self._allocate(event)
        elif event.action == FREE and event.address in self._blocks:
            self.allocator.release(self._blocks.pop(event.address))

    def end(self, snapshot: Snapshot) -> None:
        """Compares the state at the end with that of the snapshot."""
        reserved = sum(segment.bytes for segment in snapshot.segments)
        if self.allocator.reserved_bytes != reserved:
            raise _Different(
                f"the replay ends with {self.allocator.reserved_bytes} reserved bytes, not {reserved}"
            )

    def _allocate(self, event: Event) -> None:
        block = self.allocator.allocate(event.bytes)
        assert block is not None
        if self._segments:
            raise _Different(
                f"request {self.answered} of {event.bytes} bytes gets a segment of "
                f"{self._segments[0].bytes} bytes, but the replay has a free block"
            )
        if block.address != event.address:
            raise _Different(
                f"request {self.answered} of {event.bytes} bytes gets {event.address:#x}, but "
                f"{block.address:#x} in the replay"
            )
        self._blocks[event.address] = block
        self.answered += 1

    def _driver(self, size: int) -> int:
        if not self._segments:
            raise _Different(
                f"request {self.answered} gets a free block, but the replay needs a segment of {size} "
                "bytes"
            )
        event = self._segments.popleft()
        if event.bytes != size:
            raise _Different(
                f"request {self.answered} gets a segment of {event.bytes} bytes, but one of {size} "
                "in the replay"
            )
        return event.address

    def _give_back(self, event: Event) -> None:
        """Handles the return of a segment. All free segments are returned together."""
        if not self._returned:
            self._returned = set(self.allocator.give_back())
        if event.address not in self._returned:
            raise _Different(
                f"before request {self.answered} the segment {event.address:#x} is given back, but "
                "it is in use in the replay"
            )
        self._returned.remove(event.address)


def _segments_before(snapshot: Snapshot) -> dict[int, int]:
    """Returns the sizes of the segments before the first event, by their addresses."""
    found = {segment.address: segment.bytes for segment in snapshot.segments}
    for event in reversed(snapshot.events):
        if event.action == SEGMENT_ALLOC:
            found.pop(event.address, None)
        elif event.action == SEGMENT_FREE:
            found[event.address] = event.bytes
    return found


def _used_before(snapshot: Snapshot) -> dict[int, int]:
    """Returns the sizes of the blocks in use before the first event, by their addresses."""
    blocks = (block for segment in snapshot.segments for block in segment.blocks)
    found = {block.address: block.bytes for block in blocks if block.is_used}
    requested: set[int] = set()
    for event in reversed(snapshot.events):
        if event.action == ALLOC:
            found.pop(event.address, None)
            requested.discard(event.address)
        elif event.action == FREE:
            found[event.address] = -(-event.bytes // MIN_BLOCK) * MIN_BLOCK
            requested.add(event.address)
    for address, rest in _remainders(snapshot.events, {at: found[at] for at in requested}).items():
        found[address] += rest
    return found


def _remainders(events: list[Event], used: dict[int, int]) -> dict[int, int]:
    """Returns how much larger these blocks are than requested, where that can be inferred.

    In the pool of large blocks, a remainder of up to 1 MiB stays part of its block, and events do
    not record that. But no large block is that small, so if another block begins within 1 MiB after
    the requested end, the block ends there.
    """
    ends = sorted((at + size, at) for at, size in used.items() if size > SMALL_SIZE)
    found: dict[int, int] = {}
    freed = set()
    for event in events:
        if event.action == FREE:
            freed.add(event.address)
        elif event.action == ALLOC:
            end, at = ends[bisect.bisect_right(ends, (event.address, 0)) - 1] if ends else (0, 0)
            if 0 < event.address - end <= SMALL_SIZE and at not in freed:
                found.setdefault(at, event.address - end)
    return found


def _spans(end: int, addresses: list[int], used: dict[int, int]) -> list[tuple[int, int]]:
    """Returns the blocks of a segment. A remainder of up to 1 MiB belongs to its large block."""
    spans = []
    for address, following in zip(addresses, [*addresses[1:], end]):
        room = following - address - used[address]
        is_whole = 0 < room <= SMALL_SIZE and used[address] > SMALL_SIZE
        spans.append((address, used[address] + (room if is_whole else 0)))
    return spans
