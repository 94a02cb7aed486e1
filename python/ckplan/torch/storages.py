"""Finds results that lie in more memory than their fake tensors say.

``mse_loss`` writes the loss of every element, and then their mean to the front of the same storage,
which keeps its size. The loss is one number, but holds as many bytes as the prediction. Its fake
tensor has a storage of 4 bytes. Which of PyTorch's losses do this depends on PyTorch's version and
on the device, so each loss is run once on two elements to find out.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import fx
from torch._ops import OpOverload

from ckplan.torch import operators, private


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
    return math.prod(private.most(size) or 0 for size in shape) * result.element_size()


@functools.cache
def _keeps_unreduced(loss: OpOverload, device: torch.device) -> bool:
    if loss.namespace != "aten":
        return False
    operands = [a.name for a in loss._schema.arguments if not a.has_default_value()]
    # A graph may be for a device that this machine lacks; the CPU's kernels stand in for it then.
    for place in (device, torch.device("cpu")):
        try:
            with private.real_tensors(), torch.no_grad():
                result: torch.Tensor = loss(**{name: torch.zeros(2, device=place) for name in operands})
                left = result.untyped_storage().nbytes()
                return result.numel() == 1 and left > result.element_size()
        except (AssertionError, AttributeError, RuntimeError, TypeError, ValueError):
            continue  # Not one of those losses, or the device is missing.
    return False
