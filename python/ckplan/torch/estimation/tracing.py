"""Captures a training step without a device and without weights, on fake CPU tensors.

A fake tensor has a shape, a type and a storage size, but no memory. Fake CPU tensors stand for GPU
tensors, because PyTorch cannot trace a backward pass of fake CUDA tensors without a GPU. Operators
have the same names and sizes, with a few exceptions that docs/estimate.md lists.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from ckplan.torch import garbage_collection, private, private_autograd
from ckplan.torch.bounds import Bounds, are_by_code
from ckplan.torch.capture import capture
from ckplan.torch.errors import (
    EstimateError,
    MissingKernelError,
    UnboundedSizeError,
    UnsupportedGraphError,
)
from ckplan.torch.estimation import attention, eager, model_construction, regions
from ckplan.torch.estimation.example_inputs import fake_inputs
from ckplan.torch.estimation.held_results import hold_results
from ckplan.torch.estimation.layer_expansion import expand_layers
from ckplan.torch.estimation.layer_folding import (
    FoldedLayers,
    depends_on_data,
    fold_layers,
    updates_buffers,
)
from ckplan.torch.estimation.private import (
    fake_conversions,
    in_compilers_mode,
    kernels_of_triton,
    values_left_out,
)
from ckplan.torch.graph import JointGraph
from ckplan.torch.obstacles import missing_kernel, remedy
from ckplan.torch.unused_results import tangents_beyond_loss, without_gradients

PRECISIONS: dict[str, tuple[torch.dtype, torch.dtype | None]] = {
    "fp32": (torch.float32, None),
    "bf16": (torch.bfloat16, None),
    "fp16": (torch.float16, None),
    "bf16-mixed": (torch.float32, torch.bfloat16),
    "fp16-mixed": (torch.float32, torch.float16),
}
"""The type of parameters, and that of autocast."""


@dataclass(frozen=True)
class Precision:
    """The types of parameters and of autocast."""

    parameters: torch.dtype
    autocast: torch.dtype | None
    is_own: bool = False
    """Whether the model keeps the types that it has; ``parameters`` is then their default."""

    @staticmethod
    def named(name: str | None) -> Precision:
        """Returns the named precision, or the default one of models. Raises ValueError."""
        if name is None:
            return Precision(torch.get_default_dtype(), None, is_own=True)
        if name not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, not {name!r}")
        return Precision(*PRECISIONS[name])


@dataclass(frozen=True)
class _TracingSetup:
    """How a step is traced."""

    precision: Precision
    loss: Callable[[Any], Tensor] | None
    bounds: Bounds | None
    holds: bool
    """Whether the caller holds all results, rather than only the loss."""
    is_on_gpu: bool = True
    """Whether attention uses a GPU's kernels."""


@dataclass(frozen=True)
class Traced:
    """The joint graph that AOT autograd made, possibly without some equal layers."""

    joint: fx.GraphModule
    options: dict[str, Any]
    repeats: list[FoldedLayers]
    setup: _TracingSetup
    differences: list[str]
    """How eager PyTorch differs from it."""

    def graph(self, arriving: bool) -> JointGraph:
        """Returns the joint graph of all layers. Raises UnsupportedGraphError."""
        static = self.options.get("static_lifetime_input_indices")
        parameters = None if static is None else set(static)
        outputs = self.options["num_fwd_outputs"]
        bounds = self.setup.bounds
        graph = capture(self.joint, outputs, parameters, arriving=arriving, bounds=bounds)
        if not self.repeats:
            return graph
        whole = expand_layers(graph, list(self.joint.graph.nodes), self.repeats)
        if whole is None:
            raise UnsupportedGraphError("its layers differ")
        return whole


@dataclass
class Step:
    """A captured training step, and the tensors that exist before it."""

    traced: Traced
    model: nn.Module
    inputs: list[Tensor]
    name: str
    are_values_assumed: bool
    """The constructor has a condition on a tensor's values, which was assumed to be false."""

    def graph(self, arriving: bool) -> JointGraph:
        """Returns the joint graph. ``arriving`` counts parameters' gradients where they are made.

        Raises EstimateError.
        """
        try:
            graph = self.traced.graph(arriving)
        except UnboundedSizeError:
            raise
        except UnsupportedGraphError as error:
            raise EstimateError(f"the step of {self.name} cannot be planned: {error}") from error
        for operation in graph.operations:
            operation.module = self._module(operation.module)
        if self.traced.setup.holds:
            hold_results(graph)
        return graph

    def _module(self, path: str) -> str:
        """Returns the path within the model; operations outside of it compute the loss."""
        root, _, rest = path.partition(".")
        return rest or (self.name if root == _Training.ROOT else "")

    def parameters(self) -> list[nn.Parameter]:
        """Returns the parameters, each once."""
        return list(self.model.parameters())

    def buffers(self) -> list[Tensor]:
        """Returns the buffers that have memory of their own, each once."""
        found = {private.storage_key(p) for p in self.model.parameters()}
        buffers = []
        for buffer in self.model.buffers():
            if private.storage_key(buffer) not in found:
                found.add(private.storage_key(buffer))
                buffers.append(buffer)
        return buffers


