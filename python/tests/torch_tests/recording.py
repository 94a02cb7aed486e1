"""Writes recordings in the form of ``torch.cuda.memory._dump_snapshot``, without a GPU.

The keys and actions are those that PyTorch 2.15 documents in torch/cuda/memory.py. Addresses come
from the replay of the allocator, so that these files can test what reads them, but not the replay.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from ckplan.torch.estimation.allocator import Allocator, Block

SETTINGS = {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False}
ADDRESS = 0x7F00_0000_0000


def frames(*places: tuple[str, int, str]) -> list[dict[str, Any]]:
    """Returns a stack, its innermost call first."""
    return [{"filename": name, "line": line, "name": call} for name, line, call in places]


TRAINING = frames(("/home/me/net.py", 7, "forward"), ("/home/me/train.py", 30, "main"))
ADAM = frames(
    ("/site-packages/torch/optim/adam.py", 400, "_multi_tensor_adam"),
    ("/site-packages/torch/optim/adam.py", 230, "step"),
)


class Recorder:
    """An allocator that records its events in order."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._segments: dict[int, int] = {}
        self._next = ADDRESS
        self._allocator = Allocator(driver=self._driver)
        self._blocks: dict[int, tuple[Block | None, int]] = {}
        self._stack: list[dict[str, Any]] = []

    def allocate(self, key: int, size: int, stack: list[dict[str, Any]] | None = None) -> None:
        self._stack = TRAINING if stack is None else stack
        block = self._allocator.allocate(size)
        self._blocks[key] = block, size
        if block is not None:
            self._note("alloc", block.address, size)

    def free(self, key: int) -> None:
        block, size = self._blocks.pop(key)
        if block is not None:
            address = block.address
            self._note("free_requested", address, size)
            self._note("free_completed", address, size)
            self._allocator.release(block)

    def change(self, key: int, size: int) -> None:
        """Allocates, or frees where ``size`` is negative, as Tracker.changes() lists it."""
        if size < 0:
            self.free(key)
        else:
            self.allocate(key, size)

    def content(self, forget: int = 0) -> dict[str, Any]:
        """Returns the snapshot, without the first events."""
        return {
            "segments": [self._segment(address) for address in sorted(self._segments)],
            "device_traces": [[], self.events[forget:]],
            "allocator_settings": SETTINGS,
            "external_annotations": [],
        }

    def write(self, path: Path, forget: int = 0) -> Path:
        path.write_bytes(pickle.dumps(self.content(forget)))
        return path

    def _driver(self, size: int) -> int:
        address, self._next = self._next, self._next + size
        self._segments[address] = size
        self._note("segment_alloc", address, size)
        return address

    def _note(self, action: str, address: int, size: int) -> None:
        row = {"action": action, "addr": address, "size": size, "stream": 0}
        self.events.append(row | {"time_us": len(self.events), "frames": self._stack})

    def _segment(self, address: int) -> dict[str, Any]:
        size = self._segments[address]
        used = sorted(
            (block.address, block.bytes, requested)
            for block, requested in self._blocks.values()
            if block is not None and address <= block.address < address + size
        )
        blocks, at = [], address
        for begin, count, requested in [*used, (address + size, 0, 0)]:
            if begin > at:
                blocks.append(_block(at, begin - at, 0, "inactive"))
            if count:
                blocks.append(_block(begin, count, requested, "active_allocated"))
            at = begin + count
        kind = "small" if size == 2 << 20 else "large"
        return {
            "device": 1,
            "address": address,
            "total_size": size,
            "allocated_size": sum(count for _, count, _ in used),
            "active_size": sum(count for _, count, _ in used),
            "stream": 0,
            "segment_type": kind,
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": blocks,
        }


def _block(address: int, size: int, requested: int, state: str) -> dict[str, Any]:
    return {
        "address": address,
        "size": size,
        "requested_size": requested,
        "state": state,
        "frames": [],
    }
