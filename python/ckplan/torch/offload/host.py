"""Host memory for the copies of one graph, and the copies themselves.

A graph has one block of host memory, the *slab*, with a planned place for each copy. If several
calls of the graph wait for their backward passes, each has its own slab.

On a GPU the slab is pinned. Copies run in two streams besides the compute stream, one for each
direction, or in one stream if the link is half duplex. Each copy has an event, and the compute
stream waits for it where the plan says so. This has not been run on a GPU.

On a CPU the slab plays the host: it is ordinary memory that is counted separately. Each copy is
made as late as the plan allows, at the wait for it, and its target holds poison until then, so a
missing wait shows in the results. Dropped memory is poisoned too.
"""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ckplan.torch.offload.steps import Placement
from ckplan.torch.private import storage_key, storage_watch

POISON = 0xFF
"""The poison byte; floats made of it are NaNs."""


@dataclass
class _Copy:
    """Where a host copy lies, and the event after which it is complete."""

    is_needed: Callable[[], bool]
    slab: int
    begin: int
    end: int
    event: Any = None


@dataclass
class _Arrival:
    """A copy back to the device; it holds the memory that it writes to."""

    tensor: torch.Tensor
    event: Any
    is_wanted: Callable[[], bool]
    """Whether the host copy still exists. If not, the backward pass that reads it never ran."""


class HostMemory:
    """The slabs of one graph. The graph's modules call the methods as operations."""

    def __init__(self, placement: Placement):
        self._slab_bytes = placement.bytes
        self._is_half_duplex = placement.is_half_duplex
        self._slabs: list[_Slab] = []
        self._copies: dict[int, _Copy] = {}
        # Copies back that are under way, by the keys of their tensors' storages.
        self._arrivals: dict[int, _Arrival] = {}

    def out(self, tensor: torch.Tensor, offset: int) -> torch.Tensor:
        """Begins a copy to the host, and returns it."""
        size = tensor.untyped_storage().nbytes()
        host = self._take(offset, size, is_pinned=tensor.is_cuda)
        if _has_streams(tensor):
            copy = self._copies[storage_key(host)]
            copy.event = self._queue("out", tensor.device, host, _flat(tensor))
        else:
            host.fill_(POISON)
        return _like(tensor, host)

    def drop(self, host: torch.Tensor, tensor: torch.Tensor, poisons: bool) -> torch.Tensor:
        """Waits for the copy to the host, and returns it. ``tensor`` must not be read any more."""
        if _has_streams(tensor):
            _wait_for(self._copies[storage_key(host)].event, tensor.device)
        else:
            _flat(host).copy_(_flat(tensor))
            if poisons:
                _flat(tensor).fill_(POISON)
        return host

    def load(self, host: torch.Tensor, device: torch.device) -> torch.Tensor:
        """Allocates a tensor on the device, begins the copy into it, and returns it."""
        made = torch.empty(host.untyped_storage().nbytes(), dtype=torch.uint8, device=device)
        if _has_streams(made):
            event = self._queue("in", made.device, made, _flat(host))
            self._arrivals[storage_key(made)] = _Arrival(made, event, storage_watch(host))
        else:
            made.fill_(POISON)
        return _like(host, made)

    def wait(self, tensor: torch.Tensor, host: torch.Tensor) -> torch.Tensor:
        """Waits for the copy into a tensor, and returns the tensor."""
        if _has_streams(tensor):
            # If the backward pass runs a second time, the copy is complete already.
            if storage_key(tensor) in self._arrivals:
                _wait_for(self._arrivals.pop(storage_key(tensor)).event, tensor.device)
        else:
            _flat(tensor).copy_(_flat(host))
        return tensor

    def holds(self, key: int) -> bool:
        """Returns whether a storage is in this memory, by its key."""
        copy = self._copies.get(key)
        return copy is not None and copy.is_needed()

    def _take(self, offset: int, size: int, is_pinned: bool) -> torch.Tensor:
        """Returns bytes at an offset of the first slab in which they are free."""
        for key in [key for key, arrival in self._arrivals.items() if not arrival.is_wanted()]:
            abandoned = self._arrivals.pop(key)
            _wait_for(abandoned.event, abandoned.tensor.device)
        self._copies = {key: copy for key, copy in self._copies.items() if copy.is_needed()}
        end = offset + size
        used_slabs = {c.slab for c in self._copies.values() if c.begin < end and offset < c.end}
        number = next(i for i in range(len(self._slabs) + 1) if i not in used_slabs)
        if number == len(self._slabs):
            _memories.add(self)
            self._slabs.append(_Slab(self._slab_bytes, is_pinned))
        made = self._slabs[number].part(offset, size)
        self._copies[storage_key(made)] = _Copy(storage_watch(made), number, offset, end)
        return made

    def _queue(self, way: str, device: torch.device, to: torch.Tensor, source: torch.Tensor) -> Any:
        """Queues a copy in another stream, after everything that the compute stream has queued.

        Returns the event after which the copy is complete.
        """
        beside = _stream(device, "both" if self._is_half_duplex else way)
        beside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(beside):
            _copy(to, source)
            return beside.record_event()


_memories: weakref.WeakSet[HostMemory] = weakref.WeakSet()


def is_on_host(key: int) -> bool:
    """Returns whether a storage, by its key, is a copy on the host."""
    return any(memory.holds(key) for memory in _memories)


class _Slab:
    """One block of host memory. Its parts are tensors with storages of their own.

    PyTorch's allocator of pinned memory would round the block up to a power of two.
    """

    def __init__(self, size: int, is_pinned: bool):
        self._memory = mmap.mmap(-1, max(size, 1))
        if is_pinned:
            memory = torch.frombuffer(self._memory, dtype=torch.uint8)
            runtime: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
            torch.cuda.check_error(runtime.cudaHostRegister(memory.data_ptr(), size, 0))
            # Holds the memory until it is unregistered.
            weakref.finalize(self, _unregister, runtime, memory)

    def part(self, offset: int, size: int) -> torch.Tensor:
        """Returns the bytes in a range, as a tensor with its own storage."""
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=size, offset=offset)


def _unregister(runtime: Any, memory: torch.Tensor) -> None:
    torch.cuda.synchronize()
    runtime.cudaHostUnregister(memory.data_ptr())


# All graphs share the link, so they also share its streams, one for each device and direction.
_streams: dict[tuple[torch.device, str], Any] = {}


def _stream(device: torch.device, way: str) -> Any:
    if (device, way) not in _streams:
        _streams[device, way] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return _streams[device, way]


def _has_streams(tensor: torch.Tensor) -> bool:
    return tensor.is_cuda


def _copy(to: torch.Tensor, source: torch.Tensor) -> None:
    to.copy_(source, non_blocking=True)


def _wait_for(event: Any, device: torch.device) -> None:
    torch.cuda.current_stream(device).wait_event(event)


def settled(call: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Returns a boxed function that, if it fails, first waits for all copies.

    Otherwise the memory of a copy might be freed and reused before the copy ends.
    """

    def run(arguments: list[Any]) -> Any:
        try:
            return call(arguments)
        except BaseException:
            for (device, _), stream in _streams.items():
                torch.cuda.current_stream(device).wait_stream(stream)
            raise

    return run


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Returns all bytes of the tensor's storage, of which the tensor may be only a part."""
    empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return empty.set_(tensor.untyped_storage())


def _like(tensor: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
    """Returns a tensor like another one, in other memory of the same size."""
    made = torch.empty(0, dtype=tensor.dtype, device=memory.device)
    place = tensor.storage_offset(), tensor.shape, tensor.stride()
    return made.set_(memory.untyped_storage(), *place)
