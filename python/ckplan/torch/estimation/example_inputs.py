"""The example inputs of an estimate: their sizes, and fake tensors in their place."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ckplan.torch import private


def sizes_of(example_inputs: Any) -> dict[str, int]:
    """Returns the sizes of the inputs, by name.

    For a function these are its parameters, whose defaults are whole numbers. For tensors it is
    ``batch``, the first dimension, if it is the same in all of them.
    """
    if callable(example_inputs):
        found = inspect.signature(example_inputs).parameters
        missing = [name for name, row in found.items() if type(row.default) is not int]
        if missing:
            raise TypeError(
                f"parameters of the function example_inputs need whole numbers as defaults: write "
                f"{missing[0]}=1"
            )
        return {name: row.default for name, row in found.items()}
    leaves = private.flatten(example_inputs)[0]
    first = {leaf.shape[0] for leaf in leaves if isinstance(leaf, Tensor) and leaf.ndim}
    return {"batch": first.pop()} if len(first) == 1 else {}


def inputs_at(example_inputs: Any, sizes: Mapping[str, int]) -> Any:
    """Returns the inputs for other sizes; for a function, a function that makes them."""
    if callable(example_inputs):
        return lambda: example_inputs(**sizes)
    if not sizes:
        return example_inputs

    def resized(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or not leaf.ndim:
            return leaf
        return torch.empty((sizes["batch"], *leaf.shape[1:]), dtype=leaf.dtype, device="meta")

    leaves, back = private.flatten(example_inputs)
    return back([resized(leaf) for leaf in leaves])


def fake_inputs(example_inputs: Any, dtype: torch.dtype) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns positional and named arguments with fake tensors.

    Tensors of type float32 get ``dtype``, the type of the parameters.
    """
    given = example_inputs() if callable(example_inputs) else example_inputs
    leaves, back = private.flatten(given)
    given = back([_like(leaf, dtype) if isinstance(leaf, Tensor) else leaf for leaf in leaves])
    if isinstance(given, Mapping):
        return (), dict(given)
    if isinstance(given, Tensor):
        return (given,), {}
    if not isinstance(given, (tuple, list)):
        raise TypeError(
            "example_inputs must be a tensor, a tuple of positional arguments, a dictionary of named "
            f"ones, or a function that returns any of these, not {type(given).__name__}"
        )
    return tuple(given), {}


def _like(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    kind = dtype if tensor.dtype == torch.float32 else tensor.dtype
    return torch.empty_strided(tuple(tensor.shape), tuple(tensor.stride()), dtype=kind)
