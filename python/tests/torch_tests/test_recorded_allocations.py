"""The replay of PyTorch's allocator answers a history as the history says.

The history below is worked out by hand from the allocator's rules. Recordings of real GPUs are
replayed by python/benchmarks/allocator_replay.py; docs/snapshots.md has what it prints.
"""

from __future__ import annotations

import dataclasses

import pytest

from ckplan.torch.errors import SnapshotError
from ckplan.torch.snapshots.history_replay import replay
from ckplan.torch.snapshots.snapshot_file import Block, Event, Segment, Snapshot

KIB, MIB = 1 << 10, 1 << 20
A, B, C, D = 0x9000_0000, 0x2000_0000, 0x5000_0000, 0x7000_0000
"""Where the driver places segments: in no order."""


def event(action, address, size, stream=0):
    return Event(action, address, size, stream, ())


HISTORY = [
    event("segment_alloc", A, 20 * MIB),
    event("alloc", A, 3 * MIB),
    event("alloc", A + 3 * MIB, 4 * MIB),
    event("free_requested", A, 3 * MIB),
    event("free_completed", A, 3 * MIB),
    # The hole of 3 MiB is the best fit. 1 MiB would be left, which is too little to be split off.
    event("alloc", A, 2 * MIB),
    event("alloc", A + 7 * MIB, 10 * MIB),
    # Only 3 MiB are left at the end, not 4.
    event("segment_alloc", B, 20 * MIB),
    event("alloc", B, 4 * MIB),
    event("segment_alloc", C, 2 * MIB),
    event("alloc", C, 700),
    event("alloc", C + KIB, MIB),
    event("free_completed", C, 700),
    event("alloc", C, 1),
    event("alloc", C + 512, 512),
    event("segment_alloc", D, 34 * MIB),
    event("alloc", D, 33 * MIB),
    event("free_completed", D, 33 * MIB),
    # Memory ends: the only segment without a block in use is given back.
    event("segment_free", D, 34 * MIB),
    event("segment_alloc", A + 64 * MIB, 36 * MIB),
    event("alloc", A + 64 * MIB, 36 * MIB),
]


def block(address, size, requested=None, is_used=True):
    return Block(address, size, size if requested is None else requested, is_used)


SEGMENTS = [
    Segment(
        A,
        20 * MIB,
        0,
        False,
        False,
        (0, 0),
        [
            block(A, 3 * MIB, 2 * MIB),
            block(A + 3 * MIB, 4 * MIB),
            block(A + 7 * MIB, 10 * MIB),
            block(A + 17 * MIB, 3 * MIB, 0, False),
        ],
    ),
    Segment(
        B,
        20 * MIB,
        0,
        False,
        False,
        (0, 0),
        [
            block(B, 4 * MIB),
            block(B + 4 * MIB, 16 * MIB, 0, False),
        ],
    ),
    Segment(
        C,
        2 * MIB,
        0,
        True,
        False,
        (0, 0),
        [
            block(C, 512, 1),
            block(C + 512, 512),
            block(C + KIB, MIB),
            block(C + KIB + MIB, MIB - KIB, 0, False),
        ],
    ),
    Segment(A + 64 * MIB, 36 * MIB, 0, False, False, (0, 0), [block(A + 64 * MIB, 36 * MIB)]),
]
REQUESTS = sum(row.action == "alloc" for row in HISTORY)


def test_a_history_by_hand_is_answered_alike():
    found = replay(Snapshot(0, HISTORY, SEGMENTS))
    assert found.difference == ""
    assert found.answered == found.requests == REQUESTS
    assert found.segments == 5
    assert found.reserved_bytes == (20 + 20 + 2 + 36) * MIB
    assert found.peak_reserved_bytes == (20 + 20 + 2 + 36) * MIB


@pytest.mark.parametrize("begin", range(len(HISTORY)))
def test_a_history_may_begin_anywhere(begin):
    """What was there before follows from what is there at the end."""
    found = replay(Snapshot(0, HISTORY[begin:], SEGMENTS))
    assert found.difference == ""
    assert found.answered == found.requests


@pytest.mark.parametrize(
    ("position", "changed", "said"),
    [
        (5, {"address": A + 7 * MIB}, "request 2 of 2097152 bytes gets 0x90700000, but 0x90000000"),
        (8, {"bytes": 2 * MIB}, "request 4 of 2097152 bytes gets a segment of 20971520 bytes, but"),
        (
            9,
            {"bytes": 20 * MIB},
            "request 5 gets a segment of 20971520 bytes, but one of",
        ),
        (
            18,
            {"address": B},
            "before request 10 the segment 0x20000000 is given back, but it is in use",
        ),
    ],
)
def test_another_answer_is_seen(position, changed, said):
    events = list(HISTORY)
    events[position] = dataclasses.replace(events[position], **changed)
    assert said in replay(Snapshot(0, events, SEGMENTS)).difference


def test_a_segment_more_or_less_is_seen():
    # B would have been there from the start, and would have had room for the first request.
    without = HISTORY[:7] + HISTORY[8:]
    assert "request 0 of 3145728 bytes gets a segment of 20971520 bytes, but the replay has" in (
        replay(Snapshot(0, without, SEGMENTS)).difference
    )
    assert "request 4 gets a free block, but the replay needs a segment of 20971520 bytes" in (
        replay(Snapshot(0, without, SEGMENTS[:1] + SEGMENTS[2:])).difference
    )
    two = []
    for address, size in ((A, 34 * MIB), (D, 40 * MIB)):
        rows = ("segment_alloc", "alloc", "free_completed")
        two += [event(action, address, size) for action in rows]
    more = [*two, event("segment_free", A, 34 * MIB), event("alloc", D, 2 * MIB)]
    assert "the replay gives back 1 more segments" in replay(Snapshot(0, more, [])).difference
    ends = replay(Snapshot(0, HISTORY, SEGMENTS[:-1])).difference
    assert ends == f"the replay ends with {78 * MIB} reserved bytes, not {42 * MIB}"


def test_what_the_replay_does_not_know_is_refused():
    for events, segments, said in [
        ([*HISTORY, event("alloc", 1, 1, stream=7)], SEGMENTS, "several streams"),
        ([*HISTORY, event("segment_map", 1, 2 * MIB)], SEGMENTS, "expandable segments"),
        (HISTORY, [dataclasses.replace(SEGMENTS[0], pool=(0, 3))], "private memory pools"),
    ]:
        with pytest.raises(SnapshotError, match=said):
            replay(Snapshot(0, events, segments))
