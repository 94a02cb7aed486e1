"""Every name of PyTorch used here that PyTorch does not promise to keep, and since when it exists.

Those of Inductor are in ``inductor.private``. Everything else that ``ckplan.torch`` uses is public. Both the oldest and the newest version below
are tested.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import fx
from torch.fx.graph import CodeGen
from torch.utils._python_dispatch import TorchDispatchMode

from ckplan.torch import collector
from ckplan.torch.errors import OffloadError, UnsupportedGraphError

OLDEST = (2, 8)
"""The oldest version of PyTorch that is tested."""

INDUCTOR_SINCE = (2, 9)
"""Inductor's ``config.custom_partitioner_fn`` exists since this version."""


def version() -> tuple[int, int]:
    """Returns the major and minor version of PyTorch."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def aot_autograd(**compilers: Any) -> Callable[..., Any]:
    """``torch._dynamo.backends.common.aot_autograd``, since 2.0, with its ``partition_fn``."""
    from torch._dynamo.backends.common import aot_autograd as make

    return make(**compilers)


def default_partition(joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
    """``torch._functorch.partitioners.default_partition``, since 2.0: keeps as eager mode does."""
    from torch._functorch.partitioners import default_partition as partition

    return partition(joint, inputs, **options)


class _BoxedCode(CodeGen):
    """``torch.fx.graph.CodeGen.gen_fn_def``, since 1.12: code that takes a list, and empties it."""

    def __init__(self, inputs: list[str]):
        super().__init__()
        self._inputs = inputs

    def gen_fn_def(self, free_vars: Any, maybe_return_annotation: str, **_: Any) -> str:
        head = f"def forward(self, arguments){maybe_return_annotation}:"
        if not self._inputs:
            return head
        return f"{head}\n    {', '.join(self._inputs)}, = arguments\n    arguments.clear()"


@collector.paused
def box(module: fx.GraphModule) -> Callable[[list[Any]], Any]:
    """Returns the module as a function that takes a list of its inputs, and empties the list.

    Only then can the module free its inputs before it ends.
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
    """Lets any backward pass of the graph that AOT autograd compiles now be followed by another.

    Otherwise PyTorch raises an error where a graph is retained that was not before, because
    Inductor may have reused the memory of saved tensors. ``bw_donated_idxs`` of
    ``torch._guards.TracingContext.fw_metadata``, since 2.6.
    """
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is not None:
        metadata.bw_donated_idxs = []


