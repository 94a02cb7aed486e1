"""The replay of PyTorch's allocator, by cases that were worked out by hand from its rules."""

from __future__ import annotations

import random

import pytest

from ckplan.torch.estimation.allocator import Allocator, Event, OutOfMemory, replay

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("size", "allocated", "reserved"),
    [
        (0, 0, 0),
        (1, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        # Blocks above 1 MiB come from segments of 20 MiB; remainders above 1 MiB are split off.
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        # From 10 MiB on, the segment is the block, rounded up to 2 MiB.
        (10 * MIB, 10 * MIB, 10 * MIB),
        # 1 MiB less 512 bytes are left, too little to be split off.
        (11 * MIB + 512, 12 * MIB, 12 * MIB),
        # 1 MiB exactly is left, which is not more than 1 MiB.
        (11 * MIB, 12 * MIB, 12 * MIB),
        # 1 MiB and 512 bytes are left, and are split off.
        (11 * MIB - 512, 11 * MIB - 512, 12 * MIB),
    ],
)
def test_one_block_is_rounded_and_of_a_segment(size, allocated, reserved):
    allocator = Allocator()
    allocator.allocate(size)
    assert allocator.requested_bytes == size
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (allocated, reserved)


def test_small_blocks_share_a_segment_until_it_is_full():
    allocator = Allocator()
    for _ in range(4):
        allocator.allocate(512 * KIB)
    assert allocator.reserved_bytes == 2 * MIB
    allocator.allocate(1)
    assert allocator.reserved_bytes == 4 * MIB


def test_what_is_freed_is_kept_and_taken_again():
    allocator = Allocator()
    allocator.release(allocator.allocate(30 * MIB))
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (0, 30 * MIB)
    allocator.allocate(30 * MIB)
    assert allocator.peak_reserved_bytes == 30 * MIB


def test_the_smallest_block_that_fits_is_taken():
    allocator = Allocator()
    large, small = allocator.allocate(40 * MIB), allocator.allocate(30 * MIB)
    allocator.release(large)
    allocator.release(small)
    # 25 of the 30 MiB, so that 5 are left beside the 40.
    assert allocator.allocate(25 * MIB).address == small.address
    assert allocator.allocate(40 * MIB).address == large.address
    assert allocator.reserved_bytes == 70 * MIB


def test_free_neighbours_merge_in_either_order():
    for order in [(0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 0, 2)]:
        allocator = Allocator()
        allocator.release(allocator.allocate(30 * MIB))
        blocks = [allocator.allocate(10 * MIB) for _ in range(3)]
        assert allocator.reserved_bytes == 30 * MIB
        for position in order:
            allocator.release(blocks[position])
        allocator.allocate(30 * MIB)
        assert allocator.reserved_bytes == 30 * MIB, order


def test_a_hole_that_is_too_small_costs_a_segment():
    """Fragmentation: 20 MiB are free, in two holes of 10, and 20 are asked for."""
    allocator = Allocator()
    allocator.release(allocator.allocate(40 * MIB))
    blocks = [allocator.allocate(10 * MIB) for _ in range(4)]
    allocator.release(blocks[0])
    allocator.release(blocks[2])
    allocator.allocate(20 * MIB)
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (40 * MIB, 60 * MIB)


def test_whole_segments_are_given_back_before_memory_ends():
    allocator = Allocator(capacity=50 * MIB)
    allocator.release(allocator.allocate(30 * MIB))
    allocator.allocate(40 * MIB)  # The 30 MiB go back to the driver.
    assert (allocator.reserved_bytes, allocator.returns) == (40 * MIB, 1)
    with pytest.raises(OutOfMemory) as refusal:
        allocator.allocate(12 * MIB)
    assert refusal.value.bytes == 12 * MIB


def test_a_segment_with_a_block_in_use_is_not_given_back():
    allocator = Allocator(capacity=50 * MIB)
    allocator.release(allocator.allocate(30 * MIB))
    allocator.allocate(10 * MIB)
    with pytest.raises(OutOfMemory):
        allocator.allocate(30 * MIB)


def test_small_and_large_blocks_have_pools_of_their_own():
    allocator = Allocator()
    allocator.release(allocator.allocate(2 * MIB))
    allocator.allocate(MIB)
    assert allocator.reserved_bytes == 22 * MIB


def test_an_expandable_segment_grows_by_pages():
    allocator = Allocator(expandable=True)
    allocator.allocate(21 * MIB)
    assert allocator.reserved_bytes == 40 * MIB
    allocator.allocate(19 * MIB)  # The rest of the second page.
    assert allocator.reserved_bytes == 40 * MIB
    allocator.allocate(30 * MIB)
    assert allocator.reserved_bytes == 80 * MIB
    allocator.allocate(KIB)
    assert allocator.reserved_bytes == 82 * MIB


def test_expandable_segments_leave_no_hole_at_their_end():
    """The growing sizes for which PyTorch made them: the end of the segment is extended."""
    fixed, expandable = Allocator(), Allocator(expandable=True)
    for allocator in (fixed, expandable):
        for size in (40 * MIB, 44 * MIB, 60 * MIB):
            allocator.release(allocator.allocate(size))
    assert fixed.reserved_bytes == 144 * MIB
    assert expandable.reserved_bytes == 60 * MIB


def test_the_block_at_the_end_is_taken_last():
    allocator = Allocator(expandable=True)
    first, _, last = (allocator.allocate(size * MIB) for size in (30, 20, 10))
    allocator.release(first)
    allocator.release(last)
    # The end has 10 MiB and is the better fit, but could grow.
    assert allocator.allocate(10 * MIB).address == first.address


def test_expandable_segments_have_no_limit():
    with pytest.raises(ValueError, match="without a capacity"):
        Allocator(capacity=MIB, expandable=True)


@pytest.mark.parametrize("expandable", [False, True])
def test_random_traces_end_as_they_began(expandable):
    """Blocks never overlap, what is in use is counted once, and all of it comes back."""
    draw = random.Random(5)
    allocator, live = Allocator(expandable=expandable), []
    for _ in range(600):
        if live and draw.random() < 0.49:
            block, _ = live.pop(draw.randrange(len(live)))
            allocator.release(block)
        else:
            size = draw.choice([3, 700, 5 * KIB, 900 * KIB, 3 * MIB, 9 * MIB, 17 * MIB, 33 * MIB])
            live.append((allocator.allocate(size), size))
        for small in (True, False):
            spans = sorted(
                (b.address, b.address + b.bytes) for b, _ in live if b.is_small == small
            )
            assert all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:]))
        assert allocator.requested_bytes == sum(size for _, size in live)
        assert allocator.allocated_bytes == sum(block.bytes for block, _ in live)
        assert allocator.allocated_bytes <= allocator.reserved_bytes
    for block, _ in live:
        allocator.release(block)
    assert allocator.allocated_bytes == allocator.requested_bytes == 0


def test_events_are_replayed_in_their_order():
    events = [Event(0, 30 * MIB), Event(1, MIB), Event(0, -30 * MIB), Event(2, 30 * MIB)]
    allocator, blocks = Allocator(), {}
    replay(allocator, events, blocks)
    assert set(blocks) == {1, 2}
    assert allocator.reserved_bytes == 32 * MIB
    assert allocator.peak_allocated_bytes == 31 * MIB
