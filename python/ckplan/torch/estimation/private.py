"""Private names of PyTorch that only estimates use, and the versions that have them.

Others are in ``ckplan.torch.private``.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor, fx


def uses_regions_again() -> bool:
    """Returns whether TorchDynamo reuses the graph of a region for other layers.

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
    """Converts the caller's fake tensors to the fake mode that TorchDynamo traces in.

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
    """Within this context, ``make`` computes the fake results of an operator.

    ``torch._subclasses.fake_impls``, since 2.3.
    """
    from torch._subclasses import fake_impls

    fake_impls.register_op_impl(operator)(make)
    try:
        yield
    finally:
        fake_impls.op_implementations_dict.pop(operator)


class _Driver:
    """What Triton needs to know about a GPU to find the arguments that a kernel writes to."""

    def __init__(self, target: Any):
        self._target = target

    def get_current_target(self) -> Any:
        return self._target


@contextlib.contextmanager
def kernels_of_triton() -> Iterator[None]:
    """Lets TorchDynamo trace Triton kernels as operators on machines without a GPU.

    TorchDynamo checks ``torch.utils._triton.has_triton``, since 2.1. It finds the arguments that a
    kernel writes to in the kernel's GPU code (``torch._higher_order_ops.triton_kernel_wrap``, since
    2.2). Triton generates that for the target of its ``runtime.driver``; without a target, all
    arguments count as written.
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


@contextlib.contextmanager
def values_left_out() -> Iterator[None]:
    """Skips the initialization that draws values until they fit, which fake tensors cannot do.

    ``torch.nn.init._no_grad_trunc_normal_``, since 1.6: ``trunc_normal_`` reads what it has drawn
    since 2.13.
    """
    init: Any = torch.nn.init
    before = init._no_grad_trunc_normal_
    init._no_grad_trunc_normal_ = lambda tensor, *_, **__: tensor
    try:
        yield
    finally:
        init._no_grad_trunc_normal_ = before


@contextlib.contextmanager
def fake_conversions() -> Iterator[list[torch.dtype]]:
    """Allows conversions of modules of fake tensors, such as ``model.half()``; yields their types.

    ``torch.utils.swap_tensors``, since 2.3, which ``Module._apply`` calls for fake tensors since
    2.5, refuses them, as their mode refers to them. Here the parameter gets the new memory instead.
    Libraries that make models without memory, such as ``accelerate``, call a parameter's class,
    here ``torch._subclasses.FakeTensor``, since 2.0, with another tensor: it makes a parameter of
    that.
    """
    from torch._subclasses.fake_tensor import FakeTensor

    utils: Any = torch.utils
    swap, kind = utils.swap_tensors, cast(Any, FakeTensor)
    make = kind.__new__
    found: list[torch.dtype] = []

    def made(cls: type[Any], *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], FakeTensor):
            return torch.nn.Parameter(args[0].detach(), bool(kwargs.get("requires_grad", True)))
        return make(cls, *args, **kwargs)

    def replaced(old: torch.Tensor, new: torch.Tensor) -> None:
        if old.dtype != new.dtype:
            found.append(new.dtype)
        if is_fake(old) and is_fake(new):
            old.data = new.detach()
        else:
            swap(old, new)

    utils.swap_tensors, kind.__new__ = replaced, made
    try:
        yield found
    finally:
        utils.swap_tensors, kind.__new__ = swap, staticmethod(make)


def device_constructors() -> set[Any]:
    """Returns the functions that make tensors on the default device.

    ``torch.utils._device._device_constructors``, since 2.0.
    """
    from torch.utils._device import _device_constructors

    constructors: Any = _device_constructors  # Its annotations differ between versions.
    found: set[Any] = constructors()
    return found


def reads_values(error: BaseException) -> str:
    """Returns the operator that failed because fake tensors have no values; "" for other errors.

    ``torch._subclasses.fake_tensor.DataDependentOutputException``, since 2.0, has it as ``func``.
    """
    from torch._subclasses.fake_tensor import DataDependentOutputException

    if not isinstance(error, DataDependentOutputException):
        return ""
    return str(error.func).removeprefix("aten.").partition(".")[0]


def sizes_by_values(error: BaseException) -> str:
    """Returns the operator that failed because its result size depends on values; "" for others.

    ``torch._subclasses.fake_tensor.DynamicOutputShapeException``, since 2.0, has it as ``func``.
    """
    from torch._subclasses.fake_tensor import DynamicOutputShapeException

    if not isinstance(error, DynamicOutputShapeException):
        return ""
    return str(error.func).removeprefix("aten.").partition(".")[0].strip("_").rstrip("2")


def asks_for_gpu(error: BaseException) -> bool:
    """Returns whether an error means that there is no GPU: ``torch.cuda`` raised it."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    module = "" if at is None else str(at.tb_frame.f_globals.get("__name__", ""))
    is_of_cuda = module == "torch.cuda" or module.startswith("torch.cuda.")
    return is_of_cuda and isinstance(error, (RuntimeError, AssertionError))


def is_in_fake_mode() -> bool:
    """Returns whether new tensors are fake now (``torch._C``, since 2.0).

    A mode is inactive within its own operations, where PyTorch makes the tensors that it needs.
    """
    return torch._C._len_torch_dispatch_stack() > 0


def is_fake(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor has no memory (``torch._subclasses.FakeTensor``, since 2.0)."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(tensor.data if isinstance(tensor, torch.nn.Parameter) else tensor, FakeTensor)
