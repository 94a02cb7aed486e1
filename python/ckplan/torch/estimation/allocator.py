"""Simulates PyTorch's caching allocator for CUDA.

The allocator gets *segments* from the driver and hands out *blocks* of them. It keeps segments
whose blocks are free, so a process holds more memory than its tensors need. The rules and their
numbers are those of ``c10/cuda/CUDACachingAllocator.cpp`` and ``c10/core/AllocatorConfig.h`` with
the default settings of ``PYTORCH_ALLOC_CONF``:

- A size is rounded up to a multiple of 512 bytes. A size of 0 needs no block.
- Blocks of up to 1 MiB come from segments of 2 MiB. Larger ones have their own pool, with segments
  of 20 MiB for blocks below 10 MiB, and otherwise of the block's size rounded up to 2 MiB.
- An allocation uses the smallest free block that is large enough; of several, the one at the lowest
  address. The remainder becomes a free block if it has at least 512 bytes in the pool of small
  blocks, or more than 1 MiB in the other pool.
- A freed block merges with free neighbours in its segment.
- If the driver has no room for a segment, the allocator first returns all segments that have no
  block in use.

``expandable=True`` simulates ``expandable_segments:True``: each pool is one segment that grows by
pages of 2 MiB or 20 MiB, every remainder becomes a free block, and the free block at the end, which
can grow, is used only if no other is large enough. What it returns to the driver when memory runs
out is not simulated, so it has no capacity.

The simulation has one stream and no other processes. Addresses ascend in the order of the requests.
A driver may place segments in another order, which matters only for the choice between equally
large blocks.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

MIN_BLOCK = 512
SMALL_SIZE = 1 << 20
SMALL_SEGMENT = 2 << 20
LARGE_SEGMENT = 20 << 20
MIN_LARGE = 10 << 20
ROUND_LARGE = 2 << 20


class OutOfMemory(Exception):
    """The device has no room for a segment, even after all free segments were returned.

    ``bytes`` is the size of the requested block.
    """

    def __init__(self, size: int):
        super().__init__(f"no room for a block of {size} bytes")
        self.bytes = size


@dataclass(eq=False)
class Block:
    """A piece of a segment. ``before`` and ``after`` are its neighbours there."""

    address: int
    bytes: int
    is_small: bool
    is_used: bool = False
    before: Block | None = None
    after: Block | None = None


@dataclass
class _Pool:
    is_small: bool
    free: list[tuple[int, int, Block]] = field(default_factory=list)
    """The free blocks by size and address."""
    last: Block | None = None
    """The last block of the only segment, if segments are expandable; otherwise None."""

    def add(self, block: Block) -> None:
        bisect.insort(self.free, (block.bytes, block.address, block), key=lambda row: row[:2])

    def remove(self, block: Block) -> None:
        key = (block.bytes, block.address)
        del self.free[bisect.bisect_left(self.free, key, key=lambda row: row[:2])]

    def take(self, size: int) -> Block | None:
        at = bisect.bisect_left(self.free, (size, 0), key=lambda row: row[:2])
        if at + 1 < len(self.free) and self.free[at][2] is self.last:
            at += 1
        return self.free.pop(at)[2] if at < len(self.free) else None


class Allocator:
    """The allocator of one device. ``capacity`` limits its bytes; None is no limit.

    ``driver`` returns the address of a new segment of a given size. By default each segment begins
    where the one before ends.
    """

    def __init__(
        self,
        capacity: int | None = None,
        expandable: bool = False,
        driver: Callable[[int], int] | None = None,
    ):
        if expandable and capacity is not None:
            raise ValueError("expandable segments are simulated without a capacity")
        self.requested_bytes = 0
        """The requested sizes of all blocks in use."""
        self.allocated_bytes = 0
        """The sizes of all blocks in use, as PyTorch's ``memory_allocated`` counts them."""
        self.reserved_bytes = 0
        """The sizes of all segments, as ``memory_reserved`` counts them."""
        self.peak_requested_bytes = 0
        self.peak_allocated_bytes = 0
        self.peak_reserved_bytes = 0
        self.returns = 0
        """How often segments were given back to make room."""
        self.next_capacity: int | None = None
        """The next larger capacity at which the calls so far would have run differently."""
        self._capacity = capacity
        self._expandable = expandable
        self._driver = driver or self._next_segment
        self._pools = _Pool(is_small=True), _Pool(is_small=False)
        self._next_address = 0
        self._requested: dict[Block, int] = {}

    def allocate(self, size: int) -> Block | None:
        """Allocates at least ``size`` bytes. Returns None for size 0. Raises OutOfMemory."""
        if size == 0:
            return None
        rounded = -(-size // MIN_BLOCK) * MIN_BLOCK
        pool = self._pools[0 if rounded <= SMALL_SIZE else 1]
        block = pool.take(rounded) or self._new_block(pool, rounded)
        self._split(pool, block, rounded)
        block.is_used = True
        self._requested[block] = size
        self.requested_bytes += size
        self.allocated_bytes += block.bytes
        self.peak_requested_bytes = max(self.peak_requested_bytes, self.requested_bytes)
        self.peak_allocated_bytes = max(self.peak_allocated_bytes, self.allocated_bytes)
        return block

    def release(self, block: Block | None) -> None:
        """Takes a block back."""
        if block is None:
            return
        self.requested_bytes -= self._requested.pop(block)
        self.allocated_bytes -= block.bytes
        block.is_used = False
        pool = self._pools[0 if block.is_small else 1]
        for other in (block.before, block.after):
            if other is not None and not other.is_used:
                pool.remove(other)
                _merge(pool, block, other)
        pool.add(block)

    def adopt(self, address: int, size: int, used: Sequence[tuple[int, int]]) -> list[Block]:
        """Adds a segment in which the blocks ``used`` (address, bytes) are in use.

        Returns these blocks. The rest of the segment is free.
        """
        pool = self._pools[0 if size == SMALL_SEGMENT else 1]
        self._reserve(size)
        taken, last, at = [], None, address
        for begin, count in [*used, (address + size, 0)]:
            for start, length, is_used in ((at, begin - at, False), (begin, count, True)):
                if length:
                    block = Block(start, length, pool.is_small, is_used, before=last)
                    if last is not None:
                        last.after = block
                    last = block
                    if is_used:
                        taken.append(block)
                        self._requested[block] = length
                        self.requested_bytes += length
                        self.allocated_bytes += length
                    else:
                        pool.add(block)
            at = begin + count
        return taken

    def give_back(self) -> list[int]:
        """Gives all completely free segments back to the driver, as ``empty_cache`` does.

        Returns their addresses.
        """
        found = []
        for pool in self._pools:
            free_segments = [
                row for row in pool.free if row[2].before is None and row[2].after is None
            ]
            self.reserved_bytes -= sum(size for size, _, _ in free_segments)
            pool.free = [row for row in pool.free if row not in free_segments]
            found += [address for _, address, _ in free_segments]
        return found

    def _new_block(self, pool: _Pool, size: int) -> Block:
        if self._expandable:
            return self._grow(pool, size)
        segment = _segment_bytes(size)
        if not self._has_room(segment):
            self.returns += 1
            self.give_back()
            if not self._has_room(segment):
                raise OutOfMemory(size)
        self._reserve(segment)
        return Block(self._driver(segment), segment, pool.is_small)

    def _next_segment(self, size: int) -> int:
        address = self._next_address
        self._next_address += size
        return address

    def _grow(self, pool: _Pool, size: int) -> Block:
        """Returns a block at the end of the pool's only segment, which grows by whole pages."""
        page = SMALL_SEGMENT if pool.is_small else LARGE_SEGMENT
        last = pool.last
        end = last if last is not None and not last.is_used else None
        missing = size - (end.bytes if end else 0)
        growth = -(-missing // page) * page
        self._reserve(growth)
        if end is not None:
            pool.remove(end)
            end.bytes += growth
            return end
        # Each pool has its own range of addresses, so the two segments never touch.
        address = last.address + last.bytes if last is not None else 0
        pool.last = block = Block(address, growth, pool.is_small, before=last)
        if last is not None:
            last.after = block
        return block

    def _split(self, pool: _Pool, block: Block, size: int) -> None:
        left = block.bytes - size
        is_split = left >= MIN_BLOCK if pool.is_small or self._expandable else left > SMALL_SIZE
        if not is_split:
            return
        rest = Block(block.address + size, left, block.is_small, before=block, after=block.after)
        if rest.after is not None:
            rest.after.before = rest
        block.after, block.bytes = rest, size
        if pool.last is block:
            pool.last = rest
        pool.add(rest)

    def _has_room(self, size: int) -> bool:
        needed = self.reserved_bytes + size
        if self._capacity is None or needed <= self._capacity:
            return True
        self.next_capacity = min(needed, self.next_capacity or needed)
        return False

    def _reserve(self, size: int) -> None:
        self.reserved_bytes += size
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)


@dataclass(frozen=True)
class Event:
    """A buffer is allocated, or freed if ``bytes`` is negative."""

    buffer: int
    bytes: int


def replay(allocator: Allocator, events: Iterable[Event], blocks: dict[int, Block | None]) -> None:
    """Runs events through an allocator. ``blocks`` maps each buffer in use to its block.

    Raises OutOfMemory.
    """
    for event in events:
        if event.bytes >= 0:
            blocks[event.buffer] = allocator.allocate(event.bytes)
        else:
            allocator.release(blocks.pop(event.buffer))


def _segment_bytes(size: int) -> int:
    if size <= SMALL_SIZE:
        return SMALL_SEGMENT
    if size < MIN_LARGE:
        return LARGE_SEGMENT
    return -(-size // ROUND_LARGE) * ROUND_LARGE


def _merge(pool: _Pool, block: Block, other: Block) -> None:
    """Merges ``block`` with its free neighbour ``other``."""
    if pool.last is other:
        pool.last = block
    block.bytes += other.bytes
    if other is block.before:
        block.address, block.before = other.address, other.before
        if block.before is not None:
            block.before.after = block
    else:
        block.after = other.after
        if block.after is not None:
            block.after.before = block