class _Training(nn.Module):
    """The model with its loss, so that all operations have module paths."""

    ROOT = "model"

    def __init__(self, model: nn.Module, setup: _TracingSetup):
        super().__init__()
        self.model = model
        self._loss = loss_of if setup.loss is None else setup.loss
        self._autocast = setup.precision.autocast
        self._holds = setup.holds

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._autocast is None:
            return self._step(*args, **kwargs)
        with torch.autocast("cpu", dtype=self._autocast):
            return self._step(*args, **kwargs)

    def _step(self, *args: Any, **kwargs: Any) -> Any:
        result = self.model(*args, **kwargs)
        loss = self._loss(result)
        if not self._holds or loss is None:
            return loss
        return loss, *(tensor for tensor in _tensors_in(result) if tensor is not loss)


class _Done(Exception):
    """Ends the compilation once the joint graph exists."""


@garbage_collection.paused
def trace_step(
    make_model: Callable[[], nn.Module],
    example_inputs: Any,
    precision: Precision,
    loss: Callable[[Any], Tensor] | None = None,
    bounds: Bounds | None = None,
    returns: str = "loss",
    is_on_gpu: bool = True,
) -> Step:
    """Returns a training step of the model that ``make_model`` creates.

    ``returns`` is ``"all"`` if the caller holds all results of the model. ``is_on_gpu=False`` is
    for comparisons with a CPU, which has other kernels for attention. Raises EstimateError,
    UnboundedSizeError, MissingKernelError, TypeError.
    """
    call = _fake_call(make_model, example_inputs, precision)
    setup = _TracingSetup(precision, loss, bounds, returns == "all", is_on_gpu)
    with kernels_of_triton(), attention.shapes():
        traced = _trace_joint(call, setup)
    name = type(call.model).__name__
    return Step(traced, call.model, call.tensors(), name, call.are_values_assumed)


def call_backend(
    make_model: Callable[[], nn.Module],
    example_inputs: Any,
    precision: Precision,
    loss: Callable[[Any], Tensor] | None,
    backend: Callable[[fx.GraphModule, list[Any]], Any],
    is_done: Callable[[], bool],
) -> None:
    """Creates a model of fake tensors, and calls a backend of torch.compile with its step.

    ``is_done`` returns whether the backend has its result; it may then end by any exception. Raises
    the same errors as ``trace_step``.
    """
    setup = _TracingSetup(precision, loss, bounds=None, holds=False)
    _run_step(_fake_call(make_model, example_inputs, precision), setup, backend, is_done)


@dataclass(frozen=True)
class _FakeCall:
    """A model and the arguments of a call, all with fake tensors."""

    mode: Any
    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    are_values_assumed: bool

    def tensors(self) -> list[Tensor]:
        leaves = private.flatten((self.args, self.kwargs))[0]
        return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _fake_call(
    make_model: Callable[[], nn.Module], example_inputs: Any, precision: Precision
) -> _FakeCall:
    if isinstance(make_model, nn.Module) or not callable(make_model):
        raise TypeError(
            "make_model must be a function that creates the model, so that its tensors are fake: "
            "write lambda: Model(...)"
        )
    mode = private.fake_mode()
    with (
        mode,
        _default_type(precision.parameters),
        torch.device("cpu"),
        model_construction.Construction() as producer,
    ):
        with values_left_out(), fake_conversions() as conversions:
            model = producer.construct(make_model)
        if not isinstance(model, nn.Module):
            raise TypeError(f"make_model must return a torch.nn.Module, not {type(model).__name__}")
    dtype, keeps_types = precision.parameters, precision.is_own
    keeps_types = keeps_types or bool(conversions) or producer.is_converted(model)
    model = model_construction.without_memory(model, mode)
    if keeps_types:  # It keeps the types that it would have in training.
        dtype = model_construction.first_type(model, dtype)
    else:
        with mode:
            model_construction.convert(model, dtype)
    model.train()
    _check_device(model)
    with mode:
        args, kwargs = fake_inputs(example_inputs, dtype)
    return _FakeCall(mode, model, args, kwargs, producer.are_assumed)


def _trace_joint(call: _FakeCall, setup: _TracingSetup) -> Traced:
    found: list[Traced] = []

    def backend(module: fx.GraphModule, inputs: list[Any]) -> Any:
        if is_marked and not _may_be_shorter(module, setup.bounds):
            raise regions.CannotInlineError("bounds by symbol need the numbers of all layers")
        traced = _trace_graph(*regions.inlined(module, inputs), setup)
        if traced is None:
            return module.forward
        found.append(traced)
        raise _Done

    # If TorchDynamo cannot trace the layers only once, it traces the whole model.
    with regions.marked(call.model) as is_marked, contextlib.suppress(Exception):
        if is_marked:
            _call_compiled(call, setup, backend)
    if found:
        return found[0]
    is_marked = False
    _run_step(call, setup, backend, lambda: bool(found))
    return found[0]


