"""Measures what operators allocate and free within one call, by PyTorch's allocators.

Each process runs each call once, on zeros of the same form. The results are not cached in files,
because promises depend on them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from ckplan.torch.capture import tensors_in
from ckplan.torch.graph import JointGraph
from ckplan.torch.inductor import private
from ckplan.torch.inductor.example_calls import example_arguments, machine
from ckplan.torch.inductor.lowered_step import NotReplayedError
from ckplan.torch.inductor.replay import CUDA_UNIT, OperatorCall

_known: dict[str, dict[str, int]] = {}
"""By machine: the bytes that calls need besides their results."""


def workspace_bytes(calls: Iterable[Any]) -> dict[str, int]:
    """Returns the bytes that each call of an operator needs besides its results, by the call's key.

    Uncounted results do not count from their allocation on. Raises NotReplayedError if a call
    cannot be measured.
    """
    calls_by_key = {call.memory_key: call for call in calls if isinstance(call, OperatorCall)}
    known = _known.setdefault(machine(calls_by_key.values()), {})
    missing = [call for key, call in calls_by_key.items() if key not in known]
    if missing:
        known.update(_measure(missing))
    return {key: known[key] for key in calls_by_key}


def set_workspaces(graph: JointGraph, calls: Iterable[Any], within: Mapping[str, int]) -> None:
    """Sets the workspace of each operation that is among the calls.

    Strides are not compared, because Inductor may change them.
    """
    known: dict[tuple[str, ...], int] = {}
    for call in calls:
        if isinstance(call, OperatorCall) and within.get(call.memory_key):
            key = _operation_key(call.operator, [form.shape for form in call.forms()])
            known[key] = max(known.get(key, 0), within[call.memory_key])
    for operation in graph.operations:
        if operation.node is not None:
            values = [node.meta.get("val") for node in operation.node.all_input_nodes]
            shapes = [tuple(tensor.shape) for tensor in tensors_in(values)]
            key = _operation_key(operation.node.target, shapes)
            operation.workspace_bytes = known.get(key, 0)


def _operation_key(operator: Any, shapes: list[tuple[int, ...]]) -> tuple[str, ...]:
    """Returns a key for the operator and its argument shapes."""
    return str(getattr(operator, "overloadpacket", operator)), *map(repr, sorted(shapes))


def _measure(calls: list[OperatorCall]) -> dict[str, int]:
    if private.is_profiled():
        raise NotReplayedError("a profiler runs while the step is compiled")
    found = {}
    with torch.no_grad(), private.real_tensors(), torch.random.fork_rng():
        for call in calls:
            on_cuda = any(form.device == "cuda" for form in call.forms())
            try:
                found[call.memory_key] = _on_cuda(call) if on_cuda else _on_cpu(call)
            except RuntimeError as error:
                reason = f"{call.operator} does not run on zeros: {error}"
                raise NotReplayedError(reason) from error
    return found


def _on_cpu(call: OperatorCall) -> int:
    args, kwargs = example_arguments(call)
    with private.allocations() as changes:
        result = call.operator(*args, **kwargs)
    made = _new_storages(result, (args, kwargs))
    uncounted = [made.pop(position) for position in call.uncounted if position in made]
    peaks = sum(_peak(_remove_results(uncounted, thread)) for thread in changes)
    return max(0, peaks - sum(made.values()))


def _remove_results(uncounted: list[int], changes: list[int]) -> list[int]:
    """Returns the changes without the allocations of results with these sizes.

    If several allocations of a size stay, the last one counts as the result.
    """
    staying: dict[int, list[int]] = defaultdict(list)
    for position, size in enumerate(changes):
        if size > 0:
            staying[size].append(position)
        elif staying[-size]:
            staying[-size].pop()
    results = {staying[size].pop() for size in uncounted if staying[size]}
    return [size for position, size in enumerate(changes) if position not in results]


def _peak(changes: list[int]) -> int:
    live = peak = 0
    for size in changes:
        live += size
        peak = max(peak, live)
    return peak


def _on_cuda(call: OperatorCall) -> int:
    """Measures the second call, because in the first one libraries allocate memory that they keep.

    It is unknown when a call allocates its results, so uncounted ones are assumed to come last.
    """
    args, kwargs = example_arguments(call)
    call.operator(*args, **kwargs)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = call.operator(*args, **kwargs)
    peak = torch.cuda.max_memory_allocated() - before
    made = _new_storages(result, (args, kwargs))
    sizes = (made.get(position, 0) for position in call.uncounted)
    uncounted = sum(-(-size // CUDA_UNIT) * CUDA_UNIT for size in sizes)
    return max(0, peak - (torch.cuda.memory_allocated() - before - uncounted))


def _new_storages(result: Any, arguments: Any) -> dict[int, int]:
    """Returns the bytes of each new storage of the result, by the position of its first tensor."""
    known = {tensor.untyped_storage().data_ptr() for tensor in _tensors(arguments)}
    made = {}
    for position, tensor in enumerate(tensors_in(result)):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            known.add(storage.data_ptr())
            made[position] = storage.nbytes()
    return made


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    return tensors_in([*value[0], *value[1].values()])