def leave_saved_sizes_open() -> None:
    """Lets calls of the graph that AOT autograd compiles now save other tensors than it expects.

    Otherwise each call marks the sizes of those it expects, for compiled autograd.
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


def storage_key(tensor: torch.Tensor) -> int:
    """Returns a number that identifies the tensor's memory while it lives (``_cdata``, 1.x).

    Raises UnsupportedGraphError for a tensor without one storage, such as a sparse one.
    """
    try:
        key: int = tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError) as error:
        raise UnsupportedGraphError(f"a tensor without a storage: {error}") from error
    return key


def storage_watch(tensor: torch.Tensor) -> Callable[[], bool]:
    """Returns a function that says whether the tensor's memory is still in use.

    ``torch.multiprocessing.reductions.StorageWeakRef``, since 1.x.
    """
    from torch.multiprocessing.reductions import StorageWeakRef

    reference: Any = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
    return lambda: not reference.expired()


def data_symbol(size: torch.SymInt) -> str | None:
    """Returns the name of the symbol that a size is, if it depends on data: ``u0``.

    ``torch.fx.experimental.symbolic_shapes``, since 2.0: sizes have expressions of sympy.
    """
    expression = size.node.expr
    is_one = getattr(expression, "is_Symbol", False)
    return str(expression) if is_one and str(expression).startswith("u") else None


def set_bound(size: torch.SymInt, bound: int) -> None:
    """Sets the most that a symbol can be (``ShapeEnv.constrain_symbol_range``, since 2.1)."""
    ranges: Any = size.node.shape_env
    ranges.constrain_symbol_range(size.node.expr, 0, bound)


def most(size: int | torch.SymInt) -> int | None:
    """Returns the most that a size can be; None if that is not known.

    Uses ``ShapeEnv.bound_sympy``, since 2.2, which computes with ranges.
    """
    if isinstance(size, int):
        return size
    ranges: Any = size.node.shape_env
    upper = ranges.bound_sympy(size.node.expr).upper
    return int(upper) if upper.is_Integer else None


def sizes_of_data() -> AbstractContextManager[Any]:
    """Within this context TorchDynamo traces operations whose results' sizes depend on data.

    ``torch._dynamo.config.capture_dynamic_output_shape_ops`` and ``capture_scalar_outputs``, since
    2.0.
    """
    from torch._dynamo import config

    patched: AbstractContextManager[Any] = config.patch(
        capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True
    )
    return patched


def opaque_operator(target: Any) -> str | None:
    """Returns the name of an operator of PyTorch that calls a function which writes to arguments.

    ``torch._higher_order_ops.auto_functionalize``, since 2.1, and ``triton_kernel_wrap``, since
    2.2. They write to copies of the arguments, and return these.
    """
    name = getattr(target, "_name", "")
    known = ("auto_functionalized", "auto_functionalized_v2", "triton_kernel_wrapper_functional")
    return name if name in known and not isinstance(target, torch._ops.OpOverload) else None


def let_pass_opaque(mode: type[Any]) -> type[Any]:
    """Makes such operators pass a dispatch mode, a class that this decorates, as others do.

    2.15 has ``TorchDispatchMode.supports_higher_order_operators`` for that, and 2.8 has not: there
    each operator has a table of functions for modes (``HigherOrderOperator.py_impl``).
    """
    mode.supports_higher_order_operators = True
    if hasattr(TorchDispatchMode, "supports_higher_order_operators"):
        return mode
    for operator in _opaque_operators():

        def dispatched(found: Any, *args: Any, operator: Any = operator, **kwargs: Any) -> Any:
            return found.__torch_dispatch__(operator, (), args, kwargs)

        operator.py_impl(mode)(dispatched)
    return mode


def _opaque_operators() -> list[Any]:
    from torch._higher_order_ops import auto_functionalize, triton_kernel_wrap

    return [
        auto_functionalize.auto_functionalized,
        auto_functionalize.auto_functionalized_v2,
        triton_kernel_wrap.triton_kernel_wrapper_functional,
    ]


def kernel_name(index: int) -> str:
    """Returns the name of a Triton kernel (``triton_kernel_wrap.kernel_side_table``, since 2.2)."""
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    kernel: Any = kernel_side_table.get_kernel(index)
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return str(getattr(kernel, "__name__", ""))


def saved_output_descriptor(index: int) -> Any:
    """``descriptors.SavedForBackwardsAOTOutput``, since 2.9; None before."""
    try:
        from torch._functorch._aot_autograd.descriptors import SavedForBackwardsAOTOutput
    except ImportError:
        return None
    return SavedForBackwardsAOTOutput(index)


def compiler_failure() -> type[Exception]:
    """``torch._dynamo.exc.BackendCompilerFailed``, since 2.0: wraps what a backend raises."""
    from torch._dynamo.exc import BackendCompilerFailed

    return BackendCompilerFailed


def failure_of(backend: Any, error: Exception) -> Exception:
    """Returns the error that PyTorch makes of a backend's own, with the backend's message first.

    Returns those unchanged by which PyTorch tells TorchDynamo to trace again or to end a graph:
    ``TorchDynamoException`` and ``exceptions_allowed_to_be_fallback`` of ``torch._dynamo.exc``,
    since 2.0. 2.15 passes on a ``BackendCompilerFailed`` that a backend raises, and 2.8 wraps it
    once more.
    """
    from torch._dynamo import exc

    if isinstance(error, (exc.TorchDynamoException, *exc.exceptions_allowed_to_be_fallback)):
        return error
    failure: Any = compiler_failure()(backend, error, None)
    failure.args = (f"{error}\n{type(error).__name__} of backend={failure.backend_name!r}",)
    return failure  # type: ignore[no-any-return]


def watch_calls(context: Callable[[], AbstractContextManager[Any]]) -> None:
    """Has PyTorch enter a context around each call of a model that a backend compiles.

    A backend calls this where ``torch.compile`` asks for its ``__name__``. The caller is the
    wrapper (``torch._TorchCompileWrapper``, since 2.0) of which TorchDynamo takes the attribute
    ``backend_ctx_ctor``. Anything else that asks for the name gets no contexts.
    """
    caller = sys._getframe(2)
    wrapper = caller.f_locals.get("self")
    if type(wrapper).__name__ == "_TorchCompileWrapper" and caller.f_code.co_name == "__init__":
        wrapper.backend_ctx_ctor = context  # type: ignore[union-attr]


def graph_breaks() -> Counter[str]:
    """Returns why TorchDynamo has ended graphs so far, and how often.

    ``torch._dynamo.utils.counters``, since 2.0.
    """
    from torch._dynamo.utils import counters

    return Counter(counters["graph_break"]) + Counter(counters["unimplemented"])


def first_module_argument() -> str | None:
    """Returns the name of the first argument of the function that is compiled now.

    Returns None unless that is a module and the function is a method of it. Uses
    ``InstructionTranslator.current_tx``, since 2.1.
    """
    from torch._dynamo.symbolic_convert import InstructionTranslator

    try:
        frame = InstructionTranslator.current_tx().output.root_tx
        name = frame.f_code.co_varnames[0]
        module, method = frame.f_locals[name], frame.f_code.co_name
    except (AttributeError, IndexError, KeyError):
        return None
    is_method = isinstance(module, torch.nn.Module) and hasattr(type(module), method)
    return name if is_method else None


def real_tensors() -> AbstractContextManager[Any]:
    """``torch.utils._python_dispatch._disable_current_modes``, since 2.0.

    A partitioner is called where every operation makes fake tensors. Within this context operations
    make real ones.
    """
    from torch.utils._python_dispatch import _disable_current_modes

    modes: AbstractContextManager[Any] = _disable_current_modes()
    return modes


def recompile_limit() -> int:
    """``torch._dynamo.config.recompile_limit``, since 2.6: the most graphs for each part."""
    from torch._dynamo import config

    limit: int = config.recompile_limit
    return limit


def offload_operators() -> Any:
    """``torch.ops.ao``: copies to the host and back, for graphs that are compiled.

    Importing ``torch._functorch._activation_offloading.offload_ops`` registers them. 2.15 has it, and
    2.8 does not. Raises OffloadError.
    """
    try:
        import torch._functorch._activation_offloading.offload_ops  # noqa: F401
    except ImportError:
        raise OffloadError(
            f"PyTorch {torch.__version__} has no operators for offload in compiled graphs; update "
            'it, or use compiler="eager"'
        ) from None
    return torch.ops.ao


def ends_in_graph_break(module: fx.GraphModule) -> bool:
    """Returns whether another graph follows (``compile_subgraph_reason``, since 2.0)."""
    reason = getattr(module, "compile_subgraph_reason", None)
    return bool(getattr(reason, "graph_break", False))


def why_it_ends(module: fx.GraphModule) -> str:
    """Returns why a graph ends where it does (``compile_subgraph_reason``, since 2.0)."""
    return str(getattr(getattr(module, "compile_subgraph_reason", None), "reason", ""))


def is_any_fake(arguments: Iterable[Any]) -> bool:
    """Returns whether one is a tensor without memory, for tracing (``FakeTensor``, since 2.0)."""
    from torch._subclasses.fake_tensor import FakeTensor

    return any(isinstance(argument, FakeTensor) for argument in arguments)


def fake_mode() -> AbstractContextManager[Any]:
    """``torch._subclasses.fake_tensor.FakeTensorMode``, since 2.0: tensors without memory.

    Within this context all tensors that are made are of this kind.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode: AbstractContextManager[Any] = FakeTensorMode(allow_non_fake_inputs=True)
    return mode