def _run_step(
    call: _FakeCall,
    setup: _TracingSetup,
    backend: Callable[[fx.GraphModule, list[Any]], Any],
    is_done: Callable[[], bool],
) -> None:
    name = type(call.model).__name__
    try:
        _call_compiled(call, setup, backend)
    except Exception as error:
        missing = missing_kernel(str(error))
        if missing is not None:
            raise MissingKernelError(missing) from error
        inner = getattr(error, "inner_exception", None)
        if isinstance(inner, EstimateError):
            raise inner from None
        if not is_done():
            why = f"{name} cannot be traced as one graph: {_first_lines(error)}{remedy(str(error))}"
            raise EstimateError(why) from error
    if not is_done() and not any(row.requires_grad for row in call.model.parameters()):
        raise EstimateError(f"{name} has nothing to train: no parameter requires a gradient")
    if not is_done():
        raise EstimateError(
            f"loss: {name} has no loss to train by: its result is not a number, and contains none "
            "called loss; name a function from the result to the loss, or pass labels to the model"
        )


def _call_compiled(
    call: _FakeCall,
    setup: _TracingSetup,
    backend: Callable[[fx.GraphModule, list[Any]], Any],
) -> None:
    training = _Training(call.model, setup)
    compiled = torch.compile(training, backend=backend, dynamic=False, fullgraph=True)
    with (
        call.mode,
        torch.enable_grad(),
        private.quiet_compiler(),
        private.without_logging(),
        private.sizes_of_data(),
    ):
        compiled(*call.args, **call.kwargs)


def _trace_graph(module: fx.GraphModule, inputs: list[Any], setup: _TracingSetup) -> Traced | None:
    """Returns the joint graph of a TorchDynamo graph; None if nothing is trained.

    It has only a few of the equal layers if the others can be restored.
    """
    differences = eager.differences(module)
    if setup.is_on_gpu:
        attention.fuse(module)
    may_be = _may_be_shorter(module, setup.bounds) and not updates_buffers(module)
    short = fold_layers(module, inputs) if may_be else None
    if short is not None:
        found = _trace_backward(short.module, short.inputs, short.repeats, setup, differences)
        with contextlib.suppress(UnsupportedGraphError):
            if found is not None and found.graph(arriving=False):
                return found
    return _trace_backward(module, inputs, [], setup, differences)


def _may_be_shorter(module: fx.GraphModule, bounds: Bounds | None) -> bool:
    """Returns whether data-dependent sizes have the same bounds in a graph with fewer layers."""
    graphs = [part.graph for part in module.modules() if isinstance(part, fx.GraphModule)]
    nodes = [node for graph in graphs for node in graph.nodes]
    return are_by_code(bounds) or not any(depends_on_data(node) for node in nodes)


def _trace_backward(
    module: fx.GraphModule,
    inputs: list[Any],
    repeats: list[FoldedLayers],
    setup: _TracingSetup,
    differences: list[str],
) -> Traced | None:
    found: list[Traced] = []

    def partition(joint: fx.GraphModule, _: Any, **options: Any) -> Any:
        # No gradients arrive for the results that the caller holds besides the loss.
        if setup.holds:
            joint = without_gradients(joint, tangents_beyond_loss(joint))
        found.append(Traced(joint, options, repeats, setup, differences))
        raise _Done

    backend = private_autograd.aot_autograd(
        fw_compiler=lambda graph, _: graph,
        partition_fn=partition,
        keep_inference_input_mutations=True,
    )
    with contextlib.suppress(_Done):
        backend(module, in_compilers_mode(inputs))
    return found[0] if found else None


def loss_of(output: Any) -> Any:
    """Returns the loss in a model's results: the one called ``loss``, or the only number."""
    if isinstance(output, Tensor):
        return output if output.numel() == 1 else None
    named = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(named, Tensor):
        return named
    if isinstance(output, (tuple, list)):
        numbers = [item for item in output if isinstance(item, Tensor) and item.numel() == 1]
        return numbers[0] if len(numbers) == 1 else None
    return None


def _tensors_in(output: Any) -> Iterator[Tensor]:
    """Yields the tensors in a model's results. TorchDynamo traces this."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping):
        for value in output.values():
            yield from _tensors_in(value)
    elif isinstance(output, (tuple, list)):
        for value in output:
            yield from _tensors_in(value)
    elif isinstance(getattr(output, "layers", None), list):  # A cache of transformers.
        for layer in output.layers:
            yield from _tensors_in((getattr(layer, "keys", None), getattr(layer, "values", None)))


def _check_device(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if parameter.device.type != "cpu":
            raise EstimateError(
                f"parameter {name} is on {parameter.device}; create the model without a device, "
                "because device= names the GPU"
            )


@contextlib.contextmanager
def _default_type(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _first_lines(error: BaseException) -> str:
    """Returns the first lines of PyTorch's error message, as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3])[:400] or type(error).__name__
