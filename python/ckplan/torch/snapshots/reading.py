"""Reads the files that ``torch.cuda.memory._dump_snapshot`` writes, without running code in them.

The files are pickles, which can name functions for their reader to call. A snapshot consists of
dictionaries, lists, tuples, texts and numbers, which need no function. So the reader refuses every
name, whatever it stands for, and every reference to something outside of the file. A few bytes of
a pickle can also claim gigabytes, so the reader bounds what a file may claim by its size.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckplan.torch.errors import SnapshotError
from ckplan.torch.snapshots.printable import printable

ALLOC, FREE = "alloc", "free_completed"
SEGMENT_ALLOC, SEGMENT_FREE = "segment_alloc", "segment_free"
SEGMENT_MAP, SEGMENT_UNMAP = "segment_map", "segment_unmap"

_GROWTH = 128
"""A byte of a pickle makes an object of at most this many bytes."""
_SLACK = 256 << 20


@dataclass(frozen=True)
class Event:
    """One entry of the allocator's history. ``bytes`` is what was asked for, before rounding."""

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
        """Returns the bytes in use before the first event, as they were asked for."""
        blocks = (block for segment in self.segments for block in segment.blocks)
        live = sum(block.requested_bytes for block in blocks if block.is_used)
        for event in self.events:
            if event.action == ALLOC:
                live -= event.bytes
            elif event.action == FREE:
                live += event.bytes
        return live


class _PlainUnpickler(pickle.Unpickler):
    """Makes dictionaries, lists, tuples, texts and numbers, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        raise SnapshotError(
            f"it names {printable(f'{module}.{name}')} to be called, which no snapshot does; it is "
            "not read"
        )

    def persistent_load(self, pid: Any) -> Any:
        raise SnapshotError("it is no snapshot: it refers to something outside of the file")


def read(path: str | os.PathLike[str], device: int | None = None) -> Snapshot:
    """Returns the history of one device in a snapshot file.

    ``device`` may be left out where the file has the history of one device only. Raises
    SnapshotError, and OSError if the file cannot be read.
    """
    try:
        return _snapshot(_plain(Path(path)), device)
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from None


def _plain(path: Path) -> Any:
    with path.open("rb") as file, _bounded(_GROWTH * os.fstat(file.fileno()).st_size + _SLACK):
        try:
            return _PlainUnpickler(file).load()
        except SnapshotError:
            raise
        except MemoryError:
            raise SnapshotError("it claims more memory than a file of its size can need") from None
        # A file that is no pickle, or a damaged one, may raise anything.
        except Exception as error:
            raise SnapshotError(
                "it is no snapshot: torch.cuda.memory._dump_snapshot(FILE) writes one "
                f"({type(error).__name__}: {printable(str(error))})"
            ) from None


@contextlib.contextmanager
def _bounded(more: int) -> Iterator[None]:
    """Bounds the memory that this process may claim meanwhile, beside what it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    limits = [row for row in (limit, soft, hard) if row != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _snapshot(content: Any, device: int | None) -> Snapshot:
    if not isinstance(content, dict) or not {"segments", "device_traces"} <= set(content):
        raise SnapshotError(
            "it is no snapshot: it has no segments and device_traces, which "
            "torch.cuda.memory._dump_snapshot(FILE) writes"
        )
    traces = _list(content, "device_traces")
    if not all(isinstance(trace, list) for trace in traces):
        raise SnapshotError("device_traces is no list of lists")
    number = _device(traces, device)
    segments = [_segment(_dict(row, "a segment")) for row in _list(content, "segments")
                if _is_on(row, number)]
    return Snapshot(number, [_event(_dict(row, "an event")) for row in traces[number]], segments)


def _device(traces: list[list[Any]], device: int | None) -> int:
    recorded = [number for number, trace in enumerate(traces) if trace]
    if not recorded:
        raise SnapshotError(
            "it has no history: call torch.cuda.memory._record_memory_history() before the steps "
            "that are to be compared"
        )
    names = ", ".join(map(str, recorded))
    if device is None:
        if len(recorded) > 1:
            raise SnapshotError(f"it has the history of the devices {names}: choose one of them")
        return recorded[0]
    if device not in recorded:
        raise SnapshotError(f"it has no history of device {device}; it has that of {names}")
    return device


def _is_on(segment: Any, device: int) -> bool:
    """Returns whether a segment is of the device. Files of PyTorch before 2.0 do not say so."""
    return not isinstance(segment, dict) or segment.get("device", device) == device


def _event(row: Mapping[str, Any]) -> Event:
    action = row.get("action")
    if not isinstance(action, str):
        raise SnapshotError("an event has no text as its action")
    needs_address = action in (ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE)
    frames = row.get("frames", ())
    return Event(
        action,
        _number(row, "addr", None if needs_address else 0),
        _number(row, "size", None if needs_address else 0),
        _number(row, "stream", 0),
        frames if isinstance(frames, list) else (),
    )


def _segment(row: Mapping[str, Any]) -> Segment:
    pool = row.get("segment_pool_id", ())
    start = _number(row, "address")
    blocks, at = [], start
    for item in _list(row, "blocks"):
        block = _block(_dict(item, "a block"), at)
        blocks.append(block)
        at = block.address + block.bytes
    return Segment(
        start,
        _number(row, "total_size"),
        _number(row, "stream", 0),
        row.get("segment_type") == "small",
        row.get("is_expandable") is True,
        tuple(pool) if isinstance(pool, tuple) else (),
        blocks,
    )


def _block(row: Mapping[str, Any], at: int) -> Block:
    """Returns a block. Files of PyTorch before 2.1 do not say where it begins."""
    size = _number(row, "size")
    return Block(
        _number(row, "address", at),
        size,
        _number(row, "requested_size", size),
        row.get("state") in ("active_allocated", "active_awaiting_free", "active_pending_free"),
    )


def _dict(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SnapshotError(f"{what} is no dictionary")
    return value


def _list(row: Mapping[str, Any], key: str) -> list[Any]:
    value = row.get(key)
    if not isinstance(value, list):
        raise SnapshotError(f"{key} is no list")
    return value


def _number(row: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = row.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**64:
        raise SnapshotError(f"{key} is no number of 64 bits")
    return value