def logs_left_out() -> AbstractContextManager[Any]:
    """Makes TorchDynamo leave out what a model logs; otherwise it divides the graph there.

    ``torch._dynamo.config.ignore_logger_methods``, since 2.4; later an alias.
    """
    from torch._dynamo import config

    # Libraries add methods of their own to loggers, such as warning_once of transformers.
    rows = vars(logging.Logger).items()
    methods = {method for name, method in rows if callable(method) and not name.startswith("_")}
    without: AbstractContextManager[Any] = config.patch(ignore_logger_methods=methods)
    return without


def number_of(tensor: torch.Tensor) -> Any:
    """Returns the number in a fake tensor; 1 if the tensor has none.

    Fake tensors remember the numbers that they are made of.
    ``torch._subclasses.fake_tensor.DataDependentOutputException``, since 2.0.
    """
    from torch._subclasses.fake_tensor import DataDependentOutputException

    try:
        return torch.ops.aten._local_scalar_dense.default(tensor)
    except DataDependentOutputException:
        return 1.0 if tensor.is_floating_point() else 1


@contextlib.contextmanager
def quiet_compiler() -> Iterator[None]:
    """Silences the logger ``torch._dynamo``, since 2.0, about errors that are raised anyway."""
    logger = logging.getLogger("torch._dynamo")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def compiled_frame() -> int:
    """Returns TorchDynamo's number of the function that it compiles now.

    Uses ``torch._guards.CompileContext``, since 2.1.
    """
    from torch._guards import CompileContext

    current = CompileContext.current_compile_id()
    return 0 if current is None or current.frame_id is None else current.frame_id


