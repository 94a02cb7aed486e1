"""Decides how Inductor compiles the graphs of one part of a model, and promises their memory."""

from __future__ import annotations

import hashlib
import time
import warnings
from dataclasses import dataclass
from typing import Any

from torch import fx

import ckplan
from ckplan.invocation import INFEASIBLE
from ckplan.torch.errors import ReplayError, UnsupportedGraphError
from ckplan.torch.graph_planner import GraphPlanner
from ckplan.torch.inductor import lowered_step, private
from ckplan.torch.inductor.candidate_search import PLAIN, PLAN, Candidate, Recipe, Search
from ckplan.torch.inductor.choice_cache import CachedChoice
from ckplan.torch.inductor.evaluation import Evaluation, Joint
from ckplan.torch.inductor.first_step import FirstStep, copy_retained
from ckplan.torch.inductor.lowered_step import NotReplayedError
from ckplan.torch.inductor.operator_workspaces import workspace_bytes
from ckplan.torch.inductor.promise import Promise
from ckplan.torch.inductor.replay import replay
from ckplan.torch.report import GraphReport, percent, size
from ckplan.torch.request import Plan


RETAINED_NOTE = "retain_graph keeps more than is promised"

RETAINED = (
    "a graph is retained for another backward pass, so its saved tensors stay and a step needs more "
    'than promised; with compiler="eager", plans take this into account'
)


@dataclass
class ChosenStep:
    """The decision for a graph."""

    entry: GraphReport
    recipe: Recipe
    plan: Plan | None
    step: lowered_step.Step | None = None
    """The lowered step, for this compilation."""


Key = tuple[int, bytes, str]
"""A part of a model, its graph and its limit."""


