"""Private names of PyTorch, mostly of TorchDynamo and fake tensors, and the versions that have
them.

Other private names are in ``private_autograd``, ``private_export``, ``inductor.private`` and
``estimation.private``; everything else that ``ckplan.torch`` uses of PyTorch is public. The version
in a docstring is the first one with that name. The oldest version below and the newest are tested.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode

from ckplan.torch.errors import OffloadError, UnsupportedGraphError

OLDEST = (2, 8)
"""The oldest version of PyTorch that is tested."""

INDUCTOR_SINCE = (2, 9)
"""Inductor's ``config.custom_partitioner_fn`` exists since this version."""


def version() -> tuple[int, int]:
    """Returns the major and minor version of PyTorch."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def storage_key(tensor: torch.Tensor) -> int:
    """Returns a number that identifies the tensor's memory while it lives (``_cdata``, 1.x).

    Raises UnsupportedGraphError for a tensor without one storage, such as a sparse one.
    """
    try:
        key: int = tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError) as error:
        raise UnsupportedGraphError(f"a tensor has no storage: {error}") from error
    return key


def storage_watch(tensor: torch.Tensor) -> Callable[[], bool]:
    """Returns a function that says whether the tensor's memory is still in use.

    ``torch.multiprocessing.reductions.StorageWeakRef``, since 1.x.
    """
    from torch.multiprocessing.reductions import StorageWeakRef

    reference: Any = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
    return lambda: not reference.expired()


def data_symbol(size: torch.SymInt) -> str | None:
    """Returns the symbol of a data-dependent size, such as ``u0``; None for other sizes.

    ``torch.fx.experimental.symbolic_shapes``, since 2.0: sizes have expressions of sympy.
    """
    expression = size.node.expr
    is_one = getattr(expression, "is_Symbol", False)
    return str(expression) if is_one and str(expression).startswith("u") else None


def set_bound(size: torch.SymInt, bound: int) -> None:
    """Sets the upper bound of a symbol (``ShapeEnv.constrain_symbol_range``, since 2.1)."""
    ranges: Any = size.node.shape_env
    ranges.constrain_symbol_range(size.node.expr, 0, bound)


def upper_bound(size: int | torch.SymInt) -> int | None:
    """Returns the upper bound of a size; None if unknown.

    Uses ``ShapeEnv.bound_sympy``, since 2.2, which computes with ranges.
    """
    if isinstance(size, int):
        return size
    ranges: Any = size.node.shape_env
    upper = ranges.bound_sympy(size.node.expr).upper
    return int(upper) if upper.is_Integer else None


def sizes_of_data() -> AbstractContextManager[Any]:
    """Within this context TorchDynamo traces operations with data-dependent result sizes.

    ``torch._dynamo.config.capture_dynamic_output_shape_ops`` and ``capture_scalar_outputs``, since
    2.0.
    """
    from torch._dynamo import config

    patched: AbstractContextManager[Any] = config.patch(
        capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True
    )
    return patched


def opaque_operator(target: Any) -> str | None:
    """Returns the name of a PyTorch operator that wraps a function which mutates its arguments.

    ``torch._higher_order_ops.auto_functionalize``, since 2.1, and ``triton_kernel_wrap``, since
    2.2. They mutate copies of the arguments, and return these.
    """
    name = getattr(target, "_name", "")
    known = ("auto_functionalized", "auto_functionalized_v2", "triton_kernel_wrapper_functional")
    return name if name in known and not isinstance(target, torch._ops.OpOverload) else None


def let_pass_opaque(mode: type[Any]) -> type[Any]:
    """Decorates a dispatch mode so that it also sees the operators of ``opaque_operator``.

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


def compiler_failure() -> type[Exception]:
    """``torch._dynamo.exc.BackendCompilerFailed``, since 2.0: wraps what a backend raises."""
    from torch._dynamo.exc import BackendCompilerFailed

    return BackendCompilerFailed


def failure_of(backend: Any, error: Exception) -> Exception:
    """Wraps a backend's error as PyTorch does, but with the backend's message first.

    Returns exceptions unchanged that tell TorchDynamo to trace again or to break the graph:
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
    """Makes PyTorch enter a context around each call of a model that a backend compiles.

    A backend calls this where ``torch.compile`` asks for its ``__name__``. The caller is the
    wrapper (``torch._TorchCompileWrapper``, since 2.0) of which TorchDynamo takes the attribute
    ``backend_ctx_ctor``. Anything else that asks for the name gets no contexts.
    """
    caller = sys._getframe(2)
    wrapper = caller.f_locals.get("self")
    if type(wrapper).__name__ == "_TorchCompileWrapper" and caller.f_code.co_name == "__init__":
        wrapper.backend_ctx_ctor = context  # type: ignore[union-attr]


def graph_breaks() -> Counter[str]:
    """Returns TorchDynamo's reasons for graph breaks so far, with their counts.

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
    """``torch._dynamo.config.recompile_limit``, since 2.6: the maximum of graphs per part."""
    from torch._dynamo import config

    limit: int = config.recompile_limit
    return limit


