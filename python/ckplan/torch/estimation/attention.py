"""Traces attention on fake CPU tensors as the fused kernels that a GPU would run.

PyTorch has no fused CPU kernel for attention with dropout or a trained mask, so it computes the
whole matrix of probabilities. PyTorch 2.8 has none for grouped heads either. On a GPU, flash
attention handles 16 bits without a mask, with or without grouped heads, and memory-efficient
attention handles the rest without grouped heads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, fx
from torch.nn.functional import pad, scaled_dot_product_attention

from ckplan.torch import private
from ckplan.torch.estimation.private import fake_results

_GROUPED_SINCE = (2, 9)
"""Fused attention on a CPU supports grouped heads since this version."""
_ALIGNMENT = 16
"""Rows of a mask are padded to a multiple of this (preprocess_mask in attention.cpp)."""


@contextlib.contextmanager
def shapes() -> Iterator[None]:
    """Gives the gradients of keys and values the shapes of keys and values.

    In PyTorch 2.8 they have as many heads as the queries.
    """
    if private.version() >= _GROUPED_SINCE:
        yield
        return
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    with fake_results(backward, _gradients):
        yield


def fuse(module: fx.GraphModule) -> None:
    """Makes a graph and its subgraphs call attention as a GPU's kernels would run it."""
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            _fuse(part)


def _fuse(module: fx.GraphModule) -> None:
    calls = [node for node in module.graph.nodes if node.target is scaled_dot_product_attention]
    for node in calls:
        node.target = _attention
    if calls:
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
    """Calls an operator that needs the same memory as the kernel that a GPU would run."""
    tensors = tuple(_in_autocast_type(tensor) for tensor in (query, key, value))
    has_gpu_alone = dropout_p > 0.0 or (attn_mask is not None and attn_mask.requires_grad)
    is_flash = attn_mask is None and all(tensor.itemsize == 2 for tensor in tensors)
    if query.dim() == 4 and has_gpu_alone and (is_flash or not enable_gqa):
        return _memory_efficient(tensors, attn_mask, dropout_p, is_causal, scale)
    if query.dim() == 4 and enable_gqa and is_flash and private.version() < _GROUPED_SINCE:
        fused: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        result: Tensor = fused(*tensors, 0.0, is_causal, scale=scale)[0]
        return result
    return scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _memory_efficient(
    tensors: tuple[Tensor, ...],
    mask: Tensor | None,
    dropout: float,
    is_causal: bool,
    scale: float | None,
) -> Tensor:
    """Calls a GPU operator whose fake kernel accepts CPU tensors.

    Flash attention saves the same: queries, keys, values, the result, and a number for each row.
    """
    query, key, _ = tensors
    bias = None if mask is None else _bias(mask, query, key)
    fused: Any = torch.ops.aten._scaled_dot_product_efficient_attention
    result: Tensor = fused(*tensors, bias, True, dropout, is_causal, scale=scale)[0]
    return result


def _bias(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Returns the mask as PyTorch passes it on: as numbers, in aligned rows, for all heads."""
    if mask.dtype == torch.bool:
        numbers = torch.zeros_like(mask, dtype=query.dtype)
        mask = numbers.masked_fill(mask.logical_not(), float("-inf"))
    rows = mask.shape[-1]
    if rows % _ALIGNMENT:
        mask = pad(mask, (0, _ALIGNMENT - rows % _ALIGNMENT))[..., :rows]
    return mask.expand(*query.shape[:-1], key.shape[-2])


def _in_autocast_type(tensor: Tensor) -> Tensor:
    """Returns the tensor in the type that autocast computes with."""
    is_on = torch.is_autocast_enabled("cpu")
    return tensor.to(torch.get_autocast_dtype("cpu")) if is_on else tensor


def _gradients(mode: Any, _: Any, gradient: Tensor, *tensors: Any, **__: Any) -> Any:
    """Returns the fake results of the backward pass of fused attention."""
    order = (0, 2, 1, 3)
    with mode:
        return tuple(
            torch.empty_permuted(tensor.shape, order, dtype=tensor.dtype, device=tensor.device)
            for tensor in tensors[:3]
        )
