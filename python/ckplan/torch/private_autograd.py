"""Private names of PyTorch's autograd and AOT autograd, and the versions that have them.

The version in each docstring is the first one with that name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import fx
from torch.fx.graph import CodeGen
from torch.utils._python_dispatch import TorchDispatchMode

from ckplan.torch import garbage_collection


def aot_autograd(**compilers: Any) -> Callable[..., Any]:
    """``torch._dynamo.backends.common.aot_autograd``, since 2.0, with its ``partition_fn``.

    It traces resizing as one operator.
    """
    from torch._dynamo.backends.common import aot_autograd as make

    compiler = make(**compilers)

    def compiled(module: fx.GraphModule, inputs: list[Any]) -> Any:
        with _whole_resizing(module):
            return compiler(module, inputs)

    return compiled


@contextlib.contextmanager
def _whole_resizing(module: fx.GraphModule) -> Iterator[None]:
    """Traces resizing as eager mode runs it.

    PyTorch has Python kernels for autograd that take it apart, into gathers and sums whose saved
    tensors need more memory than the operator, which saves nothing. They belong to the whole
    process, so it is the calls in this graph that go around them.
    """
    parts = [part for part in module.modules() if isinstance(part, fx.GraphModule)]
    nodes = [(part, node) for part in parts for node in part.graph.nodes if _resizes(node)]
    targets = [node.target for _, node in nodes]
    changed = {id(part): part for part, _ in nodes}.values()
    try:
        for _, node in nodes:
            node.target = _whole(node.target)
        for part in changed:
            part.recompile()
        yield
    finally:
        for (_, node), target in zip(nodes, targets):
            node.target = target
        for part in changed:
            part.recompile()


def _resizes(node: fx.Node) -> bool:
    name = getattr(node.target, "__name__", "").lstrip("_")
    return node.op == "call_function" and (name == "interpolate" or name.startswith("upsample"))


def _whole(call: Any) -> Callable[..., Any]:
    """``torch._dispatch.python.no_python_dispatcher``, since 2.0: for this thread."""
    from torch._dispatch.python import no_python_dispatcher

    def resized(*arguments: Any, **named: Any) -> Any:
        with no_python_dispatcher(), _BelowAutograd():
            return call(*arguments, **named)

    return resized


class _BelowAutograd(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """``torch._dispatch.python.enable_python_dispatcher``, since 2.0: once autograd is passed.

    Fake tensors of open sizes need Python kernels.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        from torch._dispatch.python import enable_python_dispatcher

        with enable_python_dispatcher():
            return func(*args, **(kwargs or {}))


def default_partition(joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
    """``torch._functorch.partitioners.default_partition``, since 2.0: saves as eager mode does."""
    from torch._functorch.partitioners import default_partition as partition

    return partition(joint, inputs, **options)


class _BoxedCode(CodeGen):
    """``torch.fx.graph.CodeGen.gen_fn_def``, since 1.12: code that takes a list and empties it."""

    def __init__(self, inputs: list[str]):
        super().__init__()
        self._inputs = inputs

    def gen_fn_def(self, free_vars: Any, maybe_return_annotation: str, **_: Any) -> str:
        head = f"def forward(self, arguments){maybe_return_annotation}:"
        if not self._inputs:
            return head
        return f"{head}\n    {', '.join(self._inputs)}, = arguments\n    arguments.clear()"


@garbage_collection.paused
def box(module: fx.GraphModule) -> Callable[[list[Any]], Any]:
    """Returns the module as a function that takes a list of inputs and empties it.

    This lets the module free its inputs before it ends.
    """
    inputs = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    module.graph.set_codegen(_BoxedCode(inputs))
    module.recompile()
    return mark_boxed(module.forward)


def frees_gradients() -> bool:
    """Returns whether the backward module can free the gradients that the caller passes in.

    Uses ``torch.autograd.Function.boxed_grads_call``, since about 2.11; before, the engine holds
    them.
    """
    return hasattr(torch.autograd.Function, "boxed_grads_call")


def keep_saved_tensors() -> None:
    """Allows a second backward pass through the graph that AOT autograd compiles now.

    Otherwise PyTorch raises an error if a graph is retained for the first time in a later step,
    because Inductor may have reused the memory of saved tensors. ``bw_donated_idxs`` of
    ``torch._guards.TracingContext.fw_metadata``, since 2.6.
    """
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is not None:
        metadata.bw_donated_idxs = []


def leave_saved_sizes_open() -> None:
    """Allows calls of the graph that AOT autograd compiles now to save other tensors than expected.

    Otherwise each call marks the sizes of the expected ones, for compiled autograd.
    ``dynamic_saved_tensors_idxs`` of ``torch._guards.TracingContext.fw_metadata``, since 2.9.
    """
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is not None:
        metadata.dynamic_saved_tensors_idxs = {}


def mark_boxed(call: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Marks ``call`` for AOT autograd as emptying its list (``_boxed_call``, since 2.0)."""

    def boxed(arguments: list[Any]) -> Any:
        return call(arguments)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def saved_output_descriptor(index: int) -> Any:
    """``descriptors.SavedForBackwardsAOTOutput``, since 2.9; None before."""
    try:
        from torch._functorch._aot_autograd.descriptors import SavedForBackwardsAOTOutput
    except ImportError:
        return None
    return SavedForBackwardsAOTOutput(index)


def has_backward_hooks(module: torch.nn.Module) -> bool:
    """``Module._backward_hooks``, since 0.1, and ``_backward_pre_hooks``, since 2.0."""
    return bool(module._backward_hooks or module._backward_pre_hooks)


def compiled_nodes(outputs: Iterable[Any], depth: int = 2) -> list[Any]:
    """Returns AOT autograd's nodes among the ancestors of some tensors in autograd's graph.

    Their class is called ``CompiledFunctionBackward``, since 2.0.
    """
    found: dict[int, Any] = {}
    layer: list[Any] = [output.grad_fn for output in outputs if isinstance(output, torch.Tensor)]
    for _ in range(depth):
        layer = [node for node in layer if node is not None]
        found.update((id(n), n) for n in layer if n.name() == "CompiledFunctionBackward")
        layer = [source for node in layer for source, _ in node.next_functions]
    return list(found.values())


def mark(node: Any, call: Any) -> None:
    """Attaches an object to an autograd node implemented in Python, unless it has one."""
    if getattr(node, "ckplan_call", None) is None:
        node.ckplan_call = call


def mark_of_running_node() -> Any:
    """Returns what ``mark`` attached to the node whose backward pass runs; None if unknown.

    ``torch._C._current_autograd_node``, since 2.1.
    """
    running = getattr(torch._C, "_current_autograd_node", lambda: None)()
    return getattr(running, "ckplan_call", None)


def retains_graph() -> bool:
    """Returns whether the running backward pass has ``retain_graph=True``.

    ``torch._C._autograd._get_current_graph_task_keep_graph``, since 2.4.
    """
    ask = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return ask is not None and bool(ask())


def has_saved_tensor_hooks() -> bool:
    """Returns whether ``torch.autograd.graph.saved_tensors_hooks`` are active.

    ``torch._C._autograd._top_saved_tensors_default_hooks``, since 2.6.
    """
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is not None and top(True) is not None


def uses_compiled_autograd() -> bool:
    """Returns whether backward is compiled: ``torch._dynamo.compiled_autograd``, since 2.1."""
    from torch._dynamo import compiled_autograd, config

    is_on = getattr(compiled_autograd, "compiled_autograd_enabled", False)
    return bool(is_on or getattr(config, "compiled_autograd", False))
