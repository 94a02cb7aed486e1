"""Finds results whose real storages are larger than those of their fake tensors.

``mse_loss`` writes the loss of every element, and then their mean to the front of the same storage,
which keeps its size. The loss is one number, but holds as many bytes as the prediction. Its fake
tensor has a storage of 4 bytes. Which of PyTorch's losses do this depends on PyTorch's version and
on the device, so each loss is run once on two elements to find out.

Periodic windows are computed with an extra element, which is then cut off. Operations without
tensor arguments, such as these, are run once to see what they allocate. Functional forms of writes
to a view copy the whole memory of its base.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import fx
from torch._ops import OpOverload

from ckplan.torch import operators, private

# Operators, and the position of their result that has one more element in memory.
_ONE_MORE = {
    ("aten::_embedding_bag", 1),
    ("aten::_embedding_bag_forward_only", 1),
}

# Operators that copy the whole memory of their first argument (``clone_preserve_strides``).
_COPIES_OF_MEMORY = frozenset(
    {
        "aten::copy",
        "aten::slice_scatter",
        "aten::select_scatter",
        "aten::diagonal_scatter",
        "aten::as_strided_scatter",
    }
)

# Results that have the parameters' type on the CPU, whereas fake tensors have the input's:
# statistics of a 16-bit normalization with 32-bit parameters, as under autocast.
_STATISTICS = frozenset(
    {
        "aten::native_batch_norm",
        "aten::_native_batch_norm_legit",
        "aten::_native_batch_norm_legit_functional",
        "aten::_batch_norm_with_update",
        "aten::_batch_norm_with_update_functional",
        "aten::native_group_norm",
        "aten::native_layer_norm",
    }
)

_MOST_RUN_BYTES = 1 << 26
"""Larger results are not computed just to see what they allocate."""


def allocated_bytes(node: fx.Node, position: int) -> int:
    """Returns a lower bound of the memory of a result, if known; its fake tensor may be smaller.

    ``position`` is the result's position among the tensors that the operation returns.
    """
    result = node.meta.get("val")
    if isinstance(result, (tuple, list)):
        name = operators.schema_name(node)
        is_statistic = name in _STATISTICS and position in (1, 2)
        if not is_statistic and (name, position) not in _ONE_MORE:
            return 0
        tensor = result[position]
        elements = private.upper_bound(tensor.numel()) or 0
        if is_statistic:
            return elements * _largest_element_bytes(node)
        return (elements + 1) * int(tensor.element_size())
    if not isinstance(result, torch.Tensor):
        return 0
    return max(
        unreduced_bytes(node),
        _copied_base_bytes(node, result),
        _bytes_without_tensor_arguments(node, result),
    )


def _largest_element_bytes(node: fx.Node) -> int:
    """Returns the largest element size of the arguments, in bytes."""
    sources = [source.meta.get("val") for source in node.all_input_nodes]
    return max(source.element_size() for source in sources if isinstance(source, torch.Tensor))


def _copied_base_bytes(node: fx.Node, result: torch.Tensor) -> int:
    """Returns the bytes of a base that an operation copies as a whole; 0 for other operations."""
    source = node.args[0] if node.args else None
    if operators.schema_name(node) not in _COPIES_OF_MEMORY or not isinstance(source, fx.Node):
        return 0
    copied = source.meta.get("val")
    if not isinstance(copied, torch.Tensor) or copied.dtype != result.dtype:
        return 0
    size = private.upper_bound(copied.untyped_storage().nbytes()) or 0
    return max(size, _copied_base_bytes(source, copied))


def _bytes_without_tensor_arguments(node: fx.Node, result: torch.Tensor) -> int:
    """Returns the bytes that an operation without tensor arguments allocates; 0 for others."""
    if node.all_input_nodes or not isinstance(node.target, OpOverload):
        return 0
    if (
        node.target.namespace != "aten"
        or operators.is_random(node)
        or node.target._schema.is_mutable
    ):
        return 0
    if (private.upper_bound(result.numel()) or _MOST_RUN_BYTES) * result.element_size() >= _MOST_RUN_BYTES:
        return 0
    try:
        with private.real_tensors(), torch.no_grad():
            made = node.target(*node.args, **{**node.kwargs, "device": torch.device("cpu")})
            return int(made.untyped_storage().nbytes())
    except (AssertionError, AttributeError, RuntimeError, TypeError, ValueError):
        return 0  # It has no device argument, or does not run on this device.


def unreduced_bytes(node: fx.Node) -> int:
    """Returns the bytes that hold the result of a reducing loss; 0 for all other operations.

    Among 6,000 calls of PyTorch's operators, from PyTorch's own tests, only four losses had a
    storage of another size than their fake tensors. All four take ``reduction``.
    """
    result = node.meta.get("val")
    if not isinstance(result, torch.Tensor) or not operators.argument(node, "reduction"):
        return 0
    assert isinstance(node.target, OpOverload)
    if not _keeps_unreduced(node.target, result.device):
        return 0
    sources = [source.meta.get("val") for source in node.all_input_nodes]
    shapes = [source.shape for source in sources if isinstance(source, torch.Tensor)]
    shape: tuple[int, ...] = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    return math.prod(private.upper_bound(size) or 0 for size in shape) * result.element_size()


@functools.cache
def _keeps_unreduced(loss: OpOverload, device: torch.device) -> bool:
    if loss.namespace != "aten":
        return False
    operands = [a.name for a in loss._schema.arguments if not a.has_default_value()]
    # If the machine lacks the graph's device, the CPU's kernels are used instead.
    for place in (device, torch.device("cpu")):
        try:
            with private.real_tensors(), torch.no_grad():
                result: torch.Tensor = loss(
                    **{name: torch.zeros(2, device=place) for name in operands}
                )
                left = result.untyped_storage().nbytes()
                return result.numel() == 1 and left > result.element_size()
        except (AssertionError, AttributeError, RuntimeError, TypeError, ValueError):
            continue  # Not one of those losses, or the device is missing.
    return False
