"""Implements ``ckplan.torch.compile`` and ``ckplan.torch.Backend``."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import torch
from torch import fx, nn

import ckplan
from ckplan.torch import backend, obstacles, private
from ckplan.torch.bounds import Bounds
from ckplan.torch.constraints import Patterns
from ckplan.torch.errors import MissingKernelError, OffloadError, ReplayError
from ckplan.torch.report import Report
from ckplan.torch.request import Options, Request

_OWN_ERRORS = (MissingKernelError, OffloadError, ReplayError)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

if TYPE_CHECKING:
    from typing_extensions import Unpack

    class PlannedModule(nn.Module):
        """The type of a compiled module; at run time it is PyTorch's ``OptimizedModule``."""

        ckplan: Report


@overload
def compile(  # type: ignore[overload-overlap]
    model: nn.Module,
    budget: int | str | None = None,
    *,
    fullgraph: bool = False,
    **options: Unpack[Options],
) -> PlannedModule: ...
@overload
def compile(
    model: Callable[Parameters, Result],
    budget: int | str | None = None,
    *,
    fullgraph: bool = False,
    **options: Unpack[Options],
) -> PlannedFunction[Parameters, Result]: ...
def compile(
    model: Callable[..., Any],
    budget: int | str | None = None,
    *,
    total: int | str | None = None,
    memory: int | str | None = None,
    algo: str = "best",
    compiler: str = "eager",
    costs: str = "roofline",
    effort: str = "quick",
    optimizer: str = "sgd",
    master_weights: bool = False,
    time_limit: str | None = None,
    returns: str = "all",
    keep: Patterns = (),
    recompute: Patterns = (),
    never_rerun: Patterns = (),
    bounds: Bounds | None = None,
    offload: str | None = None,
    host_memory: int | str | None = None,
    never_offload: Patterns = (),
    fullgraph: bool = False,
) -> Any:
    """Returns a model or function that trains within a memory budget.

    Like ``torch.compile``, it returns another module with the same parameters; the model itself is
    unchanged. The result has a Report in ``.ckplan``, whose ``summary()`` shows the plans and the
    measured memory after the first step. Under ``torch.no_grad()`` the model runs unchanged.

    budget: the limit for activations, their gradients and workspace: bytes, ``"16GiB"``, ``"60%"``
        of the keep-all peak, or ``"min"``.
    total: instead of ``budget``, the limit for these together with parameters, their gradients,
        inputs and the state of ``optimizer`` (``"sgd"``, ``"momentum"``, ``"adam"``, ``"adamw"``
        or ``"adam8bit"``). With ``master_weights``, 16-bit parameters have float32 copies and
        the optimizer's state is float32.
    memory: instead of both, the memory of the device, ``"24GiB"`` or ``"rtx4090"``: it holds
        everything in ``total``, the allocator's overhead, cuBLAS, the CUDA context and the driver
        (docs/accounting.md).
    compiler: ``"eager"`` runs PyTorch's own operators, with results bit-identical to eager mode;
        ``"inductor"`` compiles the planned graphs.
    costs: ``"roofline"`` of the device, ``"roofline:a100-40g"``, ``"flops"``, or ``"measure"``,
        which times each operation when a graph is first compiled.
    algo, effort, time_limit: as for ``ckplan plan``.
    returns: ``"loss"`` promises that the caller uses only one-element results, such as the loss. By
        default, ckplan observes in the first step which results the caller uses.
    keep, recompute, never_rerun: constraints, as for ``ckplan plan``. A pattern names a module and
        everything in it, ``"layers.*.attention"``, or an operator, ``"op:gelu"``. In a list of
        patterns, the last match wins.
    bounds: upper bounds of data-dependent sizes, by symbol, ``{"u0": 4096}``, or by a line of the
        model's code, ``{"torch.where(": 4096}``. If given, even as ``{}``, such sizes cause no
        graph break, and an error lists the sizes without a bound. A step with a larger size
        raises SizeAboveBoundError.
    offload, host_memory, never_offload: also offload activations to the host over a link, such as
        ``"pcie5"`` (see ``ckplan plan --offload``), using at most ``"64GiB"`` of host memory.
        Results of operations that match ``never_offload`` stay on the device.
    fullgraph: raise an error on a graph break.

    Raises ValueError for an invalid argument. A call of the model raises InfeasibleError if no plan
    fits. A graph that cannot be planned trains as in eager PyTorch, with a PlanWarning.
    """
    request = Request(
        budget,
        total,
        algo,
        effort,
        optimizer,
        costs,
        compiler,
        time_limit,
        returns,
        master_weights,
        keep,
        recompute,
        never_rerun,
        bounds,
        offload,
        host_memory,
        never_offload,
        memory,
    )
    private.check_version(compiler)
    planned: PlannedFunction[..., Any] = PlannedFunction(model, request, fullgraph)
    if isinstance(model, torch.nn.Module):
        # Trainers select the columns of a data set by forward's signature.
        functools.update_wrapper(planned, model.forward, updated=())
        compiled = planned.compiled
        compiled.forward = planned
        compiled.ckplan = planned.ckplan
        return compiled
    functools.update_wrapper(planned, model)
    return planned


