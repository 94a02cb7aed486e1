"""The names of PyTorch that only estimates use, and that PyTorch does not promise to keep.

All others are in ``ckplan.torch.private``.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, fx


def uses_regions_again() -> bool:
    """Returns whether TorchDynamo uses the graph of a region again for other layers.

    ``torch._dynamo.variables.invoke_subgraph``, since about 2.13; before, each call was traced.
    """
    return importlib.util.find_spec("torch._dynamo.variables.invoke_subgraph") is not None


def region(function: Callable[..., Any], most: int) -> Callable[..., Any]:
    """``torch.compiler.nested_compile_region``, since 2.8, for ``most`` kinds of calls."""
    marked: Callable[..., Any] = torch.compiler.nested_compile_region(
        function, max_reuse_entries=most
    )
    return marked


def is_region(node: fx.Node) -> bool:
    """Returns whether a node calls another graph (``torch.ops.higher_order.invoke_subgraph``)."""
    return node.op == "call_function" and getattr(node.target, "_name", "") == "invoke_subgraph"


def in_compilers_mode(inputs: list[Any]) -> list[Any]:
    """Returns fake tensors of the caller as those of the mode that TorchDynamo traces in.

    AOT autograd does that by itself since about 2.10. ``torch._guards.TracingContext``, since 2.0.
    """
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    mode: Any = None if context is None else context.fake_mode
    if mode is None:
        return inputs
    return [mode.from_tensor(value) if isinstance(value, Tensor) else value for value in inputs]


@contextlib.contextmanager
def fake_results(operator: Any, make: Callable[..., Any]) -> Iterator[None]:
    """Has ``make`` say what an operator makes of fake tensors.

    ``torch._subclasses.fake_impls``, since 2.3.
    """
    from torch._subclasses import fake_impls

    fake_impls.register_op_impl(operator)(make)
    try:
        yield
    finally:
        fake_impls.op_implementations_dict.pop(operator)


class _Driver:
    """What Triton needs to know of a GPU before it can say what a kernel writes to."""

    def __init__(self, target: Any):
        self._target = target

    def get_current_target(self) -> Any:
        return self._target


@contextlib.contextmanager
def kernels_of_triton() -> Iterator[None]:
    """Has kernels of Triton traced as operators where there is no GPU to run them.

    TorchDynamo asks ``torch.utils._triton.has_triton``, since 2.1. What a kernel writes to is found
    in its code for a GPU (``torch._higher_order_ops.triton_kernel_wrap``, since 2.2), which Triton
    makes for the target of its ``runtime.driver``; without a target all arguments count as written.
    """
    from torch.utils import _triton

    if not _triton.has_triton_package() or _triton.has_triton():
        yield
        return
    # Triton has no annotations.
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", 80, 32)
    driver = importlib.import_module("triton.runtime").driver
    has_triton, drivers = _triton.has_triton, dict(vars(driver))
    replaced: Any = _triton
    replaced.has_triton = lambda *_, **__: True
    driver.set_active(_Driver(target))
    try:
        yield
    finally:
        replaced.has_triton = has_triton
        vars(driver).update(drivers)
