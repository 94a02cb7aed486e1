"""What operators allocate and free within one call, measured by PyTorch's allocators.

Each call is made once, on zeros of the same form. What was measured is kept by the device, the
forms and PyTorch's version, since only these decide it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ckplan.torch import cache
from ckplan.torch.capture import tensors_in
from ckplan.torch.inductor import private
from ckplan.torch.inductor.examples import example, machine
from ckplan.torch.inductor.lowered import NotReplayedError
from ckplan.torch.inductor.replay import OperatorCall

_known: dict[str, dict[str, int]] = {}
"""For each machine, what calls need beside their results."""


def within_calls(calls: Iterable[Any]) -> dict[str, int]:
    """Returns the bytes that each operator's call needs beside its results, by the call's key.

    Raises NotReplayedError if a call cannot be measured.
    """
    wanted = {call.key: call for call in calls if isinstance(call, OperatorCall)}
    name = f"operators-{machine(wanted.values())}"
    known = _known.setdefault(name, {})
    if any(key not in known for key in wanted):
        known.update(cache.numbers(name))
    missing = [call for key, call in wanted.items() if key not in known]
    if missing:
        known.update(_measure(missing))
        cache.store_numbers(name, known)
    return {key: known[key] for key in wanted}


def _measure(calls: list[OperatorCall]) -> dict[str, int]:
    if private.is_profiled():
        raise NotReplayedError("a profiler runs while the step is compiled")
    found = {}
    with torch.no_grad(), private.real_tensors(), torch.random.fork_rng():
        for call in calls:
            on_cuda = any(form.device == "cuda" for form in call.forms())
            found[call.key] = _on_cuda(call) if on_cuda else _on_cpu(call)
    return found


def _on_cpu(call: OperatorCall) -> int:
    args, kwargs = example(call)
    with private.allocations() as changes:
        result = call.operator(*args, **kwargs)
    return max(0, sum(_peak(thread) for thread in changes) - _new_bytes(result, (args, kwargs)))


def _peak(changes: list[int]) -> int:
    live = peak = 0
    for size in changes:
        live += size
        peak = max(peak, live)
    return peak


def _on_cuda(call: OperatorCall) -> int:
    """Measures the second call: the first one makes what libraries keep."""
    args, kwargs = example(call)
    call.operator(*args, **kwargs)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = call.operator(*args, **kwargs)
    peak = torch.cuda.max_memory_allocated() - before
    return max(0, peak - (torch.cuda.memory_allocated() - before) * (result is not None))


def _new_bytes(result: Any, arguments: Any) -> int:
    """Returns the bytes of the result that were not there before the call."""
    old = {tensor.untyped_storage().data_ptr() for tensor in _tensors(arguments)}
    made = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
        for tensor in tensors_in(result)
    }
    return sum(size for address, size in made.items() if address not in old)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    return tensors_in([*value[0], *value[1].values()])
