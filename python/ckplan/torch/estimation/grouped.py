"""Keeps attention of grouped heads fused on fake tensors of a CPU, as it is on a GPU.

A CPU's fused attention takes grouped heads since PyTorch 2.9. PyTorch 2.8 makes the whole matrix of
scores instead, which it does not do on a GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, fx
from torch.nn.functional import scaled_dot_product_attention

from ckplan.torch import private
from ckplan.torch.estimation.private import fake_results

_BY_ITSELF_SINCE = (2, 9)
"""Fused attention of a CPU takes grouped heads since this version."""


@contextlib.contextmanager
def shapes() -> Iterator[None]:
    """Has the gradients of keys and values in the shapes of these.

    PyTorch 2.8 gives them as many heads as the queries have.
    """
    if private.version() >= _BY_ITSELF_SINCE:
        yield
        return
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    with fake_results(backward, _gradients):
        yield


def fuse(module: fx.GraphModule) -> None:
    """Has a graph and those within it call fused attention where heads are grouped."""
    if private.version() >= _BY_ITSELF_SINCE:
        return
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            _fuse(part)


def _fuse(module: fx.GraphModule) -> None:
    for node in module.graph.nodes:
        if node.target is scaled_dot_product_attention and node.kwargs.get("enable_gqa"):
            node.target = _attention
    module.recompile()


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Calls fused attention, if a GPU's takes this call: in 16 bits, without mask and dropout."""
    tensors = tuple(_as_computed(tensor) for tensor in (query, key, value))
    is_plain = attn_mask is None and dropout_p == 0.0 and query.dim() == 4
    if not is_plain or any(tensor.itemsize != 2 for tensor in tensors):
        return scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    fused: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    result: Tensor = fused(*tensors, 0.0, is_causal, scale=scale)[0]
    return result


def _as_computed(tensor: Tensor) -> Tensor:
    """Returns a tensor in the type that autocast has it computed in."""
    is_on = torch.is_autocast_enabled("cpu")
    return tensor.to(torch.get_autocast_dtype("cpu")) if is_on else tensor


def _gradients(mode: Any, _: Any, gradient: Tensor, *tensors: Any, **__: Any) -> Any:
    """Returns what the backward pass of fused attention makes of fake tensors."""
    order = (0, 2, 1, 3)
    with mode:
        return tuple(
            torch.empty_permuted(tensor.shape, order, dtype=tensor.dtype, device=tensor.device)
            for tensor in tensors[:3]
        )
