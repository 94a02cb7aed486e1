"""Reads files of ``torch.cuda.memory._dump_snapshot`` without running the code in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ckplan.torch import untrusted_files
from ckplan.torch.errors import SnapshotError
from ckplan.torch.untrusted_files import INT64, UINT64, RefusedError

ALLOC, FREE = "alloc", "free_completed"
SEGMENT_ALLOC, SEGMENT_FREE = "segment_alloc", "segment_free"
SEGMENT_MAP, SEGMENT_UNMAP = "segment_map", "segment_unmap"


@dataclass(frozen=True)
class Event:
    """One entry of the allocator's history. ``bytes`` is the requested size, before rounding."""

    action: str
    address: int
    bytes: int
    stream: int
    frames: Sequence[Any]


@dataclass(frozen=True)
class Block:
    """A piece of a segment when the snapshot was taken."""

    address: int
    bytes: int
    requested_bytes: int
    is_used: bool


@dataclass(frozen=True)
class Segment:
    """Memory that the allocator had from the driver when the snapshot was taken."""

    address: int
    bytes: int
    stream: int
    is_small: bool
    is_expandable: bool
    pool: tuple[int, ...]
    blocks: list[Block]


@dataclass(frozen=True)
class Snapshot:
    """The history of one device's allocator, and its state at the end of the history."""

    device: int
    events: list[Event]
    segments: list[Segment]

    def bytes_before(self) -> int:
        """Returns the requested bytes that are in use before the first event."""
        blocks = (block for segment in self.segments for block in segment.blocks)
        live = sum(block.requested_bytes for block in blocks if block.is_used)
        for event in self.events:
            if event.action == ALLOC:
                live -= event.bytes
            elif event.action == FREE:
                live += event.bytes
        return live


def read(path: str | os.PathLike[str], device: int | None = None) -> Snapshot:
    """Returns the history of one device in a snapshot file.

    ``device`` may be omitted if the file has the history of only one device. Raises SnapshotError,
    and OSError if the file cannot be read.
    """
    try:
        return _snapshot(untrusted_files.pickle_value(untrusted_files.file_bytes(path)), device)
    except RefusedError as error:
        raise SnapshotError(
            f"{path} is not a memory snapshot of torch.cuda.memory._dump_snapshot: {error}"
        ) from None
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from None


def _snapshot(content: Any, device: int | None) -> Snapshot:
    document = untrusted_files.mapping(content, "it")
    traces = _list(document, "device_traces")
    rows = _list(document, "segments")
    if not all(isinstance(trace, list) for trace in traces):
        raise RefusedError("device_traces is not a list of lists")
    number = _device(traces, device)
    segments = [_segment(row) for row in map(_dict_of("a segment"), rows) if _is_on(row, number)]
    return Snapshot(
        number, [_event(row) for row in map(_dict_of("an event"), traces[number])], segments
    )


def _device(traces: list[list[Any]], device: int | None) -> int:
    recorded = [number for number, trace in enumerate(traces) if trace]
    if not recorded:
        raise SnapshotError(
            "it has no history: call torch.cuda.memory._record_memory_history() before the steps "
            "to compare"
        )
    names = ", ".join(map(str, recorded))
    if device is None:
        if len(recorded) > 1:
            raise SnapshotError(f"it has the history of devices {names}: choose one with --device")
        return recorded[0]
    if device not in recorded:
        raise SnapshotError(f"it has no history of device {device}; it has that of {names}")
    return device


def _is_on(segment: Mapping[str, Any], device: int) -> bool:
    """Returns whether a segment is on the device. Files from before PyTorch 2.0 do not say."""
    return _number(segment, "device", default=device) == device


def _event(row: Mapping[str, Any]) -> Event:
    action = untrusted_files.text(row.get("action"), "the action of an event")
    has_memory = action in (ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE)
    frames = row.get("frames", ())
    return Event(
        action,
        _address(row, "addr", None if has_memory else 0),
        _number(row, "size", default=None if has_memory else 0),
        _address(row, "stream", 0),
        frames if isinstance(frames, list) else (),
    )


def _segment(row: Mapping[str, Any]) -> Segment:
    pool = row.get("segment_pool_id", ())
    start = _address(row, "address")
    blocks, at = [], start
    for item in map(_dict_of("a block"), _list(row, "blocks")):
        block = _block(item, at)
        blocks.append(block)
        at = block.address + block.bytes
    return Segment(
        start,
        _number(row, "total_size"),
        _address(row, "stream", 0),
        row.get("segment_type") == "small",
        row.get("is_expandable") is True,
        tuple(pool) if isinstance(pool, (tuple, list)) else (),
        blocks,
    )


def _block(row: Mapping[str, Any], at: int) -> Block:
    """Returns a block. Files from before PyTorch 2.1 do not say where it begins."""
    size = _number(row, "size")
    return Block(
        _address(row, "address", at),
        size,
        _number(row, "requested_size", default=size),
        row.get("state") in ("active_allocated", "active_awaiting_free", "active_pending_free"),
    )


def _dict_of(what: str) -> Callable[[Any], Mapping[str, Any]]:
    return lambda value: untrusted_files.mapping(value, what)


def _list(row: Mapping[str, Any], key: str) -> list[Any]:
    return untrusted_files.items(row.get(key), key)


def _number(row: Mapping[str, Any], key: str, most: int = INT64, default: int | None = None) -> int:
    return untrusted_files.whole_number(row.get(key, default), key, 0, most)


def _address(row: Mapping[str, Any], key: str, default: int | None = None) -> int:
    return _number(row, key, UINT64, default)