class Backend:
    """A backend for ``model.compile``, which compiles a module in place.

    The module keeps its class, the signature of its ``forward`` and the keys of its state:

        planner = ckplan.torch.Backend(budget="60%")
        model.compile(backend=planner, dynamic=False)

    The arguments are those of ``compile``; pass ``fullgraph`` to ``model.compile``. After the first
    step ``summary()`` shows the plans and the measured memory, and ``report`` has them as data.
    PyTorch wraps errors in ``BackendCompilerFailed``, whose text begins with the original one.
    """

    def __init__(
        self,
        budget: int | str | None = None,
        *,
        total: int | str | None = None,
        memory: int | str | None = None,
        algo: str = "best",
        compiler: str = "eager",
        costs: str = "roofline",
        effort: str = "quick",
        optimizer: str = "sgd",
        master_weights: bool = False,
        time_limit: str | None = None,
        returns: str = "all",
        keep: Patterns = (),
        recompute: Patterns = (),
        never_rerun: Patterns = (),
        bounds: Bounds | None = None,
        offload: str | None = None,
        host_memory: int | str | None = None,
        never_offload: Patterns = (),
    ):
        request = Request(
            budget,
            total,
            algo,
            effort,
            optimizer,
            costs,
            compiler,
            time_limit,
            returns,
            master_weights,
            keep,
            recompute,
            never_rerun,
            bounds,
            offload,
            host_memory,
            never_offload,
            memory,
        )
        private.check_version(compiler)
        self.report = Report(request)
        self._planner = _InPlace(request, self.report)

    def __call__(self, module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        """Compiles a graph; PyTorch calls this."""
        try:
            return self._planner(module, inputs)
        except Exception as error:
            failure = private.failure_of(self, error)
            if failure is error:
                raise
            raise failure from error

    @property
    def __name__(self) -> str:
        """What PyTorch calls the backend in its messages."""
        private.watch_calls(self._call)
        return repr(self)

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        """Surrounds each call of the model; warns if PyTorch compiled no part of it."""
        before = private.graph_breaks()
        yield
        is_training = torch.is_grad_enabled() and not torch.compiler.is_compiling()
        has_failed = sys.exc_info()[0] is not None
        report = self.report
        if has_failed or not is_training or report.graphs or report.notes:
            return
        breaks = private.graph_breaks() - before
        if self._planner.parts.found and not breaks:
            return  # No graph had anything to train.
        report.say(obstacles.no_graph(breaks))

    def summary(self) -> str:
        """Returns ``report.summary()``."""
        return self.report.summary()

    def __repr__(self) -> str:
        return f"<ckplan.torch.Backend: {self.report.request.words()}>"


class _InPlace(backend.Backend):
    """The backend of a model compiled in place, whose calls it must detect itself."""

    def _before_part(self) -> None:
        """Detects the beginning of a call of the model.

        A call is over once no part of it waits for its backward pass. If it shows that several
        graphs or calls share the limit, each graph is planned again when it runs next.
        """
        if any(part.calls for part in self.parts.found) and not self.is_waiting():
            if self.may_share() and self.should_share():
                self.share()
            self.parts.begin_call()

    def may_share(self) -> bool:
        return not self.request.is_relative and self.request.compiler == "eager"


class PlannedFunction(Generic[Parameters, Result]):
    """A function that ``compile`` returned; its report is ``ckplan``.

    It runs its plans if gradients are needed, and the original function otherwise.
    """

    def __init__(self, model: Callable[Parameters, Result], request: Request, fullgraph: bool):
        self.ckplan = Report(request)
        self._model = model
        self._fullgraph = fullgraph
        self._has_run = False
        self._bounds = request.bounds
        self._use(backend.Backend(request, self.ckplan))

    def _tracing(self) -> AbstractContextManager[Any]:
        """Returns the context for tracing, in which bounds allow data-dependent sizes."""
        return contextlib.nullcontext() if self._bounds is None else private.sizes_of_data()

    def _use(self, planner: backend.Backend) -> None:
        self._backend = planner
        compiled: Any = torch.compile(
            self._model, backend=planner, dynamic=False, fullgraph=self._fullgraph
        )
        self.compiled = compiled
        is_module = isinstance(self._model, torch.nn.Module)
        self._call = compiled.forward if is_module else compiled

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not torch.is_grad_enabled():
            return self._model(*args, **kwargs)
        if self._backend.should_share():
            self._use(self._backend.with_shares())
        self._backend.parts.begin_call()
        if not self._has_run:
            for note in obstacles.warnings_before_first_call(self._model):
                self.ckplan.say(note)
        before = private.graph_breaks() if not self._has_run else Counter()
        try:
            with self._tracing():
                output: Result = self._call(*args, **kwargs)
        except private.compiler_failure() as failure:
            inner = getattr(failure, "inner_exception", None)
            if isinstance(inner, (ckplan.PlanError, ValueError, *_OWN_ERRORS)):
                raise inner from None
            raise
        except Exception as failure:
            missing = obstacles.missing_kernel(str(failure))
            if missing is not None:
                raise MissingKernelError(missing) from failure
            raise
        if not (self._has_run or self.ckplan.graphs or self.ckplan.notes):
            if obstacles.is_trained(output):
                self.ckplan.say(obstacles.no_graph(private.graph_breaks() - before))
        self._has_run = True
        if self.ckplan.graphs:
            self._backend.constraints.check()
        return output