def offload_operators() -> Any:
    """``torch.ops.ao``: copies to the host and back, for graphs that are compiled.

    Importing ``torch._functorch._activation_offloading.offload_ops`` registers them. 2.15 has it,
    and 2.8 does not. Raises OffloadError.
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
    """Returns whether a graph break follows (``compile_subgraph_reason``, since 2.0)."""
    reason = getattr(module, "compile_subgraph_reason", None)
    return bool(getattr(reason, "graph_break", False))


def why_it_ends(module: fx.GraphModule) -> str:
    """Returns the reason why a graph ends (``compile_subgraph_reason``, since 2.0)."""
    return str(getattr(getattr(module, "compile_subgraph_reason", None), "reason", ""))


def is_any_fake(arguments: Iterable[Any]) -> bool:
    """Returns whether any argument is a fake tensor (``FakeTensor``, since 2.0)."""
    from torch._subclasses.fake_tensor import FakeTensor

    return any(isinstance(argument, FakeTensor) for argument in arguments)


def fake_mode() -> AbstractContextManager[Any]:
    """``torch._subclasses.fake_tensor.FakeTensorMode``, since 2.0: tensors without memory.

    Within this context all new tensors are fake.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode: AbstractContextManager[Any] = FakeTensorMode(allow_non_fake_inputs=True)
    return mode


def without_logging() -> AbstractContextManager[Any]:
    """Makes TorchDynamo skip a model's logging calls, which would break the graph.

    ``torch._dynamo.config.ignore_logger_methods``, since 2.4; later an alias.
    """
    from torch._dynamo import config

    # Libraries add methods of their own to loggers, such as warning_once of transformers.
    rows = vars(logging.Logger).items()
    methods = {method for name, method in rows if callable(method) and not name.startswith("_")}
    without: AbstractContextManager[Any] = config.patch(ignore_logger_methods=methods)
    return without


def number_of(tensor: torch.Tensor) -> Any:
    """Returns the number in a fake tensor; 1 if it is unknown.

    Fake tensors remember the numbers that they were made from.
    ``torch._subclasses.fake_tensor.DataDependentOutputException``, since 2.0.
    """
    from torch._subclasses.fake_tensor import DataDependentOutputException

    try:
        return torch.ops.aten._local_scalar_dense.default(tensor)
    except DataDependentOutputException:
        return 1.0 if tensor.is_floating_point() else 1


@contextlib.contextmanager
def quiet_compiler() -> Iterator[None]:
    """Silences the logger ``torch._dynamo``, since 2.0; its messages repeat raised errors."""
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
    """Copies the metadata that AOT autograd reads to a copy of a TorchDynamo graph or node.

    These attributes say which inputs are parameters: ``_dynamo_source`` of inputs, since 2.1, and
    ``_param_name_to_source`` of the module, since 2.0. Returns the copy.
    """
    made.meta = dict(source.meta)
    for name in ("_dynamo_source", "_param_name_to_source"):
        if hasattr(source, name):
            setattr(made, name, getattr(source, name))
    return made


def is_compiled_in_place(module: torch.nn.Module) -> bool:
    """Returns whether ``module.compile()`` was called (``Module._compiled_call_impl``, since
    2.2)."""
    return module._compiled_call_impl is not None


def is_checkpointed(node: fx.Node) -> bool:
    """Returns whether torch.utils.checkpoint marked the node (``meta["recompute"]``, since 2.1)."""
    return getattr(node.meta.get("recompute"), "name", "").endswith("_RECOMPUTE")


def optimized_module() -> type[torch.nn.Module]:
    """``torch._dynamo.OptimizedModule``, since 2.0: the class of what torch.compile returns."""
    from torch._dynamo import OptimizedModule

    return OptimizedModule


def uncompiled(model: Any) -> Any:
    """Returns the module that ``torch.compile`` wrapped (``_orig_mod``, since 2.0)."""
    return getattr(model, "_orig_mod", model)


def flatten(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Returns the leaves of nested containers, and a function that rebuilds them with other leaves.

    Uses ``torch.utils._pytree``, since 2.0.
    """
    from torch.utils import _pytree

    leaves, containers = _pytree.tree_flatten(value)
    return leaves, lambda others: _pytree.tree_unflatten(others, containers)


def is_view(tensor: torch.Tensor) -> bool:
    """``torch.Tensor._is_view``, since 1.0."""
    return bool(tensor._is_view())


def check_version(compiler: str) -> None:
    """Raises RuntimeError if this PyTorch is too old."""
    if version() < OLDEST:
        raise RuntimeError(
            f"ckplan.torch needs PyTorch {OLDEST[0]}.{OLDEST[1]}, not {torch.__version__}"
        )
    if compiler == "inductor" and version() < INDUCTOR_SINCE:
        needed = ".".join(map(str, INDUCTOR_SINCE))
        raise RuntimeError(f'compiler="inductor" needs PyTorch {needed}, not {torch.__version__}')