def copy_notes(made: Any, source: Any) -> Any:
    """Gives a copy of TorchDynamo's graph, or of a node of it, what AOT autograd looks for.

    These attributes say which inputs are parameters: ``_dynamo_source`` of inputs, since 2.1, and
    ``_param_name_to_source`` of the module, since 2.0. Returns the copy.
    """
    made.meta = dict(source.meta)
    for name in ("_dynamo_source", "_param_name_to_source"):
        if hasattr(source, name):
            setattr(made, name, getattr(source, name))
    return made


def has_backward_hooks(module: torch.nn.Module) -> bool:
    """``Module._backward_hooks``, since 0.1, and ``_backward_pre_hooks``, since 2.0."""
    return bool(module._backward_hooks or module._backward_pre_hooks)


def is_compiled_in_place(module: torch.nn.Module) -> bool:
    """Returns whether ``module.compile()`` was called (``Module._compiled_call_impl``, since 2.2)."""
    return module._compiled_call_impl is not None


def is_checkpointed(node: fx.Node) -> bool:
    """Returns whether torch.utils.checkpoint marked the node (``meta["recompute"]``, since 2.1)."""
    return getattr(node.meta.get("recompute"), "name", "").endswith("_RECOMPUTE")


def compiled_nodes(outputs: Iterable[Any], depth: int = 2) -> list[Any]:
    """Returns the nodes of autograd's graph that AOT autograd made and that lead to some tensors.

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
    """Attaches an object to a node of autograd's graph that Python made, unless it has one."""
    if getattr(node, "ckplan_call", None) is None:
        node.ckplan_call = call


def mark_of_running_node() -> Any:
    """Returns what ``mark`` attached to the node whose backward pass runs; None if unknown.

    ``torch._C._current_autograd_node``, since 2.1.
    """
    running = getattr(torch._C, "_current_autograd_node", lambda: None)()
    return getattr(running, "ckplan_call", None)


def retains_graph() -> bool:
    """Returns whether the graph whose backward pass runs is retained for another one.

    ``torch._C._autograd._get_current_graph_task_keep_graph``, since 2.4.
    """
    ask = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return ask is not None and bool(ask())


