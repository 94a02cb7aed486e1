"""Plans the joint graphs of one model, and builds modules from the plans."""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from collections.abc import Collection
from typing import Any

from torch import fx

import ckplan
from ckplan.invocation import INFEASIBLE
from ckplan.torch import obstacles, private, private_autograd
from ckplan.torch.capture import capture, storage_bytes, tensors_in
from ckplan.torch.constraints import Constraints
from ckplan.torch.costs import device_of, set_costs
from ckplan.torch.errors import ReplayError, UnboundedSizeError, UnsupportedGraphError
from ckplan.torch.graph import JointGraph
from ckplan.torch.inductor.costs import set_fused_costs
from ckplan.torch.memory import bytes_with_allocator
from ckplan.torch.module_builder import Modules, build
from ckplan.torch.module_replay import Replay, replay_modules
from ckplan.torch.offload.movable import pin_to_device
from ckplan.torch.parts import Part, Parts
from ckplan.torch.replacement import PlannedModules
from ckplan.torch.report import GraphReport, Report, recomputed_modules, size
from ckplan.torch.request import Plan, Request, make_plan
from ckplan.torch.unused_results import Unused, better_plan_refused, without_gradients

_ATTEMPTS = 6
"""How many plans are tried to leave the allocator enough of ``memory``."""

_RETAINED_ROUNDS = 8
"""How many plans are tried for a retained graph."""


