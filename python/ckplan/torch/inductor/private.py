"""Private names of PyTorch for planning with Inductor, and the versions that have them.

Inductor turns each of the two graphs of a step into a *wrapper*: Python code that allocates
buffers, and calls kernels and operators. The replay needs the wrapper's code, even of graphs that
are never compiled.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import fx

from ckplan.torch import operators, private
from ckplan.torch.inductor import libraries, private_kernels
from ckplan.torch.inductor.lowered_step import (
    Decision,
    Flags,
    KnownPartition,
    Module,
    Partition,
    Step,
    UnloadedStep,
    Wrapper,
)

try:
    from torch._inductor.custom_graph_pass import CustomPartitionerFn as _CustomPartitionerFn
except ImportError:  # Before 2.9.
    _CustomPartitionerFn = object  # type: ignore[assignment, misc]


class _Lowered(BaseException):
    """Ends AOT autograd's work on a graph that will not be compiled.

    It is a BaseException, because Inductor and AOT autograd catch Exceptions.
    """


class _Partitioner(_CustomPartitionerFn):
    """Partitions joint graphs for Inductor by the current ``partition``."""

    def __init__(self) -> None:
        self.partition: Partition | None = None

    def __call__(self, gm: fx.GraphModule, joint_inputs: Any, **options: Any) -> Any:
        options.pop("compiler", None)
        assert self.partition is not None
        return self.partition(gm, joint_inputs, **options)

    def __deepcopy__(self, _: Any) -> _Partitioner:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __repr__(self) -> str:
        return "ckplan"  # Without an address, because it is part of the settings.

    def uuid(self) -> str:
        return "ckplan"


def min_cut(joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
    """``torch._functorch.partitioners.min_cut_rematerialization_partition``, since 2.0.

    Partitions the joint graph as plain ``torch.compile`` does.
    """
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition(joint, inputs, compiler="inductor", **options)


def min_cut_within(budget: float) -> Partition:
    """``torch._functorch.config.activation_memory_budget``, since 2.4: PyTorch's own knob."""
    from torch._functorch import config

    def partition(joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        with config.patch(activation_memory_budget=budget):
            return min_cut(joint, inputs, **options)

    return partition


def copied(module: fx.GraphModule) -> fx.GraphModule:
    """Returns a copy whose graph may be changed.

    ``torch._subclasses.fake_tensor.unset_fake_temporarily``, since 2.1: constants are real tensors.
    """
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily():
        return copy.deepcopy(module)


def compile(module: fx.GraphModule, inputs: list[Any], decision: Decision) -> Callable[..., Any]:
    """Compiles a graph with Inductor, and partitions its joint graph by ``decision``.

    Uses ``torch._dynamo.lookup_backend``, since 2.0; ``custom_graph_pass.CustomPartitionerFn`` and
    ``config.custom_partitioner_fn``, since 2.9. The caches of AOT autograd
    (``torch._functorch.config.enable_autograd_cache``, since 2.5) and of Inductor's graphs
    (``torch._inductor.config.fx_graph_cache``, since 2.2) are off: cached graphs would not be
    planned, and the keys do not include how operations are fused. Kernels are cached.
    """
    from torch._dynamo import lookup_backend
    from torch._functorch import config as functorch_config
    from torch._inductor import config as inductor_config

    partitioner = _Partitioner()
    with (
        inductor_config.patch(custom_partitioner_fn=partitioner, fx_graph_cache=False),
        functorch_config.patch(enable_autograd_cache=False),
        _in_stages(partitioner, decision),
    ):
        return lookup_backend("inductor")(module, inputs)


def use_fake_mode_of(inputs: list[Any]) -> None:
    """Makes a graph compile in the fake mode of its inputs, if these are fake tensors.

    In 2.9 TorchDynamo makes another mode for the compiler, which then rejects such inputs.
    ``torch._guards.TracingContext``, since 2.0; ``FakeTensor.fake_mode``, since 2.0.
    """
    from torch._guards import TracingContext
    from torch._subclasses.fake_tensor import FakeTensor

    context: Any = TracingContext.try_get()
    modes = [each.fake_mode for each in inputs if isinstance(each, FakeTensor)]
    if context is not None and modes:
        context.fake_mode = modes[0]


@contextlib.contextmanager
def _in_stages(partitioner: _Partitioner, decision: Decision) -> Iterator[None]:
    """Lets ``decision`` partition and lower each joint graph several times.

    Replaces ``torch._functorch._aot_autograd.graph_compile.aot_stage2_autograd``, since 2.9, which
    partitions, lowers and compiles a joint graph.
    """
    from torch._functorch._aot_autograd import graph_compile

    place: Any = graph_compile
    original = place.aot_stage2_autograd

    def staged(state: Any, capture: Any, *compilers: Any) -> Any:
        stage = _Stage(partitioner, original, state, capture, compilers)
        stage.finishes &= decision.is_to_run
        decided = decision.decide(stage.lower)
        if isinstance(decided, Step):
            step, function = stage.loaded(decided)
        else:
            step, function = stage.compile(decided, Flags())
        step.reused = stage.take_reused()
        decision.compiled(step)
        return function

    place.aot_stage2_autograd = staged
    try:
        yield
    finally:
        place.aot_stage2_autograd = original


class _Stage:
    """AOT autograd's second stage for one joint graph, which may run several times.

    A lowered step is complete except for its wrappers' modules, so the chosen one need not be
    lowered again. Graphs with tensor subclasses are an exception: the stage can finish them only
    once. ``AOTConfig.force_non_lazy_backward_lowering``, since 2.8, makes it lower the backward
    graph immediately. Each run leaves its metadata in ``AOTState.fw_metadata``, since 2.9.
    """

    def __init__(
        self,
        partitioner: _Partitioner,
        original: Callable[..., Any],
        state: Any,
        capture: Any,
        compilers: tuple[Any, ...],
    ):
        config = dataclasses.replace(state.aot_config, force_non_lazy_backward_lowering=True)
        self._state = dataclasses.replace(state, aot_config=config)
        self._partitioner, self._original = partitioner, original
        self._capture, self._compilers = capture, compilers
        self._metadata = dict(vars(state.fw_metadata))
        self.finishes = capture.maybe_subclass_meta is None
        """Whether a lowered step is completed; otherwise the chosen one is lowered again."""
        self._ways: dict[int, tuple[Partition, Flags]] = {}

    def lower(self, partition: Partition, flags: Flags) -> Step:
        step = Step()
        self._know(self._metadata)
        joint = copied(self._capture.graph_module)
        with contextlib.suppress(_Lowered):
            function = self._run(joint, partition, flags, _Wrappers(step, not self.finishes))
            step.finished = UnloadedStep(function, dict(vars(self._state.fw_metadata)))
        self._ways[id(step)] = partition, flags
        return step

    def loaded(self, step: Step) -> tuple[Step, Any]:
        """Returns the step that runs, and its function."""
        if step.finished is None:
            return self.compile(*self._ways[id(step)])
        self._know(step.finished.metadata)
        for wrapper in step.wrappers:
            assert wrapper.module is not None
            wrapper.module.load()
        return step, step.finished.function

    def compile(self, partition: Partition, flags: Flags) -> tuple[Step, Any]:
        step = Step()
        self._know(self._metadata)
        return step, self._run(
            self._capture.graph_module, partition, flags, _Wrappers(step, False, loads=True)
        )

    def take_reused(self) -> list[int]:
        """Returns the positions of saved tensors whose memory the backward wrapper may write to.

        Removes them from AOT autograd's metadata, which otherwise raises an error if a graph is
        retained for another backward pass. ``ViewAndMutationMeta.bw_donated_idxs``, since 2.6.
        """
        metadata = self._state.fw_metadata
        reused, metadata.bw_donated_idxs = list(metadata.bw_donated_idxs or ()), []
        return reused

    def _know(self, metadata: dict[str, Any]) -> None:
        known = vars(self._state.fw_metadata)
        known.clear()
        known.update(metadata)

    def _run(
        self, joint: fx.GraphModule, partition: Partition, flags: Flags, wrappers: _Wrappers
    ) -> Any:
        self._partitioner.partition = self._noting(partition, wrappers.step)
        capture = dataclasses.replace(self._capture, graph_module=joint)
        passes = _without_joint_passes() if isinstance(partition, KnownPartition) else nullcontext()
        with passes, private_kernels.fusing(flags), wrappers.made():
            return self._original(self._state, capture, *self._compilers)

    def _noting(self, partition: Partition, step: Step) -> Partition:
        """Returns the partitioner; it also records how many outputs of each kind there are."""

        def noting(joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
            step.num_outputs = options["num_fwd_outputs"]
            step.num_updated = self._state.fw_metadata.num_mutated_inp_runtime_indices
            return partition(joint, inputs, **options)

        return noting


@contextlib.contextmanager
def _without_joint_passes() -> Iterator[None]:
    """Skips Inductor's passes over the joint graph, which come before the partitioner.

    Replaces ``torch._inductor.compile_fx._recursive_joint_graph_passes``, since 2.9.
    """
    from torch._inductor import compile_fx

    place: Any = compile_fx
    original = place._recursive_joint_graph_passes
    place._recursive_joint_graph_passes = lambda module, *_, **__: module
    try:
        yield
    finally:
        place._recursive_joint_graph_passes = original


@dataclass
class _Wrappers:
    """Records the wrappers that Inductor generates for a step."""

    step: Step
    ends: bool
    """Whether to stop AOT autograd once both the forward and the backward wrapper are known."""
    loads: bool = False
    """Whether to load each wrapper immediately."""

    @contextlib.contextmanager
    def made(self) -> Iterator[None]:
        """Replaces ``torch._inductor.graph.GraphLowering._compile_to_module_lines``, since 2.8.

        It writes a wrapper to a file and loads it, and only this compiles its kernels. Reads
        ``example_inputs``, ``constants`` and ``is_backward`` of the graph, since 2.2.
        """
        from torch._inductor.graph import GraphLowering

        place: Any = GraphLowering
        original = place._compile_to_module_lines

        def noting(graph: Any, code: Any) -> Any:
            constants = {**graph.constants, **getattr(graph, "torchbind_constants", {})}
            module = Module(_loading(graph, lambda: original(graph, code)))
            inputs, is_backward = list(graph.example_inputs), bool(graph.is_backward)
            self.step.wrappers.append(Wrapper(code.value, is_backward, inputs, constants, module))
            if self.ends and is_backward:
                raise _Lowered
            if self.loads:
                module.load()
            return module

        place._compile_to_module_lines = noting
        try:
            yield
        finally:
            place._compile_to_module_lines = original


def _loading(graph: Any, load: Callable[[], Any]) -> Callable[[], Any]:
    """Returns a function that loads a wrapper, and can be called later.

    ``V.set_graph_handler`` and ``V.set_debug_handler``, since 2.0, and
    ``AutotuneCacheBundler.end_compile``, since 2.6, which must follow loading.
    """
    from torch._inductor.runtime.autotune_cache import AutotuneCacheBundler
    from torch._inductor.virtualized import V

    debug, bundler = V.debug, cast(Any, AutotuneCacheBundler)

    def loading() -> Any:
        with (
            V.set_graph_handler(graph),
            V.set_debug_handler(debug),
            private_kernels.compiled_by(libraries.compiled),
        ):
            try:
                return load()
            finally:
                bundler.end_compile()

    return loading


def settings() -> str:
    """Returns settings that Inductor's code depends on (``save_config_portable``, since 2.1)."""
    from torch._inductor import config

    rows: Any = config.save_config_portable()
    return repr(sorted((name, repr(value)) for name, value in rows.items()))


def settings_not_promised() -> str:
    """Returns the setting of Inductor that makes its memory unknown; "" if there is none.

    ``torch._inductor.config.cpp_wrapper``, since 2.1, ``fx_wrapper``, since 2.9, and
    ``triton.cudagraphs``, since 2.0. Only CUDA graphs use graph partitions.
    """
    from torch._inductor import config

    if config.cpp_wrapper:
        return "cpp_wrapper, whose code is not Python"
    if getattr(config, "fx_wrapper", False):
        return "fx_wrapper, whose code is a graph"
    if config.triton.cudagraphs:
        return "CUDA graph trees and their graph partitions, which have their own memory pool"
    return ""


def why_not_promised(joint: fx.GraphModule) -> str:
    """Returns what in the graph has an unknown memory need; "" if there is nothing."""
    for node in joint.graph.nodes:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return f"the higher-order operator {node.target}"
        if operators.is_collective(node):
            return f"communication by {node.target}, whose library has its own memory"
        if isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool):
            return f"the dynamic size {node.name}"
    return ""


def keeps_graph() -> bool:
    """Returns whether the running backward pass has ``retain_graph=True``.

    ``torch._C._autograd._get_current_graph_task_keep_graph``, since 2.4.
    """
    keeps: Any = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return bool(keeps()) if keeps is not None else False


def is_profiled() -> bool:
    """``torch.autograd._profiler_enabled``, since 1.x: only one profiler can run."""
    autograd: Any = torch.autograd
    return bool(autograd._profiler_enabled())


@contextlib.contextmanager
def allocations() -> Iterator[list[list[int]]]:
    """Yields a list that, at the end, has each thread's CPU allocations (frees are negative).

    ``torch.autograd._enable_profiler_legacy``, since 1.9: unlike ``torch.profiler`` it starts in
    microseconds and writes nothing. ``torch._C._profiler._ExperimentalConfig``, since 1.12.
    """
    from torch._C._profiler import _ExperimentalConfig

    autograd: Any = torch.autograd
    found: list[list[int]] = []
    memory_alone = (False, True, False, False, False)
    state = autograd.ProfilerState.CPU
    config = autograd.ProfilerConfig(state, *memory_alone, _ExperimentalConfig())
    autograd._enable_profiler_legacy(config)
    try:
        yield found
    finally:
        for thread in autograd._disable_profiler_legacy():
            rows = [e.cpu_memory_usage() for e in thread if e.kind() == "memory_alloc"]
            found.append(rows)


def reinterpreted(tensor: Any, size: Any, stride: Any, offset: int = 0) -> Any:
    """Like ``torch._C._dynamo.guards._reinterpret_tensor``, since 2.1, but uses the dispatcher."""
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


def real_tensors() -> AbstractContextManager[Any]:
    """Within this context operations make real tensors."""
    return private.real_tensors()
