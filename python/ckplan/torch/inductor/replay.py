"""Replays a step that Inductor has lowered, and counts its memory.

The forward and the backward wrapper run on fake tensors as AOT autograd would run them: the caller
holds the step's results to the end, and each saved tensor lives until the backward wrapper drops
it. A Tracker counts the storages; for a step on a GPU it excludes copies on the host. Memory that
an operator allocates within its call is measured, and added at that call.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ckplan.torch import operators
from ckplan.torch.capture import is_held_by_caller, tensors_in
from ckplan.torch.inductor import lowered_step, private, wrapper
from ckplan.torch.inductor.lowered_step import NotReplayedError
from ckplan.torch.inductor.wrapper import Kernel
from ckplan.torch.private import fake_mode, storage_key, storage_watch
from ckplan.torch.tracker import Tracker

CUDA_UNIT = 512
"""PyTorch's CUDA allocator rounds sizes up to a multiple of this."""


@dataclass(frozen=True)
class Form:
    """The shape, type and device of a tensor, without its contents."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: str

    @property
    def bytes(self) -> int:
        """Returns the bytes of its elements; expanded ones count once."""
        count = 1
        for size, step in zip(self.shape, self.stride):
            count *= size if step else 1
        return count * self.dtype.itemsize


def form_of(tensor: torch.Tensor) -> Form:
    return Form(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device.type)


@dataclass(frozen=True)
class OperatorCall:
    """A call of an operator, by the forms of its tensors."""

    operator: Any
    args: tuple[Any, ...]
    """The arguments, with forms instead of tensors."""
    kwargs: tuple[tuple[str, Any], ...]
    results: Any = None
    uncounted: tuple[int, ...] = ()
    """The positions of results that do not count."""

    @property
    def key(self) -> str:
        return f"{self.operator} {self.args} {self.kwargs}"

    @property
    def memory_key(self) -> str:
        """Identifies the memory that the call counts with."""
        return f"{self.key} without {self.uncounted}" if self.uncounted else self.key

    def forms(self) -> Iterator[Form]:
        """Yields the forms of all tensors that it takes."""
        return forms_in((self.args, self.kwargs))


def forms_in(value: Any) -> Iterator[Form]:
    if isinstance(value, Form):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from forms_in(item)


@dataclass(frozen=True)
class KernelCall:
    """A call of a kernel that Inductor has made, by the forms of its tensors."""

    kernel: Kernel
    args: tuple[Any, ...]
    """All arguments, with forms instead of tensors."""

    @property
    def key(self) -> str:
        return f"{self.kernel.text} {self.args}"

    def forms(self) -> Iterator[Form]:
        """Yields the forms of all tensors that it takes."""
        return forms_in(self.args)


@dataclass
class Replay:
    """The memory of a step in bytes, without inputs, parameters and their gradients."""

    calls: list[OperatorCall | KernelCall]
    saved_bytes: int
    changes: list[tuple[int, int]] = field(repr=False)
    """The number of a storage, and the bytes that it adds; the last ones still live."""
    _events: list[tuple[int, str | None]] = field(repr=False)
    """For each event: the bytes that it adds, or the key of an operator that runs."""

    @property
    def tensors_peak_bytes(self) -> int:
        """The peak of tensors."""
        return self.peak_bytes({})

    def peak_bytes(self, within: Mapping[str, int]) -> int:
        """The peak if operators' calls need ``within`` besides their results."""
        return peak_bytes(self._events, within)


def replay(step: lowered_step.Step, uncounted: Collection[int]) -> Replay:
    """Replays a step. ``uncounted``: positions of uncounted gradients.

    Raises NotReplayedError.
    """
    counter = Counter(is_on_gpu=any(tensor.is_cuda for tensor in tensors_in(step.forward.inputs)))
    forward = wrapper.load(step.forward, counter.note_kernel)
    backward = wrapper.load(step.backward, counter.note_kernel)
    with torch.no_grad(), private.real_tensors(), fake_mode():
        outputs = list(counter.run(forward, [_fake_like(value) for value in step.forward.inputs]))
        del outputs[: step.num_updated]
        kept = step.num_outputs - step.num_updated
        results, saved = outputs[:kept], outputs[kept:]
        del outputs
        counter.forget_dead()
        saved_bytes = counter.live_bytes
        brought = [_fake_like(value) for value in step.backward.inputs[len(saved) :]]
        counter.hold(brought)
        held = [tensor for tensor in tensors_in(brought) if is_held_by_caller(tensor)]
        saved += brought
        del brought
        gradients = list(counter.run(backward, saved))
        counter.forget_dead()
        counter.leave_out(gradients[i] for i in uncounted if i < len(gradients))
        del results, held
    return Replay(counter.calls(), saved_bytes, counter.counted_changes(), counter.events())