class GraphPlanner:
    """Plans the graphs of one model, and records the results in ``report``.

    ``known`` has the parts of the model if an earlier backend found several; each part then gets
    its share of a limit in bytes.
    """

    def __init__(self, request: Request, report: Report, known: list[Part] | None = None):
        self.report = report
        self.parts = Parts(request, known)
        self.constraints = Constraints(request.constraints())
        self.request = request
        self._is_part = False
        # By part and hash of the graph: report, plan and note.
        self._plans: dict[tuple[int, bytes], tuple[GraphReport, Plan, str]] = {}

    def may_share(self) -> bool:
        """Returns whether graphs that have run may be planned again for a share of the limit."""
        return False

    def share(self) -> None:
        """Discards all plans, so that each graph is planned for its share of the limit."""
        self.parts = self.parts.shared()
        self._plans.clear()

    def plan(
        self, part: int, joint: fx.GraphModule, inputs: Any, **options: Any
    ) -> tuple[tuple[fx.GraphModule, fx.GraphModule], GraphReport, list[int]]:
        """Returns the two modules, their report, and the positions of uncounted gradients."""
        entry = self.begin(part, joint)
        try:
            captured = self.capture(joint, options)
        except UnsupportedGraphError as error:
            self.refuse(entry, joint, error)
            return private_autograd.default_partition(joint, inputs, **options), entry, []
        entry, plan = self._plan_once(captured, entry)
        built = self._build(joint, captured, entry, plan)
        return (built.forward, built.backward), entry, built.uncounted

    def plan_for_loss(
        self, part: int, joint: fx.GraphModule, options: dict[str, Any], unused: Unused
    ) -> tuple[PlannedModules, GraphReport, PlannedModules] | None:
        """Plans the graph for a caller that promised to use only the loss.

        Returns modules that keep everything, in case the caller breaks the promise, the report,
        and the planned modules. Returns None if there is no such plan.
        """
        entry = self.begin(part, joint)
        try:
            everything = self.capture(joint, options)
            reduced = without_gradients(joint, unused.absent)
            captured = self.capture(reduced, options, unused.dropped)
        except UnsupportedGraphError:
            self.report.graphs.remove(entry)
            return None
        entry, plan = self._plan_once(captured, entry)
        try:
            built = self._build(reduced, captured, entry, plan, unused.dropped)
        except ReplayError as error:
            self.report.graphs.remove(entry)
            self.report.say(better_plan_refused(error))
            return None
        order = [operation.id for operation in everything.operations]
        modules = build(joint, everything, order)
        uncounted = everything.parameter_gradients()
        return PlannedModules(modules.forward, modules.backward, uncounted), entry, built

    def plan_again(
        self,
        entry: GraphReport,
        joint: fx.GraphModule,
        options: dict[str, Any],
        unused: Unused,
    ) -> PlannedModules | None:
        """Plans the graph for a caller that does not use all of its results.

        Returns None if that saves no memory.
        """
        first = entry.plan
        if first is None or self.parts.are_found():  # All parts will be planned again.
            return None
        try:
            reduced = without_gradients(joint, unused.absent)
            captured = self.capture(reduced, options, unused.dropped)
            plan = self.make_plan(captured, entry)
        except ckplan.InfeasibleError:
            return None
        if plan.keep_all_peak_bytes >= first.keep_all_peak_bytes:
            return None
        return self._build(reduced, captured, entry, plan, unused.dropped)

    def plan_retained(
        self,
        entry: GraphReport,
        joint: fx.GraphModule,
        options: dict[str, Any],
        unused: Unused,
    ) -> PlannedModules | None:
        """Plans a graph that is retained for another backward pass, within the limit of its plan.

        Its saved tensors stay to the end, and their size is known only after planning, so smaller
        and smaller budgets are tried until everything fits. Returns None if the current plan is
        best.
        """
        reduced = without_gradients(joint, unused.absent)
        captured = self.capture(reduced, options, unused.dropped)
        order = [operation.id for operation in captured.operations]
        everything = build(reduced, captured, order)
        uncounted = captured.parameter_gradients()
        kept = replay_modules(everything, uncounted, unused.dropped, is_retained=True).peak_bytes
        limit = self._limit_retained(entry, kept)
        if limit is None:
            return None
        assert entry.plan is not None
        entry.plan = dataclasses.replace(entry.plan, keep_all_peak_bytes=kept)
        if entry.retained_peak_bytes <= limit:
            return None
        best = self._least_retained(reduced, captured, entry, limit, unused)
        if best is None:
            return None
        built = self._build(reduced, captured, entry, best, unused.dropped)
        entry.plan = dataclasses.replace(best, keep_all_peak_bytes=kept)
        return built

    def _limit_retained(self, entry: GraphReport, kept: int) -> int | None:
        """Returns the limit of a step that needs ``kept`` bytes if it keeps everything."""
        assert entry.plan is not None
        if not self.request.is_relative or self.request.limit == "min":
            return entry.plan.budget_bytes
        return int(kept * float(str(self.request.limit).removesuffix("%")) / 100)

    def _least_retained(
        self,
        joint: fx.GraphModule,
        captured: JointGraph,
        entry: GraphReport,
        limit: int,
        unused: Unused,
    ) -> Plan | None:
        """Returns the fastest plan that fits in a limit with a retained graph.

        If none fits, returns the smallest; None if that is the plan of ``entry``.
        """
        assert entry.plan is not None
        uncounted = captured.parameter_gradients()
        best, least, too_low = None, entry.retained_peak_bytes, 0
        too_high = int(entry.plan.document["result"]["peak_bytes"])
        aim = too_high + limit - least
        for _ in range(_RETAINED_ROUNDS):
            if not too_low < aim < too_high:
                break
            try:
                plan = make_plan(captured, self.request, aim)
            except ckplan.InfeasibleError as error:
                too_low, aim = aim, error.least_bytes or (aim + too_high) // 2
                continue
            modules = build(joint, captured, plan.schedule, on_host=plan.on_host)
            needed = replay_modules(modules, uncounted, unused.dropped, is_retained=True).peak_bytes
            if needed > limit:
                if needed < least:
                    best, least = plan, needed
                too_high = plan.peak_bytes
                aim = too_high + limit - needed if best is None else (too_low + too_high) // 2
                continue
            if best is None or least > limit or plan.added_cost <= best.added_cost:
                best, least = plan, needed
            too_low = max(aim, plan.peak_bytes)
            aim = (too_low + too_high) // 2
        return best

    def plan_anew(
        self,
        entry: GraphReport,
        joint: fx.GraphModule,
        options: dict[str, Any],
        unused: Unused,
    ) -> PlannedModules:
        """Plans the graph within its current limit."""
        reduced = without_gradients(joint, unused.absent)
        captured = self.capture(reduced, options, unused.dropped)
        plan = self.make_plan(captured, entry)
        return self._build(reduced, captured, entry, plan, unused.dropped)

    def refuse(
        self, entry: GraphReport, joint: fx.GraphModule, error: UnsupportedGraphError
    ) -> None:
        """Records and warns that a graph is not planned.

        Raises the error if the caller passed ``bounds``, but one is missing.
        """
        if self.request.bounds is not None and isinstance(error, UnboundedSizeError):
            raise error
        entry.refusal = str(error)
        entry.operations = sum(node.op == "call_function" for node in joint.graph.nodes)
        warnings.warn(f"a graph is not planned: {error}", ckplan.PlanWarning, stacklevel=2)

    def begin(self, part: int, joint: fx.GraphModule) -> GraphReport:
        entry = GraphReport(part, is_compiled=self.request.compiler == "inductor")
        self.report.graphs.append(entry)
        self._warn_of_recompile_limit(part)
        if obstacles.has_checkpoints(joint):
            self.report.say(obstacles.CHECKPOINTS)
        return entry

    def _build(
        self,
        joint: fx.GraphModule,
        captured: JointGraph,
        entry: GraphReport,
        plan: Plan,
        dropped: Collection[int] = (),
    ) -> PlannedModules:
        """Builds the modules of a plan, checks their memory, and completes the report."""
        modules = build(
            joint,
            captured,
            plan.schedule,
            on_host=plan.on_host,
            is_compiled=self.request.compiler == "inductor",
        )
        uncounted = captured.parameter_gradients()
        updates = sum(
            storage_bytes(tensor)
            for copy in captured.boundary_copies
            for tensor in tensors_in(copy.all_input_nodes[-1].meta.get("val"))
        )
        replay = _check_replay(modules, plan, uncounted, dropped, updates)
        entry.saved_bytes, entry.saved_host_bytes = replay.saved_bytes, replay.saved_host_bytes
        self.describe(entry, captured, plan)
        found = self.parts.found[entry.part]
        found.keep_all_peak_bytes, found.saved_bytes = plan.keep_all_peak_bytes, entry.saved_bytes
        found.saved_host_bytes = entry.saved_host_bytes
        return PlannedModules(modules.forward, modules.backward, uncounted)

    def describe(self, entry: GraphReport, captured: JointGraph, plan: Plan | None) -> None:
        """Completes a report with the plan, if there is one."""
        entry.operations = len(captured.operations)
        entry.plan = plan
        if plan is not None:
            entry.recomputed = recomputed_modules(captured, plan)

    def capture(
        self, joint: fx.GraphModule, options: dict[str, Any], dropped: Collection[int] = ()
    ) -> JointGraph:
        request = self.request
        static = options.get("static_lifetime_input_indices")
        captured = capture(
            joint,
            options["num_fwd_outputs"],
            None if static is None else set(static),
            replays_random=request.compiler == "eager",
            arriving=request.counts_tensors,
            dropped=dropped,
            bounds=request.bounds,
        )
        if request.compiler == "inductor" and request.costs.partition(":")[0] == "roofline":
            set_fused_costs(captured, device_of(captured, request.costs))
        else:
            set_costs(captured, request.costs, fuses=False)
        self.constraints.apply(captured)
        if request.offload is not None:
            pin_to_device(captured, is_compiled=request.compiler == "inductor")
        return captured

    def _plan_once(self, captured: JointGraph, entry: GraphReport) -> tuple[GraphReport, Plan]:
        """Returns the report and plan of a graph; equal graphs of a part share a plan.

        PyTorch compiles a part again whenever a value changes that its Python code depends on,
        such as an attribute that the first call set. The graph is often the same.
        """
        key = entry.part, hashlib.sha256(captured.to_bytes()).digest()
        if key not in self._plans:
            plan = self.make_plan(captured, entry)
            self._plans[key] = entry, plan, entry.note
            return entry, plan
        earlier, plan, note = self._plans[key]
        earlier.note = note
        earlier.compilations += 1
        self.report.graphs.remove(entry)
        return earlier, plan

    def make_plan(self, captured: JointGraph, entry: GraphReport) -> Plan:
        """Returns the plan within the limit, or within the part's share of it."""
        limit, is_divided = self.limit_of(captured, entry)
        try:
            plan = self._plan_within(limit, captured, entry, is_divided)
        except ckplan.InfeasibleError as error:
            # The program was given only the part left for activations.
            if not self.request.counts_tensors or error.least_bytes is None:
                raise
            raise self._infeasible_error(entry.part, error.least_bytes) from error
        if not self.request.is_relative and self.parts.left_bytes(entry.part) < plan.peak_bytes:
            raise self._infeasible_error(entry.part, plan.peak_bytes)
        return plan

    def limit_of(self, captured: JointGraph, entry: GraphReport) -> tuple[int | str, bool]:
        """Returns the limit of a part, and whether it is known to be one of several.

        Raises InfeasibleError if the other parts leave nothing.
        """
        request, parts, part = self.request, self.parts, entry.part
        is_divided = self._is_part or part > 0 or parts.is_known(part)
        if request.is_relative:
            return request.limit, is_divided
        parts.describe(part, captured)
        left = parts.left_bytes(part)
        if left <= 0:
            raise self._infeasible_error(part, self._least_bytes(captured))
        limit = parts.limit(part, is_divided)
        if isinstance(limit, int) and is_divided:
            entry.share_bytes = limit
        return limit, is_divided

    def _plan_within(
        self, limit: int | str, captured: JointGraph, entry: GraphReport, is_divided: bool
    ) -> Plan:
        """Returns the plan within ``limit``, or a part's smallest plan if none fits.

        Graph breaks can make parts so small that they cannot save their share.
        """
        request = self.request
        if limit == "min" != request.limit:
            # This is the first of two plans (see Parts), so a quick one will do.
            request = dataclasses.replace(request, algo="dtr")
        host_memory = self.parts.host_left_bytes(entry.part)
        if request.memory is not None and isinstance(limit, int) and not is_divided:
            return self._plan_in_memory(limit, captured)
        if request.memory is not None:
            self.report.say(obstacles.ALLOCATOR)
        try:
            return make_plan(captured, request, limit, host_memory)
        except ckplan.InfeasibleError as error:
            least = error.least_bytes
            if not is_divided or least is None:
                raise
            entry.note = f"it needs at least {least} bytes; its budget was raised to that"
            if least < obstacles.SMALL_BYTES:
                self.report.say(obstacles.SMALL_PARTS)
            else:
                warnings.warn(f"a part of a model: {entry.note}", ckplan.PlanWarning, stacklevel=2)
            return make_plan(captured, request, least, host_memory)

    def _plan_in_memory(self, limit: int, captured: JointGraph) -> Plan:
        """Returns a plan that fits in ``limit`` together with the allocator's overhead.

        The overhead depends on the plan, so smaller and smaller budgets are tried.
        """
        request, less, needed = self.request, 0, 0
        capacity = request.limit_bytes + request.cublas_bytes
        for _ in range(_ATTEMPTS):
            try:
                plan = make_plan(captured, request, limit - less)
            except ckplan.InfeasibleError:
                if not less:
                    raise
                break
            needed = bytes_with_allocator(captured, plan, request, capacity)
            if needed <= limit:
                return plan
            less = max(2 * less, needed - limit)
        raise self._infeasible_error(0, needed)

    def _least_bytes(self, captured: JointGraph) -> int:
        """Returns the smallest budget for which a plan of the graph is found."""
        try:
            return make_plan(captured, self.request, 1).peak_bytes
        except ckplan.InfeasibleError as error:
            if error.least_bytes is not None:
                return error.least_bytes
        greedy = dataclasses.replace(self.request, algo="dtr")
        return make_plan(captured, greedy, "min").peak_bytes

    def _infeasible_error(self, part: int, least: int) -> ckplan.InfeasibleError:
        """Returns the error that a part needs ``least`` bytes, more than the limit leaves."""
        request = self.request
        missing = least - self.parts.left_bytes(part)
        needed = request.limit_bytes + missing
        kind = request.words().partition(" ")[0]
        needed += request.outside_bytes
        message = (
            f"{request.words()} is too little: the least {kind} is {size(needed)} ({needed} bytes), "
            f"because with parameters, inputs and what other parts of the model keep, part {part} "
            f"needs {missing} bytes more"
        )
        # For budgets, the program itself suggests this.
        is_number = request.total is not None and str(request.total).isdigit()
        if is_number and request.limit_bytes < 1000:
            message += f'; {request.total} is a number of bytes, did you mean "{request.total}GiB"?'
        return ckplan.InfeasibleError(message, INFEASIBLE, kind="infeasible", least_bytes=needed)

    def _warn_of_recompile_limit(self, part: int) -> None:
        """Warns before TorchDynamo's recompile limit, after which it runs a part in eager mode."""
        compiled = sum(e.compilations for e in self.report.graphs if e.part == part)
        compiled += self.parts.is_known(part)  # The first call may have made one more.
        if compiled == private.recompile_limit():
            warnings.warn(
                f"this is plan {compiled} for one part of the model, PyTorch's recompile limit: "
                "with further input sizes it will train in eager mode, without a plan; raise "
                "torch._dynamo.config.recompile_limit, or pad batches to fewer sizes",
                ckplan.PlanWarning,
                stacklevel=2,
            )


def _check_replay(
    modules: Modules, plan: Plan, uncounted: list[int], dropped: Collection[int], updates: int
) -> Replay:
    """Returns the memory that modules need. Raises ReplayError if it is not as planned.

    It may be less by ``updates``, the bytes of buffers' new values: plans count them until the
    gradients arrive, but forward modules free them earlier.
    """
    replay = replay_modules(modules, uncounted, dropped)
    needed = {"": replay.peak_bytes, " of host memory": replay.host_peak_bytes}
    planned = {"": plan.peak_bytes, " of host memory": plan.host_peak_bytes}
    for what, count in needed.items():
        if not planned[what] - updates <= count <= planned[what]:
            raise ReplayError(
                f"the modules of a plan need {count} bytes{what}, but the plan says "
                f"{planned[what]}: they are not used; this is a bug in ckplan.torch, please report it"
            )
    return replay
