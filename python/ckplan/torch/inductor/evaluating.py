"""Lowers and replays the candidates for one joint graph."""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import fx

import ckplan
from ckplan.torch.building import build
from ckplan.torch.costs import device_of
from ckplan.torch.graph import JointGraph
from ckplan.torch.inductor import private
from ckplan.torch.inductor.costs import step_cost
from ckplan.torch.inductor.replay import replay
from ckplan.torch.inductor.rounds import KNOB, PLAN, Candidate, Recipe
from ckplan.torch.inductor.scratch import within_calls
from ckplan.torch.request import Plan, Request, make_plan


class Joint:
    """A joint graph that Inductor is about to divide, and its capture."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self._module: fx.GraphModule | None = None
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
        """Divides it as plain Inductor does, and notes it."""
        self.note(module, options)
        return private.min_cut(module, inputs, **options)

    def note(self, module: fx.GraphModule, options: dict[str, Any]) -> None:
        """Keeps a copy of the graph, as Inductor's passes have left it."""
        if self._module is None:
            self._module, self.options = private.copied(module), options

    def partition(self, recipe: Recipe, plan: Plan | None) -> private.Partition:
        """Returns what divides it by a recipe, with the plan if it has one."""
        if plan is None:
            knob = recipe.kind == KNOB
            return private.min_cut_within(float(recipe.value)) if knob else private.min_cut

        def planned(_: fx.GraphModule, inputs: Any, **options: Any) -> Any:
            modules = build(self.module, self.captured, plan.steps)
            return modules.forward, modules.backward

        return planned


class Evaluation:
    """Lowers and replays recipes for a joint graph. ``is_quick`` asks for quick plans.

    Without ``counts_operators``, what operators allocate within their calls is not counted, and no
    operator runs.
    """

    def __init__(
        self,
        joint: Joint,
        request: Request,
        lower: private.Lower,
        counts_operators: bool = True,
    ):
        self.is_quick = False
        self._joint, self._request, self._lower = joint, request, lower
        self._counts_operators = counts_operators
        self._device = device_of(joint.captured, request.costs)
        self._apart = joint.captured.parameter_gradients()
        self._tried: set[tuple[tuple[int, ...], bool]] = set()

    def __call__(self, recipe: Recipe) -> Candidate | None:
        plan = self._plan(recipe) if recipe.kind == PLAN else None
        if plan is not None:
            key = tuple(plan.steps), recipe.near
            if key in self._tried:
                return None
            self._tried.add(key)
        elif recipe.kind == PLAN:
            return None
        step = self._lower(self._joint.partition(recipe, plan), recipe.flags)
        return self.candidate(recipe, step, plan)

    def candidate(self, recipe: Recipe, step: private.Step, plan: Plan | None) -> Candidate:
        """Replays a step. Raises NotReplayedError."""
        found = replay(step, self._apart)
        within = within_calls(found.calls) if self._counts_operators else {}
        return Candidate(
            recipe,
            found.peak_bytes(within),
            found.tensors_peak_bytes,
            found.saved_bytes,
            step_cost(found.calls, self._request.costs, self._device),
            plan,
            found.changes,
        )

    def _plan(self, recipe: Recipe) -> Plan | None:
        """Returns the plan within the recipe's limit, or the smallest one; None without any."""
        request, limit = self._request, recipe.value
        if self.is_quick:
            request = dataclasses.replace(request, algo="dtr")
        assert not isinstance(limit, float)
        try:
            return make_plan(self._joint.captured, request, limit)
        except ckplan.InfeasibleError as error:
            if error.least_bytes is None:
                return None
            return make_plan(self._joint.captured, request, error.least_bytes)
