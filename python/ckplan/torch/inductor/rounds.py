"""Seeks the cheapest way to divide and fuse a joint graph whose replay keeps a limit.

Plain ``torch.compile`` comes first. Where it needs too much, plans are tried: a plan's own peak is
not that of Inductor's code, which fuses, so the limit for the next plan follows from what the last
one has come to. The replay is not monotone in that limit, so the best of all rounds is used. When
something fits, PyTorch's knob and other ways to fuse are tried in the rounds that are left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ckplan.torch.inductor.private import Flags
from ckplan.torch.request import Plan

MOST_ROUNDS = 8
"""How many candidates are lowered for one graph, plain ``torch.compile`` among them."""

MOST_SECONDS = 900.0
"""After this time no further round begins; only graphs of very many operations take so long."""

PLAIN, KNOB, PLAN = "plain", "knob", "plan"

_GENTLE_KNOB, _STRONG_KNOB = 0.5, 0.2
"""Values of PyTorch's knob that are tried: where most is kept, and for the least memory."""

_GENTLE_SHARE = 0.6
"""The knob seldom reaches less than this part of plain Inductor's peak."""

_NARROW = 0.02
"""A larger plan is sought if the limit leaves this part of it free."""


@dataclass(frozen=True)
class Recipe:
    """How to divide a joint graph: as plain Inductor, by PyTorch's knob, or by a plan."""

    kind: str
    value: float | int | str = 0
    """The knob's value, or the plan's limit as ``--budget`` takes it."""
    near: bool = False

    @property
    def flags(self) -> Flags:
        return Flags(self.near)

    def words(self) -> str:
        """Returns it in words, for people."""
        fusion = ", near operations fused" if self.near else ""
        if self.kind == PLAN:
            return f"planned{fusion}"
        return "as plain Inductor" if self.kind == PLAIN else f"by PyTorch's knob at {self.value}"


@dataclass
class Candidate:
    """What the replay of a recipe has shown, in bytes, and in the unit of its costs."""

    recipe: Recipe
    peak_bytes: int
    tensors_bytes: int
    """The peak without what operators allocate within their calls."""
    saved_bytes: int
    cost: int
    plan: Plan | None = field(default=None, repr=False)
    changes: list[tuple[int, int]] = field(default_factory=list, repr=False)
    """What storages add, as the replay counts them."""


Evaluate = Callable[[Recipe], "Candidate | None"]
"""Lowers and replays a recipe. Returns None if no plan fits, or it was tried before."""


class Search:
    """Rounds for one joint graph. ``most`` is the limit; None asks for the least memory."""

    def __init__(self, plain: Candidate, most: int | None, evaluate: Evaluate):
        self.tried = [plain]
        self._most = most
        self._evaluate = evaluate
        self._begun = time.monotonic()

    def run(self) -> Candidate:
        """Returns the cheapest candidate within the limit, or the one of the least memory."""
        plain = self.tried[0]
        if self._most is None:
            self._seek_least()
        elif plain.peak_bytes > self._most:
            self._shrink(self._most)
            self._improve(self._most)
        return self.best()

    def best(self) -> Candidate:
        fitting = [row for row in self.tried if self._fits(row)]
        if self._most is None or not fitting:
            return min(self.tried, key=lambda row: (row.peak_bytes, row.cost))
        return min(fitting, key=lambda row: (row.cost, row.peak_bytes))

    def _fits(self, row: Candidate) -> bool:
        return self._most is not None and row.peak_bytes <= self._most

    def _try(self, recipe: Recipe) -> Candidate | None:
        late = time.monotonic() - self._begun > MOST_SECONDS
        if len(self.tried) >= MOST_ROUNDS or late:
            return None
        found = self._evaluate(recipe)
        if found is not None:
            self.tried.append(found)
        return found

    def _shrink(self, most: int) -> None:
        """Tries plans for less and less memory, until one keeps the limit or none is smaller."""
        limit: int | str = most
        for _ in range(MOST_ROUNDS - 2):
            found = self._try(Recipe(PLAN, limit, near=True))
            if found is None or self._fits(found):
                break
            assert found.plan is not None
            limit = _less(found.plan.peak_bytes, found.peak_bytes, most)
        if not any(self._fits(row) for row in self.tried):
            self._seek_least()

    def _seek_least(self) -> None:
        self._try(Recipe(PLAN, "min", near=True))
        self._try(Recipe(KNOB, _STRONG_KNOB))
        self._try(Recipe(PLAN, "min"))

    def _improve(self, most: int) -> None:
        """Tries what may take less time within the limit."""
        planned = [row for row in self.tried if self._fits(row) and row.plan is not None]
        for row in planned[:1]:
            self._try(Recipe(PLAN, row.recipe.value))
            free = most - row.peak_bytes
            if free > _NARROW * most:
                assert row.plan is not None
                self._try(Recipe(PLAN, row.plan.peak_bytes + free, near=True))
        if most >= _GENTLE_SHARE * self.tried[0].peak_bytes:
            self._try(Recipe(KNOB, _GENTLE_KNOB))


def _less(planned: int, found: int, most: int) -> int:
    """Returns the limit of the next plan, where a plan of ``planned`` bytes has come to ``found``."""
    return min(planned * most // found, planned - (found - most))