class PartDecision(lowered_step.Decision):
    """Decides for one part of a model."""

    def __init__(self, backend: GraphPlanner, part: int, decided: dict[Key, ChosenStep]):
        self._backend, self._part, self._decided = backend, part, decided
        self._joint = Joint()
        self._chosen: ChosenStep | None = None

    def decide(self, lower: lowered_step.Lower) -> lowered_step.Step | lowered_step.Partition:
        begun = time.monotonic()
        joint = self._joint = Joint()
        self._chosen = None
        reason = private.settings_not_promised()
        if reason:
            return self._plan_partitioner(reason)
        plain = lower(joint.plain, lowered_step.Flags())
        entry = self._begin()
        if entry is None:
            return plain
        try:
            chosen = self._choose(entry, plain, lower, begun)
        except NotReplayedError as error:
            chosen = self._without_promise(entry, str(error))
        self._chosen = chosen
        step, chosen.step = chosen.step, None
        recipe, plan = chosen.recipe, chosen.plan
        return step or lower(joint.partition(recipe, plan), recipe.flags(plan))

    def _begin(self) -> GraphReport | None:
        """Captures the joint graph, and returns its report; None if it cannot be planned."""
        backend, joint = self._backend, self._joint
        entry = backend.begin(self._part, joint.module)
        try:
            joint.captured = backend.capture(joint.module, joint.options)
        except UnsupportedGraphError as error:
            backend.refuse(entry, joint.module, error)
            return None
        return entry

    def _plan_partitioner(self, reason: str) -> lowered_step.Partition:
        """Returns a partitioner that follows a plan of the graph's operators, without a promise."""

        def partition(module: fx.GraphModule, inputs: Any, **options: Any) -> Any:
            self._joint.note(module, inputs, options)
            entry = self._begin()
            if entry is None:
                return private.min_cut(module, inputs, **options)
            chosen = self._without_promise(entry, reason)
            return self._joint.partition(chosen.recipe, chosen.plan)(module, inputs, **options)

        return partition

    def compiled(self, step: lowered_step.Step) -> None:
        """Checks the wrappers that will run, and has their first step measured."""
        entry = None if self._chosen is None else self._chosen.entry
        copy_retained(step, lambda: self._note_retained(entry))
        if entry is None or entry.promise is None:
            return
        uncounted = self._joint.captured.parameter_gradients()
        found = replay(step, uncounted)
        within = workspace_bytes(found.calls)
        peak = found.peak_bytes(within)
        if peak != entry.promise.bytes:
            raise ReplayError(
                f"the code that Inductor compiled needs {peak} bytes, but its replay promised "
                f"{entry.promise.bytes}: it is not used; this is a bug in ckplan.torch, please "
                "report it"
            )
        if entry.measured_peak_bytes is None:
            FirstStep(step, uncounted, within, entry.note_measured)

    def _note_retained(self, entry: GraphReport | None) -> None:
        if entry is not None:
            entry.note = RETAINED_NOTE
            self._backend.report.say(RETAINED)

    def _choose(
        self,
        entry: GraphReport,
        plain_step: lowered_step.Step,
        lower: lowered_step.Lower,
        begun: float,
    ) -> ChosenStep:
        """Returns the decision that fits in the limit. Raises InfeasibleError, NotReplayedError."""
        backend, joint = self._backend, self._joint
        reason = private.why_not_promised(joint.module)
        if reason:
            return self._without_promise(entry, reason)
        limit, is_divided = backend.limit_of(joint.captured, entry)
        digest = hashlib.sha256(joint.captured.to_bytes()).digest()
        key = (self._part, digest, str(limit))
        earlier = self._decided.get(key)
        if earlier is not None:
            earlier.entry.compilations += 1
            backend.report.graphs.remove(entry)
            earlier.step = plain_step if earlier.recipe.kind == PLAIN else None
            return earlier
        evaluation = Evaluation(joint, backend.request, lower)
        plain = evaluation.candidate(Recipe(PLAIN), plain_step, None)
        best, rounds = self._search(evaluation, plain, limit)
        most = _limit_bytes(limit, plain)
        if most is not None and best.peak_bytes > most:
            # A later request for exactly these bytes gets this decision.
            CachedChoice(joint.captured, backend.request, best.peak_bytes).store(best)
            CachedChoice(joint.captured, backend.request).refuse(most, best, rounds)
            error = _infeasible_error(backend.request.words(), best, plain, most, rounds)
            if not is_divided:
                raise error
            entry.note = f"it needs at least {best.peak_bytes} bytes; its budget was raised to that"
            warnings.warn(f"a part of a model: {entry.note}", ckplan.PlanWarning, stacklevel=2)
        entry.promise = Promise(
            replayed_bytes=best.tensors_bytes,
            in_operators_bytes=best.peak_bytes - best.tensors_bytes,
            plain_bytes=plain.peak_bytes,
            saved_bytes=best.saved_bytes,
            added_share=best.cost / max(1, plain.cost) - 1,
            way=best.recipe.words(),
            rounds=rounds,
            seconds=time.monotonic() - begun,
        )
        backend.describe(entry, joint.captured, best.plan)
        found = backend.parts.found[self._part]
        found.keep_all_peak_bytes, found.saved_bytes = plain.peak_bytes, best.saved_bytes
        chosen = self._decided[key] = ChosenStep(entry, best.recipe, best.plan, best.step)
        return chosen

    def _search(
        self, evaluation: Evaluation, plain: Candidate, limit: int | str
    ) -> tuple[Candidate, int]:
        """Returns the best candidate, and how many were lowered."""
        request = self._backend.request
        if limit == "min" and request.limit != "min":
            evaluation.is_quick = True  # This is the first of two plans of this part (see Parts).
            quick = evaluation(Recipe(PLAN, "min", near=True))
            rows = [plain] if quick is None else [plain, quick]
            return min(rows, key=lambda row: row.peak_bytes), len(rows)
        most = evaluation.most = _limit_bytes(limit, plain)
        kept = CachedChoice(self._joint.captured, request, limit)
        cached = kept.take(evaluation.fork(), plain, most)
        if cached is not None:
            return cached, 2 if cached is not plain else 1
        if most is not None:
            refused = CachedChoice(self._joint.captured, request).refused(most)
            if refused is not None:
                return refused.least, refused.rounds
        search = Search(plain, most, evaluation)
        best = search.run()
        kept.store(best)
        return best, len(search.tried)

    def _without_promise(self, entry: GraphReport, reason: str) -> ChosenStep:
        """Plans a graph whose compiled memory is unknown, as if operators ran one by one."""
        plan = self._backend.make_plan(self._joint.captured, entry)
        entry.not_promised = reason
        self._backend.describe(entry, self._joint.captured, plan)
        found = self._backend.parts.found[self._part]
        found.keep_all_peak_bytes = plan.keep_all_peak_bytes
        return ChosenStep(entry, Recipe(PLAN, plan.peak_bytes), plan)


def _limit_bytes(limit: int | str, plain: Candidate) -> int | None:
    """Returns a limit in bytes; shares are of plain Inductor's peak. None means the minimum."""
    if isinstance(limit, str) and limit.endswith("%"):
        return int(plain.peak_bytes * float(limit[:-1]) / 100)
    return None if limit == "min" else int(limit)


def _infeasible_error(
    words: str, best: Candidate, plain: Candidate, most: int, rounds: int
) -> ckplan.InfeasibleError:
    message = (
        f"{words} is too little for Inductor's code: the limit is {size(most)}, but the best of "
        f"{rounds} ways to divide the graph needs {size(best.peak_bytes)} "
        f"({percent(best.peak_bytes, plain.peak_bytes)} of plain Inductor's "
        f"{size(plain.peak_bytes)}); try budget={best.peak_bytes}"
    )
    return ckplan.InfeasibleError(
        message, INFEASIBLE, kind="infeasible", least_bytes=best.peak_bytes
    )
