"""Determines which values of a captured graph plans may move to the host."""

from __future__ import annotations

from ckplan.torch.capture import tensors_in
from ckplan.torch.errors import OffloadError
from ckplan.torch.graph import JointGraph, Operation


def pin_to_device(graph: JointGraph, is_compiled: bool) -> None:
    """Adds the operations whose results must stay on the device to ``graph.never_offloaded``.

    Their results share memory with those of another operation, as with communication, or are on the
    CPU in modules for a compiler. The program itself excludes results of the model. Raises
    OffloadError if the graph is on a device whose values cannot be moved.
    """
    operations = [operation for operation in graph.operations if operation.node is not None]
    kinds = {kind for operation in operations for kind in _device_types(operation)}
    others = sorted(kinds - {"cpu", "cuda"})
    if others:
        raise OffloadError(f"offload supports NVIDIA GPUs, and CPUs for tests, but not {others[0]}")
    if is_compiled and kinds == {"cpu"}:
        raise OffloadError(
            'with compiler="inductor", offload needs a GPU, because PyTorch\'s copy operators for '
            'compiled graphs do not run on a CPU; use compiler="eager"'
        )
    passed_on = {
        graph.values[value].alias_of
        for operation in operations
        for value in operation.writes
        if graph.values[value].alias_of is not None
    }
    listed = set(graph.never_offloaded)
    for operation in operations:
        stays = not passed_on.isdisjoint(operation.writes)
        stays = stays or (is_compiled and "cpu" in _device_types(operation))
        if stays and operation.name not in listed:
            graph.never_offloaded.append(operation.name)


def _device_types(operation: Operation) -> set[str]:
    return {tensor.device.type for tensor in tensors_in(operation.call.meta.get("val"))}
