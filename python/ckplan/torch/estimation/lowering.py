"""Lowers a captured step with Inductor and replays it on fake tensors, without compiling it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx

from ckplan.torch.bounds import Bounds
from ckplan.torch.capture import capture
from ckplan.torch.costs import device_named
from ckplan.torch.errors import EstimateError, UnsupportedGraphError
from ckplan.torch.estimation.allocator import Event
from ckplan.torch.estimation.events import Trace
from ckplan.torch.inductor import lowered_step
from ckplan.torch.inductor import private as inductor
from ckplan.torch.inductor.candidate_search import PLAIN, Candidate, Recipe, Search
from ckplan.torch.inductor.costs import set_fused_costs
from ckplan.torch.inductor.evaluation import Evaluation, Joint
from ckplan.torch.inductor.lowered_step import NotReplayedError
from ckplan.torch.request import Request


@dataclass
class Lowered:
    """Plain Inductor's step, and the other partitions that were tried."""

    plain: Candidate
    best: Candidate
    """The fastest one within the limit, or else the smallest."""
    tried: list[Candidate]


class Done(Exception):
    """Ends the compilation once everything is known."""


class Lowering(lowered_step.Decision):
    """Lowers one graph, and searches for a partition that fits in ``most(plain)`` bytes."""

    is_to_run = False

    def __init__(
        self,
        device: str,
        effort: str,
        arriving: bool,
        bounds: Bounds | None,
        most: Callable[[Candidate], int],
    ):
        self.found: Lowered | None = None
        self._device, self._effort = device, effort
        self._arriving, self._bounds, self._most = arriving, bounds, most

    def backend(self, module: fx.GraphModule, inputs: list[Any]) -> Any:
        """A backend of torch.compile."""
        inductor.use_fake_mode_of(inputs)
        return inductor.compile(module, inputs, self)

    def decide(self, lower: lowered_step.Lower) -> Any:
        joint = Joint()
        plain_step = lower(joint.plain, lowered_step.Flags())
        reason = inductor.why_not_promised(joint.module)
        if reason:
            raise EstimateError(f"the memory of Inductor's code is unknown: {reason}")
        joint.captured = self._capture(joint)
        request = Request(
            budget="100%",
            effort=self._effort,
            costs=f"roofline:{self._device}",
            compiler="inductor",
        )
        evaluation = Evaluation(joint, request, lower, counts_operators=False)
        try:
            plain = evaluation.candidate(Recipe(PLAIN), plain_step, None)
            evaluation.most = self._most(plain)
            search = Search(plain, evaluation.most, evaluation)
            self.found = Lowered(plain, search.run(), search.tried)
        except NotReplayedError as error:
            raise EstimateError(f"Inductor's code cannot be replayed: {error}") from error
        raise Done

    def compiled(self, step: lowered_step.Step) -> None:
        raise AssertionError("nothing is compiled")

    def _capture(self, joint: Joint) -> Any:
        static = joint.options.get("static_lifetime_input_indices")
        try:
            graph = capture(
                joint.module,
                joint.options["num_fwd_outputs"],
                None if static is None else set(static),
                replays_random=False,
                arriving=self._arriving,
                bounds=self._bounds,
            )
        except UnsupportedGraphError as error:
            raise EstimateError(f"Inductor's graph cannot be planned: {error}") from error
        set_fused_costs(graph, device_named(self._device))
        return graph


def trace_of(changes: Sequence[tuple[int, int]]) -> Trace:
    """Returns the changes of a replay as the events of a step."""
    live = Counter({number: 0 for number, _ in changes})
    for number, size in changes:
        live[number] += size
    left = {number: number for number, size in live.items() if size > 0}
    events = [Event(number, size) for number, size in changes]
    return Trace(events, left, 1 + max(live, default=-1))
