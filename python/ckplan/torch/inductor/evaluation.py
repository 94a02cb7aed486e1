"""Lowers and replays the candidates for one joint graph."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from typing import Any

from torch import fx

import ckplan
from ckplan.torch.costs import device_of
from ckplan.torch.graph import JointGraph
from ckplan.torch.inductor import lowered_step, private
from ckplan.torch.inductor.candidate_search import KNOB, PLAIN, PLAN, Candidate, Recipe
from ckplan.torch.inductor.costs import step_cost, with_drawn_costs
from ckplan.torch.inductor.groups import Groups
from ckplan.torch.inductor.memory_estimate import estimated_peak_bytes
from ckplan.torch.inductor.operator_workspaces import set_workspaces, workspace_bytes
from ckplan.torch.inductor.replay import replay
from ckplan.torch.module_builder import build
from ckplan.torch.request import Plan, Request, make_plan


class Joint:
    """A joint graph that Inductor is about to partition, and its capture."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self._module: fx.GraphModule | None = None
        self._inputs: Any = None
        self._captured: JointGraph | None = None

    @property
    def module(self) -> fx.GraphModule:
        assert self._module is not None, "plain Inductor's partition comes first"
        return self._module

    @property
    def captured(self) -> JointGraph:
        assert self._captured is not None
        return self._captured

    @captured.setter
    def captured(self, graph: JointGraph) -> None:
        self._captured = graph

    def plain(self, module: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        """Partitions the graph as plain Inductor does, and keeps a copy."""
        self.note(module, inputs, options)
        return private.min_cut(module, inputs, **options)

    def note(self, module: fx.GraphModule, inputs: Any, options: dict[str, Any]) -> None:
        """Keeps a copy of the graph after Inductor's passes."""
        if self._module is None:
            self._module, self._inputs, self.options = private.copied(module), inputs, options

    def by_knob(self, value: float) -> tuple[fx.GraphModule, fx.GraphModule]:
        """Returns the two modules for a value of PyTorch's memory budget knob."""
        within = private.min_cut_within(value)
        forward, backward = within(private.copied(self.module), self._inputs, **self.options)
        return forward, backward

    def planned(self, plan: Plan) -> tuple[fx.GraphModule, fx.GraphModule]:
        """Returns the two modules of a plan."""
        modules = build(self.module, self.captured, plan.steps)
        return modules.forward, modules.backward

    def partition(self, recipe: Recipe, plan: Plan | None) -> lowered_step.Partition:
        """Returns the partitioner for a recipe, and its plan if it has one."""
        if recipe.kind == KNOB:
            return lowered_step.KnownPartition(lambda: self.by_knob(float(recipe.value)))
        if plan is None:
            return private.min_cut
        return lowered_step.KnownPartition(lambda: self.planned(plan))


_ROOM = 1.1
"""A value of the knob is skipped if its modules hold this many times the limit before fusion."""

_DOUBT = 1.02
"""The knob is skipped if its relative cost by operations (to those of the step) is this many times
the best plan's relative cost by kernels (to plain Inductor's). Fusion makes reruns cheaper, so the
relative cost by kernels can be lower than by operations."""

_NEARLY = 1.05
"""The smallest plan of groups is used if it needs at most this many times the limit: it is slow to
prove that none fits, and the replayed peak differs anyway."""


class Evaluation:
    """Lowers and replays recipes for a joint graph. ``is_quick`` requests quick plans.

    Without ``counts_operators``, memory that operators allocate within their calls does not count,
    and no operator runs.
    """

    def __init__(
        self,
        joint: Joint,
        request: Request,
        lower: lowered_step.Lower,
        counts_operators: bool = True,
    ):
        self.is_quick = False
        self.most: int | None = None
        """Candidates that are known to need more are not lowered."""
        self._joint, self._request, self._lower = joint, request, lower
        self._counts_operators = counts_operators
        self._device = device_of(joint.captured, request.costs)
        self._uncounted = joint.captured.parameter_gradients()
        self._tried: set[tuple[tuple[int, ...], bool]] = set()
        self._groups = functools.cache(self._made_groups)
        self._least: dict[Groups | None, int] = {}
        """The smallest peak of plans of groups, or of operations, once a limit was too small."""
        self._costs = {operation.name: operation.cost for operation in joint.captured.operations}
        self._once_cost = sum(self._costs.values())
        self._plain_cost = 0
        self._least_cost = math.inf
        """The cost of the fastest lowered plan that fits in the limit."""
        self._knob_is_slow = False
        """Whether the knob was skipped as too slow; lower values, which rerun more, are slower."""

    def fork(self) -> Evaluation:
        """Returns a copy. What one of the two tries later does not affect the other."""
        other = copy.copy(self)
        other._tried, other._least = set(self._tried), dict(self._least)
        return other

    def __call__(self, recipe: Recipe) -> Candidate | None:
        plan = self._plan(recipe) if recipe.kind == PLAN else None
        if plan is not None:
            key = tuple(plan.steps), recipe.near
            if key in self._tried:
                return None
            self._tried.add(key)
        elif recipe.kind == PLAN:
            return None
        if recipe.kind == KNOB:
            return self._by_knob(recipe)
        partition = self._joint.partition(recipe, plan)
        found = self.candidate(recipe, self._lower(partition, recipe.flags(plan)), plan)
        if plan is not None and self.most is not None and found.peak_bytes <= self.most:
            self._least_cost = min(self._least_cost, found.cost)
        return found

    def _by_knob(self, recipe: Recipe) -> Candidate | None:
        """Lowers the knob's modules if they may fit in the limit and be faster than plans."""
        if self._knob_is_slow:
            return None
        modules = self._joint.by_knob(float(recipe.value))
        if self.most is not None and self._held_bytes(*modules) > _ROOM * self.most:
            return None
        nodes = [node for module in modules for node in module.graph.nodes]
        share = sum(self._costs.get(node.name, 0) for node in nodes) / max(1, self._once_cost)
        if share * self._plain_cost > _DOUBT * self._least_cost:
            self._knob_is_slow = True
            return None
        step = self._lower(lowered_step.KnownPartition(lambda: modules), recipe.flags(None))
        return self.candidate(recipe, step, None)

    def _held_bytes(self, forward: fx.GraphModule, backward: fx.GraphModule) -> int:
        results = self._joint.options["num_fwd_outputs"]
        return estimated_peak_bytes(forward, backward, results, self._uncounted)

    def candidate(self, recipe: Recipe, step: lowered_step.Step, plan: Plan | None) -> Candidate:
        """Replays a step. Raises NotReplayedError."""
        found = replay(step, self._uncounted)
        within = workspace_bytes(found.calls) if self._counts_operators else {}
        cost = step_cost(found.calls, self._request.costs, self._device)
        if recipe.kind == PLAIN:
            self._plain_cost = cost
            set_workspaces(self._joint.captured, found.calls, within)
        return Candidate(
            recipe,
            found.peak_bytes(within),
            found.tensors_peak_bytes,
            found.saved_bytes,
            cost,
            plan,
            found.changes,
            step,
        )

    def _plan(self, recipe: Recipe) -> Plan | None:
        """Returns the plan within the recipe's limit, or else the smallest one, if there is any."""
        request, limit = self._request, recipe.value
        if self.is_quick:
            request = dataclasses.replace(request, algo="dtr")
        assert not isinstance(limit, float)
        kinds = self._kinds(recipe)
        for groups in kinds:
            plan = self._plan_within(groups, request, limit)
            if plan is not None:
                return plan
            if isinstance(limit, int) and self._least.get(groups, math.inf) <= _NEARLY * limit:
                break
        known = [groups for groups in kinds if groups in self._least]
        if not known:
            return None
        smallest = min(known, key=lambda groups: self._least[groups])
        return self._plan_within(smallest, request, self._least[smallest])

    def _plan_within(
        self, groups: Groups | None, request: Request, limit: int | str
    ) -> Plan | None:
        """Returns a plan of groups, or of operations; None if there is none within the limit."""
        if isinstance(limit, int) and limit < self._least.get(groups, 0):
            return None
        try:
            plan = make_plan(groups.graph if groups else self._joint.captured, request, limit)
        except ckplan.InfeasibleError as error:
            if error.least_bytes is not None:
                self._least[groups] = error.least_bytes
            return None
        return groups.expanded(plan) if groups else plan

    def _kinds(self, recipe: Recipe) -> list[Groups | None]:
        """Returns the groups to plan, in order of preference; None stands for single operations."""
        if not recipe.fused:
            return [None]
        graph = self._joint.captured
        if recipe.draws:
            drawing = with_drawn_costs(graph, self._device)
            return [] if drawing is graph else [self._groups(False, draws=True)]
        avoiding, keeping = self._groups(False), self._groups(True)
        return [avoiding, keeping] if avoiding.masks and recipe.value != "min" else [keeping]

    def _made_groups(self, keeps_masks: bool, draws: bool = False) -> Groups:
        graph = self._joint.captured
        return Groups(with_drawn_costs(graph, self._device) if draws else graph, keeps_masks)
