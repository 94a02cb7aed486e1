"""Measures the memory that a step's tensors need while it runs.

A dispatch mode sees every operation, and records when storages appear and disappear. It does not
see memory that an operator allocates and frees within one call. It does not depend on an allocator,
so it works on every device, and is exact to the byte.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ckplan.torch.capture import tensors_in
from ckplan.torch.offload.host import is_on_host
from ckplan.torch.private import let_pass_opaque, storage_key, storage_watch
from ckplan.torch.private_autograd import has_saved_tensor_hooks


class Tracker:
    """The memory of one step: its forward module, its saved values, and its backward module.

    Copies on the host are counted separately.
    """

    def __init__(self) -> None:
        self._watches: dict[int, Callable[[], bool]] = {}
        # All changes: (number of the storage, bytes it adds). peak_bytes() reads them.
        self._changes: list[tuple[int, int]] = []
        self._numbers: dict[int, int] = {}
        self._sizes: list[int] = []
        self._devices: list[str] = []
        self._left_out: set[int] = set()
        self._on_host: set[int] = set()
        self.is_hooked = False
        """Whether hooks for saved tensors were active; they may hold tensors of their own."""

    def run(self, call: Callable[[list[Any]], Any], arguments: list[Any]) -> Any:
        """Runs a boxed module, and tracks the memory of all tensors that it makes."""
        # A watch prevents its storage's number from being reused.
        inputs = {storage_key(t): storage_watch(t) for t in tensors_in(arguments)}
        self.is_hooked |= has_saved_tensor_hooks()
        with _Watch(self, inputs):
            return call(arguments)

    def hold(self, tensors: Iterable[Any]) -> None:
        """Counts tensors made elsewhere until they are freed."""
        for tensor in tensors_in(list(tensors)):
            self._note_storage(tensor)

    def leave_out(self, tensors: Iterable[Any]) -> None:
        """Excludes the memory of these tensors."""
        for tensor in tensors_in(list(tensors)):
            number = self._numbers.get(storage_key(tensor))
            if number is not None:
                self._left_out.add(number)

    def peak_bytes(self) -> int:
        """Returns the peak in bytes, without excluded memory and copies on the host."""
        excluded = self._left_out | self._on_host
        return _largest_prefix_sum(size for number, size in self._changes if number not in excluded)

    def host_peak_bytes(self) -> int:
        """Returns the peak of copies on the host, in bytes."""
        on_host = (size for number, size in self._changes if number in self._on_host)
        return _largest_prefix_sum(on_host)

    def changes(self, device: str) -> list[tuple[int, int]]:
        """Returns all changes on a type of device: (number of a storage, bytes added)."""
        ours = {n for n, type in enumerate(self._devices) if type == device} - self._on_host
        return [(n, size) for n, size in self._changes if n in ours]

    def forget_dead(self) -> None:
        """Records which storages have been freed."""
        for key in [key for key, lives in self._watches.items() if not lives()]:
            del self._watches[key]
            number = self._numbers.pop(key)
            self._changes.append((number, -self._sizes[number]))

    def size_of(self, tensor: torch.Tensor) -> int:
        """Returns the bytes that the tensor's memory counts for."""
        return tensor.untyped_storage().nbytes()

    def _note_storage(self, tensor: torch.Tensor) -> None:
        key = storage_key(tensor)
        if key in self._watches:
            return
        number = len(self._sizes)
        self._sizes.append(self.size_of(tensor))
        self._devices.append(tensor.device.type)
        self._numbers[key] = number
        if is_on_host(key):
            self._on_host.add(number)
        self._watches[key] = storage_watch(tensor)
        self._changes.append((number, self._sizes[number]))

    def note_results(self, result: Any, inputs: Container[int]) -> None:
        """Counts the new storages among the results of an operation."""
        for tensor in tensors_in(result):
            if storage_key(tensor) not in inputs:
                self._note_storage(tensor)


def _largest_prefix_sum(changes: Iterable[int]) -> int:
    """Returns the largest prefix sum of the changes."""
    return max(itertools.accumulate(changes, initial=0))


@let_pass_opaque
class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, tracker: Tracker, inputs: dict[int, Callable[[], bool]]):
        super().__init__()  # type: ignore[no-untyped-call]
        self._tracker = tracker
        self._inputs = inputs

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self._tracker.forget_dead()
        result = operator(*args, **(kwargs or {}))
        self._tracker.note_results(result, self._inputs)
        return result