def peak_bytes(events: Iterable[tuple[int, str | None]], within: Mapping[str, int]) -> int:
    """Returns the peak if operators' calls need ``within`` besides their results.

    Each event has the bytes that it adds, and the key of an operator if it is a call.
    """
    live = peak = 0
    for added, key in events:
        live += added
        peak = max(peak, live + within.get(key or "", 0))
    return peak


def _fake_like(value: Any) -> Any:
    """Returns a fake tensor with the form of another one."""
    if not isinstance(value, torch.Tensor):
        raise NotReplayedError(f"the wrapper takes {value!r}, which is not a tensor")
    shape, stride = [int(size) for size in value.shape], [int(size) for size in value.stride()]
    return torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)


class Counter(Tracker):
    """Counts storages as a device's allocator does, and records the calls in between."""

    def __init__(self, is_on_gpu: bool = False) -> None:
        super().__init__()
        self._is_on_gpu = is_on_gpu
        self._calls: list[OperatorCall | KernelCall] = []
        # For each operator's call, its position, that among the changes, and its results' storages.
        self._marks: list[tuple[int, int, list[int]]] = []

    def run(self, call: Callable[[list[Any]], Any], arguments: list[Any]) -> Any:
        # A watch prevents its storage's number from being reused.
        inputs = {storage_key(t): storage_watch(t) for t in tensors_in(arguments)}
        with _Operators(self, inputs):
            return call(arguments)

    def counting(self, allocate: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps a function that allocates without the dispatcher, so that it also counts."""

        def counting(*arguments: Any) -> Any:
            self.forget_dead()
            made = allocate(*arguments)
            self.hold([made])
            return made

        return counting

    @property
    def live_bytes(self) -> int:
        return sum(size for number, size in self._changes if not self._is_on_host(number))

    def size_of(self, tensor: torch.Tensor) -> int:
        size = tensor.untyped_storage().nbytes()
        if tensor.device.type != "cuda":
            return size
        return -(-size // CUDA_UNIT) * CUDA_UNIT

    def note_kernel(self, kernel: Kernel, args: tuple[Any, ...]) -> None:
        self._calls.append(KernelCall(kernel, _to_forms(args)))

    def note_call(self, operator: Any, args: Any, kwargs: Any, result: Any) -> None:
        named = tuple((name, _to_forms(value)) for name, value in sorted(kwargs.items()))
        storages = [self._numbers.get(storage_key(each), -1) for each in tensors_in(result)]
        self._marks.append((len(self._calls), len(self._changes), storages))
        self._calls.append(OperatorCall(operator, _to_forms(args), named, _to_forms(result)))

    def calls(self) -> list[OperatorCall | KernelCall]:
        """Returns all calls in order. Call it after ``leave_out``."""
        found = list(self._calls)
        for position, _, storages in self._marks:
            uncounted = tuple(i for i, number in enumerate(storages) if number in self._left_out)
            call = found[position]
            assert isinstance(call, OperatorCall)
            found[position] = dataclasses.replace(call, uncounted=uncounted)
        return found

    def counted_changes(self) -> list[tuple[int, int]]:
        """Returns (number of the storage, bytes added) for each counted change."""
        return [(number, size) for number, size in self._changes if self._is_counted(number)]

    def events(self) -> list[tuple[int, str | None]]:
        """Returns all counted changes and calls in order."""
        found: list[tuple[int, str | None]] = []
        calls = self.calls()
        keys = [
            (where, cast(OperatorCall, calls[call]).memory_key) for call, where, _ in self._marks
        ]
        marks = iter([*keys, (len(self._changes) + 1, "")])
        position, key = next(marks)
        for index, (number, size) in enumerate([*self._changes, (-1, 0)]):
            while position <= index:
                found.append((0, key))
                position, key = next(marks)
            found.append((size if self._is_counted(number) else 0, None))
        return found

    def _is_counted(self, number: int) -> bool:
        return number not in self._left_out and not self._is_on_host(number)

    def _is_on_host(self, number: int) -> bool:
        return self._is_on_gpu and number >= 0 and self._devices[number] == "cpu"


def _to_forms(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return form_of(value)
    if isinstance(value, list | tuple):
        return tuple(_to_forms(item) for item in value)
    return value


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs each operator, and records its storages and the call."""

    supports_higher_order_operators = True

    def __init__(self, counter: Counter, inputs: dict[int, Callable[[], bool]]):
        super().__init__()  # type: ignore[no-untyped-call]
        self._counter, self._inputs = counter, inputs

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        self._counter.forget_dead()
        result = operator(*args, **kwargs)
        self._counter.note_results(result, self._inputs)
        if not operators.only_allocates(operator):
            self._counter.note_call(operator, args, kwargs, result)
        return result