def has_saved_tensor_hooks() -> bool:
    """Returns whether ``torch.autograd.graph.saved_tensors_hooks`` are in force.

    ``torch._C._autograd._top_saved_tensors_default_hooks``, since 2.6.
    """
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is not None and top(True) is not None


def uses_compiled_autograd() -> bool:
    """Returns whether backward is compiled: ``torch._dynamo.compiled_autograd``, since 2.1."""
    from torch._dynamo import compiled_autograd, config

    is_on = getattr(compiled_autograd, "compiled_autograd_enabled", False)
    return bool(is_on or getattr(config, "compiled_autograd", False))


def optimized_module() -> type[torch.nn.Module]:
    """``torch._dynamo.OptimizedModule``, since 2.0: the class of what torch.compile returns."""
    from torch._dynamo import OptimizedModule

    return OptimizedModule


def uncompiled(model: Any) -> Any:
    """Returns the module of which ``torch.compile`` made another one (``_orig_mod``, since 2.0)."""
    return getattr(model, "_orig_mod", model)


def flatten(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Returns what containers hold, and a function that puts other things into such containers.

    Uses ``torch.utils._pytree``, since 2.0.
    """
    from torch.utils import _pytree

    leaves, containers = _pytree.tree_flatten(value)
    return leaves, lambda others: _pytree.tree_unflatten(others, containers)


@contextlib.contextmanager
def quiet_exporter() -> Iterator[None]:
    """Silences what PyTorch logs while it exports a model, and what errors contain anyway.

    The loggers are those of ``torch.onnx._internal.exporter._registration``, since 2.5,
    ``torch._subclasses.fake_tensor``, since 2.0, and ``torch.export._trace``, since 2.2.
    """
    modules = ("onnx._internal.exporter._registration", "_subclasses.fake_tensor", "export._trace")
    loggers = [logging.getLogger(f"torch.{module}") for module in modules]
    levels = {logger: logger.level for logger in loggers}
    for logger in levels:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Exporting a model while it is in training mode")
            warnings.filterwarnings("ignore", "# The axis name: .* will not be used")
            warnings.filterwarnings("ignore", "# ONNX model has different number of inputs")
            yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def is_tracing_failure(error: Exception) -> bool:
    """Returns whether a model could not be traced, rather than not be translated to ONNX.

    The class is ``torch.onnx._internal.exporter._errors.TorchExportError``, since 2.5.
    """
    return type(error).__name__ == "TorchExportError"


def rename_dimensions(program: Any, names: dict[str, str]) -> None:
    """``torch.onnx.ONNXProgram.rename_axes``, which 2.8 does not have."""
    if not hasattr(program, "rename_axes"):
        raise RuntimeError(
            f"PyTorch {torch.__version__} names no dimensions if an argument is not a tensor; "
            "update it, or pass only tensors"
        )
    program.rename_axes(names)


def is_view(tensor: torch.Tensor) -> bool:
    """``torch.Tensor._is_view``, since 1.0."""
    return bool(tensor._is_view())


def is_without_data(tensor: Any) -> bool:
    """Returns whether a tensor of the exporter has no contents.

    Its tensors are PyTorch's in ``torch.onnx._internal.exporter._core.TorchTensor``, since 2.5.
    """
    raw = getattr(tensor, "raw", None)
    return isinstance(raw, torch.Tensor) and (raw.is_meta or is_any_fake([raw]))


def check_version(compiler: str) -> None:
    """Raises RuntimeError if this PyTorch is too old."""
    if version() < OLDEST:
        raise RuntimeError(
            f"ckplan.torch needs PyTorch {OLDEST[0]}.{OLDEST[1]}, not {torch.__version__}"
        )
    if compiler == "inductor" and version() < INDUCTOR_SINCE:
        needed = ".".join(map(str, INDUCTOR_SINCE))
        raise RuntimeError(f'compiler="inductor" needs PyTorch {needed}, not {torch.__version__}')
