"""The backend of ``torch.compile``: plans each joint graph, and runs what is built from it."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any

from torch import fx

import ckplan
from ckplan.planning import INFEASIBLE
from ckplan.torch import private
from ckplan.torch.building import Modules, build
from ckplan.torch.capture import capture
from ckplan.torch.costs import set_costs
from ckplan.torch.errors import ReplayError, UnsupportedGraphError
from ckplan.torch.graph import JointGraph
from ckplan.torch.judge import replay_modules
from ckplan.torch.parts import Part, Parts
from ckplan.torch.report import GraphReport, Report, recomputed_modules
from ckplan.torch.request import Plan, Request, least_bytes, make_plan
from ckplan.torch.tracker import Tracker


class Backend:
    """Plans the graphs of one model, and notes in ``report`` what became of them.

    ``known`` are the parts of the model where an earlier backend has found several, so that each
    gets its share of a limit in bytes.
    """

    def __init__(self, request: Request, report: Report, known: list[Part] | None = None):
        self.report = report
        self.parts = Parts(request, known)
        self._request = request
        self._is_part = False

    def __call__(self, module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        """Compiles a graph that torch.compile has found."""
        self._is_part = private.ends_in_graph_break(module)
        part = self.parts.enter(private.compiled_frame())
        if self._request.compiler == "inductor":
            partition = functools.partial(self._partition, part)
            compiled = private.compile_with_inductor(module, inputs, partition)
        else:
            step = _Step(functools.partial(self.plan, part))
            compiler = private.aot_autograd(
                fw_compiler=step.compile_forward,
                bw_compiler=step.compile_backward,
                inference_compiler=lambda graph, _: private.box(graph),
                partition_fn=step.partition,
                keep_inference_input_mutations=True,
            )
            compiled = compiler(module, inputs)
        return self._counted(part, compiled)

    def with_shares(self) -> Backend:
        """A backend that plans all parts again, each for its share of the limit."""
        self.report.graphs.clear()
        return Backend(self._request, self.report, self.parts.found)

    def plan(
        self, part: int, joint: fx.GraphModule, inputs: Any, **options: Any
    ) -> tuple[tuple[fx.GraphModule, fx.GraphModule], GraphReport, list[int]]:
        """Returns the two modules, what is said of them, and which gradients are counted apart."""
        entry = GraphReport(part, is_compiled=self._request.compiler == "inductor")
        self.report.graphs.append(entry)
        self._warn_of_limit(part)
        count = options["num_fwd_outputs"]
        static = options.get("static_lifetime_input_indices")
        try:
            captured = self._capture(joint, count, static)
        except UnsupportedGraphError as error:
            entry.refusal = str(error)
            entry.operations = sum(node.op == "call_function" for node in joint.graph.nodes)
            warnings.warn(f"a graph is not planned: {error}", ckplan.PlanWarning, stacklevel=2)
            return private.default_partition(joint, inputs, **options), entry, []
        entry.operations = len(captured.operations)
        plan = self._make_plan(captured, entry)
        modules = build(joint, captured, plan.steps)
        apart = captured.parameter_gradients()
        entry.saved_bytes = _judge(modules, plan, apart)
        entry.plan = plan
        entry.recomputed = recomputed_modules(captured, plan)
        found = self.parts.found[part]
        found.keep_all_peak_bytes, found.saved_bytes = plan.keep_all_peak_bytes, entry.saved_bytes
        return (modules.forward, modules.backward), entry, apart

    def _partition(self, part: int, joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        modules, _, _ = self.plan(part, joint, inputs, **options)
        return modules

    def _counted(self, part: int, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """Counts how often the part runs."""
        found = self.parts.found[part]

        def call(*arguments: Any) -> Any:
            # PyTorch calls a bucket of DistributedDataParallel once while it compiles the next.
            found.calls += not private.is_any_fake(arguments)
            return compiled(*arguments)

        return call

    def _capture(self, joint: fx.GraphModule, count: int, static: list[int] | None) -> JointGraph:
        request = self._request
        captured = capture(
            joint,
            count,
            None if static is None else set(static),
            replays_random=request.compiler == "eager",
            arriving=request.total is not None,
        )
        set_costs(captured, request.costs, fuses=request.compiler == "inductor")
        return captured

    def _make_plan(self, captured: JointGraph, entry: GraphReport) -> Plan:
        """The plan within the limit, or within what a part of the model has of it."""
        request, parts, part = self._request, self.parts, entry.part
        is_divided = self._is_part or part > 0 or parts.is_known(part)
        if request.is_relative:
            return self._plan_within(request.limit, captured, entry, is_divided)
        parts.describe(part, captured)
        left = parts.left_bytes(part)
        if left > 0:
            limit = parts.limit(part, is_divided)
            if isinstance(limit, int) and is_divided:
                entry.share_bytes = limit
            plan = self._plan_within(limit, captured, entry, is_divided)
            left -= plan.peak_bytes
            if left >= 0:
                return plan
        raise ckplan.InfeasibleError(
            f"{request.words()} is too little: beside parameters, inputs and what other parts of "
            f"the model keep, part {part} needs {-left} bytes more",
            INFEASIBLE,
        )

    def _plan_within(
        self, limit: int | str, captured: JointGraph, entry: GraphReport, is_divided: bool
    ) -> Plan:
        """The plan within ``limit``; for one of several parts, if need be its least.

        The parts that graph breaks make are of any size, and a small one may have nothing to spare.
        """
        request = self._request
        if limit == "min" != request.limit:  # The first of two plans (see Parts), in milliseconds.
            request = dataclasses.replace(request, algo="dtr")
        try:
            return make_plan(captured, request, limit)
        except ckplan.InfeasibleError as error:
            least = least_bytes(error)
            if not is_divided or least is None:
                raise
            entry.note = f"it needs at least {least} bytes, and is planned within them"
            warnings.warn(f"a part of a model: {entry.note}", ckplan.PlanWarning, stacklevel=2)
            return make_plan(captured, request, least)

    def _warn_of_limit(self, part: int) -> None:
        """TorchDynamo compiles a part of a model only so often, and then runs it in eager mode."""
        compiled = sum(entry.part == part for entry in self.report.graphs)
        compiled += self.parts.is_known(part)  # The plan of the first call.
        if compiled == private.recompile_limit():
            warnings.warn(
                f"this is plan {compiled} of one part of the model, and PyTorch asks for no more: "
                "for other sizes of its inputs it will train in eager mode, without a plan; raise "
                "torch._dynamo.config.recompile_limit, or pad batches to fewer sizes",
                ckplan.PlanWarning,
                stacklevel=2,
            )


class _Step:
    """One graph as eager operations. The first step is measured."""

    def __init__(self, plan: Callable[..., Any]):
        self._plan = plan
        self._entry: GraphReport | None = None
        self._apart: list[int] = []
        self._tracker: Tracker | None = None
        self._has_run = False

    def partition(self, joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        modules, self._entry, self._apart = self._plan(joint, inputs, **options)
        if self._entry.plan is not None:
            self._tracker = Tracker()
        return modules

    def compile_forward(self, module: fx.GraphModule, _: Any) -> Callable[[list[Any]], Any]:
        call = private.box(module)

        def run(arguments: list[Any]) -> Any:
            if self._has_run:  # Layers of one form share the graph: what they need is mixed.
                self._tracker = None
            self._has_run = True
            if self._tracker is None:
                return call(arguments)
            return self._tracker.run(call, arguments)

        return private.mark_boxed(run)

    def compile_backward(self, module: fx.GraphModule, _: Any) -> Callable[[list[Any]], Any]:
        call = private.box(module)
        inputs = [node.name for node in module.graph.find_nodes(op="placeholder")]
        tangents = [i for i, name in enumerate(inputs) if name.startswith("tangents")]

        def run(arguments: list[Any]) -> Any:
            if self._tracker is None:
                return call(arguments)
            tracker, self._tracker = self._tracker, None
            tracker.forget_dead()
            tracker.hold(arguments[i] for i in tangents)
            gradients = tracker.run(call, arguments)
            assert self._entry is not None
            apart = [gradients[i] for i in self._apart]
            self._entry.measured_peak_bytes = tracker.peak_bytes(apart)
            _warn_above_plan(self._entry)
            return gradients

        return private.mark_boxed(run)


def _warn_above_plan(entry: GraphReport) -> None:
    if entry.plan is not None and entry.is_above_plan:
        warnings.warn(
            f"the first step of graph {entry.part} needed {entry.measured_peak_bytes} bytes, where "
            f"{entry.plan.peak_bytes} were planned; a graph that is retained for a second "
            "backward pass keeps more, all else is a fault of ckplan.torch: please report it",
            ckplan.PlanWarning,
            stacklevel=2,
        )


def _judge(modules: Modules, plan: Plan, apart: list[int]) -> int:
    """Refuses modules that need other memory than planned. Returns what waits between passes."""
    replay = replay_modules(modules, apart)
    if replay.peak_bytes != plan.peak_bytes:
        raise ReplayError(
            f"the modules of a plan need {replay.peak_bytes} bytes where the plan says "
            f"{plan.peak_bytes}: they are not used; please report it"
        )
    return replay.saved_bytes
