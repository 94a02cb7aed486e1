"""The plans that one graph of a model runs by, and when one replaces another."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

import ckplan
from ckplan.torch import private_autograd, slots
from ckplan.torch.errors import ReplayError, UnsupportedGraphError
from ckplan.torch.graph_planner import GraphPlanner
from ckplan.torch.module_replay import replay_built
from ckplan.torch.offload.host import settled
from ckplan.torch.pending_calls import Call, PendingCalls, first_saved_result
from ckplan.torch.replacement import PlannedModules, Replacement, warn_above_plan
from ckplan.torch.report import GraphReport
from ckplan.torch.tracker import Tracker
from ckplan.torch.unused_results import (
    DROPPED,
    HELD_AFTER_ALL,
    HOOKED,
    NO_LOSS,
    RETAINED,
    UNUSED_NOTE,
    Unused,
    better_plan_refused,
    random_devices,
    rerun_module,
    results_beyond_loss,
    unmodified_inputs,
)


class StepPlans:
    """Chooses the plan that the next step of a graph runs by.

    The first plan is for a caller that uses all results. Others replace it if the caller uses
    fewer, if the graph gets a share of a limit, or if the graph is retained.
    """

    def __init__(self, backend: GraphPlanner, part: int, uses_loss_alone: bool):
        self._backend = backend
        self._part = part
        self._uses_loss_alone = uses_loss_alone
        self._entry = GraphReport(part)
        self._first_entry: dict[str, Any] = {}
        self._tracker: Tracker | None = None
        self._is_begun = self._has_backward = False
        # Some saved values are data-dependent sizes: the first ones that the backward module takes,
        # and the last ones that the forward module returns.
        self._num_outputs = self._num_brought = self._num_numbers = 0
        self._first_made: int | None = None
        self._updated: list[int] = []
        self._first: PlannedModules | None = None
        self._tangents: list[torch.Tensor] = []
        self._held: set[int] = set()  # Positions of gradients that the caller holds.
        self._is_open = False
        self._waiting = PendingCalls()
        self._latest: tuple[Any, Call] | None = None
        self._node_type: type[Any] | None = None
        # The joint graph and its options, while it may be planned again.
        self._joint: tuple[fx.GraphModule, dict[str, Any]] | None = None
        self._unused: Unused | None = None
        self._replacement: Replacement | None = None
        # Plans by the number of tensors that they save.
        self._slots: slots.Slots | None = None
        self._replacements: dict[int, Replacement] = {}
        self._has_left = self._is_retained = self._is_planned_retained = self._is_hooked = False
        # The division of the limit that the current plan is for, and whether it has changed.
        self._parts = backend.parts
        self._has_share = False

    def is_waiting(self) -> bool:
        """Returns whether a forward pass waits for its backward pass."""
        return self._waiting.count() > 0

    def _begin(self, built: PlannedModules) -> None:
        self._first = built
        self._first_made = first_saved_result(built.forward, self._num_outputs)
        self._slots = slots.add(built.forward, built.backward, self._num_outputs)
        self._num_numbers = self._slots.num_numbers
        self._updated = slots.updated_inputs(built.forward, self._num_outputs)
        self._tracker = Tracker()

    def _plan_for_loss(self, joint: fx.GraphModule, options: dict[str, Any]) -> Any:
        """Returns the modules for a caller that uses only the loss; None if there are none."""
        unused = results_beyond_loss(joint, self._num_outputs)
        if unused is None:
            self._backend.report.say(NO_LOSS)
        if not unused or unused == Unused():
            return None
        found = self._backend.plan_for_loss(self._part, joint, options, unused)
        if found is None:
            return None
        everything, self._entry, planned = found
        replacement = self._make_replacement(planned, unused, everything.forward)
        if replacement is None:  # Forward cannot run again if other results are used.
            self._backend.report.graphs.remove(self._entry)
            return None
        self._begin(everything)
        self._joint = joint, options
        if not self._use(replacement):
            self._backend.report.graphs.remove(self._entry)
            self._first = self._joint = self._tracker = None
            return None
        return everything.forward, everything.backward

    def _end_measuring(self) -> None:
        """Records the peak of the step that has ended."""
        tracker, self._tracker = self._tracker, None
        if tracker is None:
            return
        self._entry.measured_peak_bytes = tracker.peak_bytes()
        self._entry.measured_host_peak_bytes = tracker.host_peak_bytes()
        if tracker.is_hooked and self._entry.is_above_plan:
            return self._measure_anew()  # Hooks may hold tensors of their own.
        warn_above_plan(self._entry)

    def _choose(self) -> None:
        """Changes the plan between steps, if the caller uses less or more than planned."""
        if self.is_waiting():
            return
        if self._has_backward:  # A retained graph was dropped.
            self._end_measuring()
        if self._has_left:
            self._has_left = False
            self._measure_anew()
            # In these cases the first modules have no plan, or one for another limit.
            if self._uses_loss_alone or self._has_share:
                self._plan_for_all()
        elif self._parts is not self._backend.parts:
            self._plan_share()
        elif self._unused is not None and self._tracker is None and not self._uses_loss_alone:
            self._drop_unused_results(self._unused)
        if self._is_retained and not self._is_planned_retained:
            self._plan_retained()

    def _drop_unused_results(self, unused: Unused) -> None:
        """Switches to a plan without unused results, if that saves memory."""
        if self._is_hooked:
            unused = Unused(frozenset(), unused.dropped)
        if self._joint is None or unused == Unused():
            return
        joint, options = self._joint if self._is_retained else self._take_joint()
        self._unused = None
        self._first_entry = self._first_entry or dict(vars(self._entry))
        with self._warn_on_error():
            built = self._backend.plan_again(self._entry, joint, options, unused)
            replacement = self._make_replacement(built, unused) if built is not None else None
            if built is not None and (replacement is None or not self._use(replacement)):
                raise UnsupportedGraphError("the forward pass cannot run again for other results")
            if built is not None:
                self._entry.note = UNUSED_NOTE
                self._backend.report.say(DROPPED)
                self._measure_anew()
                self._note_staying(replacement)
                self._is_planned_retained = False

    def _plan_retained(self) -> None:
        """Switches to a plan for a retained graph."""
        self._is_planned_retained = True
        if self._joint is None or self._entry.plan is None:
            return
        joint, options = self._take_joint()
        unused = self._replacement.unused if self._replacement is not None else Unused()
        self._first_entry = self._first_entry or dict(vars(self._entry))
        with self._warn_on_error():
            built = self._backend.plan_retained(self._entry, joint, options, unused)
            replacement = self._make_replacement(built, unused) if built is not None else None
            if replacement is not None and self._use(replacement):
                self._note_staying(replacement)
                self._measure_anew()

    def _plan_for_all(self) -> None:
        """Switches to a plan for all results; without one, the first modules run unmeasured."""
        self._tracker = None
        with self._warn_on_error():
            self._plan_anew(Unused())

    @contextlib.contextmanager
    def _warn_on_error(self, *fatal: type[Exception]) -> Iterator[None]:
        """Within this context an exception only causes a warning, and the current plan stays."""
        before, replacement = dict(vars(self._entry)), self._replacement
        try:
            yield
        except fatal:
            raise
        except Exception as error:
            vars(self._entry).update(before)
            self._replacement = replacement
            self._backend.report.say(better_plan_refused(error))

    def _plan_share(self) -> None:
        """Plans the graph for its share of the limit, and for the results that are used."""
        self._parts, self._has_share = self._backend.parts, True
        unused = self._replacement.unused if self._replacement is not None else self._unused
        with contextlib.suppress(UnsupportedGraphError, ReplayError):
            if unused is not None and self._plan_anew(unused):
                return
        with self._warn_on_error(ckplan.InfeasibleError):
            self._plan_anew(Unused())

    def _plan_anew(self, unused: Unused) -> bool:
        """Plans the graph within its current limit. Returns whether the plan is in use."""
        if self._joint is None:
            return False
        self._first_entry = self._first_entry or dict(vars(self._entry))
        self._entry.note = ""
        joint, options = self._take_joint()
        built = self._backend.plan_anew(self._entry, joint, options, unused)
        replacement = self._make_replacement(built, unused)
        if replacement is None or not self._use(replacement):
            return False
        self._note_staying(replacement)
        self._measure_anew()
        return True

    def _take_joint(self) -> tuple[fx.GraphModule, dict[str, Any]]:
        """Returns the joint graph, and forgets it unless it may be planned again."""
        assert self._joint is not None
        found = self._joint
        if not (self._backend.may_share() or self._uses_loss_alone):
            self._joint = None
        return found

    def _measure_anew(self) -> None:
        self._tracker, self._is_begun, self._has_backward = Tracker(), False, False
        self._entry.measured_peak_bytes = self._entry.measured_host_peak_bytes = None

    def _use(self, replacement: Replacement) -> bool:
        """Switches to another plan. Returns False if there are too few slots for its tensors."""
        assert self._slots is not None
        count = self._slots.number_for(
            replacement.num_saved + (replacement.first_made is None), self._replacements
        )
        if count is None or replacement.num_numbers > self._num_numbers:
            return False
        if replacement.first_made is None:
            # The first tensor that fills the slots identifies its calls.
            replacement.first_made = replacement.num_saved
        replacement.slots = count
        self._replacements[count] = self._replacement = replacement
        return True

    def _make_replacement(
        self, built: PlannedModules, unused: Unused, first: fx.GraphModule | None = None
    ) -> Replacement | None:
        """Returns the replacement; None if it would need an unsafe rerun of the first forward."""
        if first is None:
            assert self._first is not None
            first = self._first.forward
        rerun, read, devices = None, [], []
        if unused.absent:
            try:
                rerun = settled(private_autograd.box(rerun_module(first, self._num_outputs)))
            except UnsupportedGraphError:
                return None
            read, devices = unmodified_inputs(first), random_devices(first)
        saved = slots.saved_by(built.forward, self._num_outputs)
        numbers = sum(slots.is_number(node) for node in saved)
        return Replacement(
            settled(private_autograd.box(built.forward)),
            settled(private_autograd.box(built.backward)),
            built,
            unused,
            first_saved_result(built.forward, self._num_outputs),
            len(saved) - numbers,
            numbers,
            0,
            rerun,
            read,
            devices,
            slots.updated_inputs(built.forward, self._num_outputs),
        )

    def _present(self, replacement: Replacement | None) -> list[int]:
        """Returns the positions of the gradients that a plan uses."""
        absent = replacement.unused.absent if replacement is not None else frozenset[int]()
        return [i for i in range(len(self._tangents)) if i not in absent]

    def _retain(self) -> None:
        """Records that the graph is retained, so its saved values stay for another pass."""
        if self._is_retained or self._entry.plan is None or self._first is None:
            return
        self._is_retained = True
        self._note_staying(self._replacement)
        self._backend.report.say(RETAINED)

    def _note_staying(self, replacement: Replacement | None) -> None:
        """Adds saved values and gradients that stay to the planned peak."""
        built, plan = (
            replacement.built if replacement is not None else self._first,
            self._entry.plan,
        )
        if built is None or plan is None or not (self._is_retained or self._held):
            return
        replay = replay_built(
            built.forward,
            built.backward,
            self._num_outputs,
            built.uncounted,
            replacement.unused.dropped if replacement is not None else (),
            self._is_retained,
            {k for k, i in enumerate(self._present(replacement)) if i in self._held},
        )
        if self._is_retained:
            self._entry.retained_peak_bytes = replay.peak_bytes
        self._entry.plan = dataclasses.replace(
            plan,
            peak_bytes=max(replay.peak_bytes, plan.peak_bytes),
            host_peak_bytes=max(replay.host_peak_bytes, plan.host_peak_bytes),
        )

    def _leave_for_hooks(self) -> None:
        """Plans for all gradients if calls cannot be recognized while hooks are active.

        Hooks for saved tensors may replace tensors. If the autograd nodes are unknown too,
        gradients may arrive that the call's plan does not expect.
        """
        if self._node_type is not None:
            return
        replacement, self._is_hooked = self._replacement, True
        if replacement is None or replacement.rerun_forward is None or self._uses_loss_alone:
            return
        self._leave_replacement(replacement, HOOKED)
        self._choose()

    def _leave_replacement(self, replacement: Replacement, why: str = HELD_AFTER_ALL) -> None:
        """Drops a replacement plan, because the caller uses more than before."""
        if self._replacement is not replacement or replacement.unused == Unused():
            return
        self._replacement, self._has_left, self._tracker, self._unused = None, True, None, Unused()
        self._entry.measured_peak_bytes = self._entry.measured_host_peak_bytes = None
        for name in ("plan", "operations", "saved_bytes", "saved_host_bytes", "recomputed", "note"):
            if name in self._first_entry:
                setattr(self._entry, name, self._first_entry[name])
        if not self._uses_loss_alone:
            self._note_staying(None)
        self._backend.report.say(why)
