"""The backend of ``torch.compile``: plans each joint graph, and runs what is built from it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, cast

from torch import fx

import ckplan
from ckplan.torch import private
from ckplan.torch.building import Modules, build
from ckplan.torch.capture import capture
from ckplan.torch.costs import set_costs
from ckplan.torch.errors import ReplayError, UnsupportedGraphError
from ckplan.torch.graph import JointGraph
from ckplan.torch.judge import replay_modules
from ckplan.torch.report import GraphReport, Report, recomputed_modules
from ckplan.torch.request import Plan, Request, least_bytes, make_plan, parse_bytes, reserved_bytes
from ckplan.torch.tracker import Tracker


class Backend:
    """Plans the graphs of one model. ``report`` has what became of them."""

    def __init__(self, request: Request):
        self.report = Report(request)
        self._request = request
        self._frames: list[int] = []
        self._is_part = False

    def __call__(self, module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        """Compiles a graph that torch.compile has found."""
        self._is_part = private.ends_in_graph_break(module)
        if self._request.compiler == "inductor":
            return private.compile_with_inductor(module, inputs, self._partition)
        step = _Step(self)
        compiled = private.aot_autograd(
            fw_compiler=step.compile_forward,
            bw_compiler=step.compile_backward,
            inference_compiler=lambda graph, _: private.box(graph),
            partition_fn=step.partition,
            keep_inference_input_mutations=True,
        )
        return cast(Callable[..., Any], compiled(module, inputs))

    def _partition(self, joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        modules, _, _ = self.plan(joint, inputs, **options)
        return modules

    def plan(
        self, joint: fx.GraphModule, inputs: Any, **options: Any
    ) -> tuple[tuple[fx.GraphModule, fx.GraphModule], GraphReport, list[int]]:
        """Returns the two modules, what is said of them, and which gradients are counted apart."""
        entry = GraphReport(self._frame(), is_compiled=self._request.compiler == "inductor")
        self.report.graphs.append(entry)
        self._warn_of_limit(entry.frame)
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
        apart = _counted_apart(captured)
        entry.saved_bytes = _judge(modules, plan, apart)
        entry.plan = plan
        entry.recomputed = recomputed_modules(captured, plan)
        return (modules.forward, modules.backward), entry, apart

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
        """The plan within the limit; for a part of a model, if need be its least.

        The parts that graph breaks make are of any size, and a small one may have nothing to spare.
        """
        is_part = self._is_part or entry.frame > 0
        limit = self._limit(captured, entry.frame)
        try:
            return make_plan(captured, self._request, limit)
        except ckplan.InfeasibleError as error:
            least = least_bytes(error)
            if not is_part or least is None or isinstance(limit, int):
                raise
            entry.note = f"it needs at least {least} bytes, and is planned within them"
            warnings.warn(
                f"a part of a model with graph breaks: {entry.note}", ckplan.PlanWarning, 2
            )
            return make_plan(captured, self._request, least)

    def _frame(self) -> int:
        frame, _ = private.compile_id()
        if frame not in self._frames:
            self._frames.append(frame)
        return self._frames.index(frame)

    def _warn_of_limit(self, frame: int) -> None:
        """TorchDynamo compiles a part of a model only so often, and then runs it in eager mode."""
        compiled = sum(entry.frame == frame for entry in self.report.graphs)
        if compiled == private.recompile_limit():
            warnings.warn(
                f"this is plan {compiled} of one part of the model, and PyTorch asks for no more: "
                "for other sizes of its inputs it will train in eager mode, without a plan; raise "
                "torch._dynamo.config.recompile_limit, or pad batches to fewer sizes",
                ckplan.PlanWarning,
                stacklevel=2,
            )

    def _limit(self, captured: JointGraph, frame: int) -> int | str:
        """What of the request is left for a graph, beside what earlier graphs keep."""
        request = self._request
        if request.total is None:
            assert request.budget is not None
            limit = request.budget
            if limit == "min" or (isinstance(limit, str) and limit.endswith("%")):
                return limit
            left = parse_bytes(limit)
        else:
            trained = _trained_bytes(captured)
            left = parse_bytes(request.total)
            left -= reserved_bytes(captured, trained, request.optimizer)
        earlier = {
            entry.frame: entry.saved_bytes for entry in self.report.graphs if entry.frame < frame
        }
        left -= sum(earlier.values())
        if left <= 0:
            raise ckplan.InfeasibleError(
                f"{request.words()} leaves no room for activations: parameters, inputs and what "
                f"other graphs of the model keep need {-left} bytes more",
                4,
            )
        return left


class _Step:
    """One graph as eager operations. The first step is measured."""

    def __init__(self, backend: Backend):
        self._backend = backend
        self._entry: GraphReport | None = None
        self._apart: list[int] = []
        self._tracker: Tracker | None = None
        self._saved = 0

    def partition(self, joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        modules, self._entry, self._apart = self._backend.plan(joint, inputs, **options)
        if self._entry.plan is not None:
            self._tracker = Tracker()
        return modules

    def compile_forward(self, module: fx.GraphModule, _: Any) -> Callable[[list[Any]], Any]:
        call = private.box(module)

        def run(arguments: list[Any]) -> Any:
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
            return gradients

        return private.mark_boxed(run)


def _judge(modules: Modules, plan: Plan, apart: list[int]) -> int:
    """Refuses modules that need other memory than planned. Returns what waits between passes."""
    replay = replay_modules(modules, apart)
    if replay.peak_bytes != plan.peak_bytes:
        raise ReplayError(
            f"the modules of a plan need {replay.peak_bytes} bytes where the plan says "
            f"{plan.peak_bytes}: they are not used; please report it"
        )
    return replay.saved_bytes


def _counted_apart(captured: JointGraph) -> list[int]:
    """Positions of gradients of parameters whose memory does not count in the peak."""
    positions = []
    for position, node in enumerate(captured.backward_outputs):
        if isinstance(node, fx.Node):
            value = captured.values[captured.value_of[captured.roots[node]]]
            if value.kind == "parameter_gradient":
                positions.append(position)
    return positions


def _trained_bytes(captured: JointGraph) -> int:
    """Bytes of the parameters that a gradient is made for."""
    roots = {captured.roots[n] for n in captured.backward_outputs if isinstance(n, fx.Node)}
    return sum(captured.values[captured.value_of[root]].bytes for root in roots)
