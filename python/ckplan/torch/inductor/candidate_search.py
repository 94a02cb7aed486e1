"""Searches for the fastest partition and fusion of a joint graph whose replay fits in a limit.

Plain ``torch.compile`` comes first. If it needs too much memory, plans of kernels and of operations
are tried. A plan's own peak differs from that of Inductor's code, so each plan's limit is derived
from the last result. The replayed peak is not monotone in that limit, so the best of all rounds is
used. Then the search tries PyTorch's knob if it may fit, plans that count the time of random
numbers, and larger plans, until a step takes hardly longer than plain Inductor's.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ckplan.torch.inductor.lowered_step import Flags, Step
from ckplan.torch.request import Plan

MOST_ROUNDS = 8
"""How many candidates are lowered for one graph, including plain ``torch.compile``."""

MOST_SECONDS = 900.0
"""No further round begins after this time, which only graphs of very many operations reach."""

PLAIN, KNOB, PLAN = "plain", "knob", "plan"

KNOBS = 0.5, 0.2
"""The tried values of PyTorch's knob; the one that keeps more comes first."""

_MOST_PLANS = 5
"""How many ever smaller plans are tried, alternately of kernels and of operations."""

_CLOSE = 1.25
"""The second plan is of kernels too, if the first one needs at most this many times the limit."""

_SAFETY = 0.98
"""A plan's limit is this fraction of what should suffice: Inductor's code may need a bit more."""

_NARROW = 0.05
"""A larger plan is tried if at least this fraction of the limit is unused, and another smaller one
if the last one of its kind is faster by this fraction."""

_DRAWN = 1.25
"""A plan that counts the time of random numbers keeps them, so its limit is this many times larger:
Inductor fuses most of them into the kernels that read them, so they are not in memory."""

_GRAIN = 32
"""Freeing this fraction (1/32) of a plan's peak is worth another kernel."""

_GOOD = 1.03
"""The search ends if a step takes at most this many times as long as plain Inductor's."""

_SLOW = 1.25
"""If a step takes more than this many times as long, several other plans are tried, beginning with
the kind that was not tried yet."""


@dataclass(frozen=True)
class Recipe:
    """How to divide a joint graph: as plain Inductor, by PyTorch's knob, or by a plan."""

    kind: str
    value: float | int | str = 0
    """The knob's value, or the plan's limit as ``--budget`` takes it."""
    near: bool = False
    fused: bool = False
    """Whether kernels are planned, rather than operations."""
    draws: bool = False
    """Whether the time to draw random numbers again counts."""

    def flags(self, plan: Plan | None) -> Flags:
        """Returns how Inductor may fuse the operations, given the plan that orders them."""
        return Flags(self.near, plan.peak_bytes // _GRAIN if self.near and plan else 0)

    def words(self) -> str:
        """Returns it in words, for people."""
        fusion = ", near operations fused" if self.near else ""
        if self.kind == PLAN:
            return f"planned{' by kernels' if self.fused else ''}{fusion}"
        return "as plain Inductor" if self.kind == PLAIN else f"by PyTorch's knob at {self.value}"


@dataclass
class Candidate:
    """The replayed memory of a recipe, in bytes, and its cost."""

    recipe: Recipe
    peak_bytes: int
    tensors_bytes: int
    """The peak without what operators allocate within their calls."""
    saved_bytes: int
    cost: int
    plan: Plan | None = field(default=None, repr=False)
    changes: list[tuple[int, int]] = field(default_factory=list, repr=False)
    """The replay's changes: (number of a storage, bytes that it adds)."""
    step: Step | None = field(default=None, repr=False)
    """The lowered step, as long as it may be the one that runs."""


Evaluate = Callable[[Recipe], "Candidate | None"]
"""Lowers and replays a recipe.

Returns None if there is no plan, it was tried before, or it will not be the best.
"""


class Search:
    """The search for one joint graph. ``most`` is the limit; None minimizes the memory."""

    def __init__(self, plain: Candidate, most: int | None, evaluate: Evaluate):
        self.tried = [plain]
        self._most = most
        self._evaluate = evaluate
        self._begun = time.monotonic()

    def run(self) -> Candidate:
        """Returns the fastest candidate within the limit, or else the smallest."""
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
        is_late = time.monotonic() - self._begun > MOST_SECONDS
        if len(self.tried) >= MOST_ROUNDS or is_late:
            return None
        found = self._evaluate(recipe)
        if found is not None:
            self.tried.append(found)
            self._forget()
        return found

    def _forget(self) -> None:
        """Drops the lowered steps that can no longer become the best."""
        best = self.best()
        for row in self.tried:
            if row is not best:
                row.step = None

    def _shrink(self, most: int) -> None:
        """Tries smaller and smaller plans, until one fits in the limit or none is smaller."""
        found: Candidate | None = None
        smallest: set[bool] = set()
        """The kinds of plans (of kernels or not) whose smallest plan was tried."""
        fused = True
        for number in range(_MOST_PLANS):
            if fused in smallest:
                fused = not fused
            if fused in smallest:
                return
            found = self._latest(fused) or found
            limit = _next_limit(found, most)
            tried = self._try(Recipe(PLAN, limit, near=True, fused=fused))
            if tried is not None and self._fits(tried):
                return
            found = tried or found
            if tried is None or (tried.plan is not None and tried.plan.peak_bytes > limit):
                smallest.add(fused)
            is_close = tried is not None and tried.peak_bytes <= _CLOSE * most
            if number > 0 or not is_close:
                fused = not fused
        for fused in (True, False):
            if fused not in smallest:
                self._try(Recipe(PLAN, "min", near=True, fused=fused))

    def _latest(self, fused: bool) -> Candidate | None:
        """Returns the last lowered plan of kernels, or of operations."""
        rows = [row for row in self.tried if row.plan is not None and not row.recipe.draws]
        rows = [row for row in rows if row.recipe.fused == fused]
        return rows[-1] if rows else None

    def _seek_least(self) -> None:
        self._try(Recipe(PLAN, "min", near=True, fused=True))
        self._try(Recipe(PLAN, "min", near=True))
        self._try(Recipe(KNOB, KNOBS[-1]))
        self._try(Recipe(PLAN, "min"))

    def _improve(self, most: int) -> None:
        """Tries candidates that may be faster within the limit."""
        for value in KNOBS:
            if self._try(Recipe(KNOB, value)) is not None:
                break
        if not (self._fits(self.best()) and self._takes_at_most(_GOOD)):
            self._try_drawing(most)
        is_more = self._fits(self.best()) and not self._takes_at_most(_GOOD)
        while is_more:
            is_more = self._try_another(most) and not self._takes_at_most(_SLOW)

    def _try_drawing(self, most: int) -> None:
        """Tries plans that count the time of random numbers, if the graph draws any."""
        drawing = Recipe(PLAN, int(_DRAWN * most), near=True, fused=True, draws=True)
        found = self._try(drawing)
        if found is not None and not self._fits(found):
            self._try(dataclasses.replace(drawing, value=_next_limit(found, most)))

    def _try_another(self, most: int) -> bool:
        """Tries another plan that may be faster, and returns whether there was one."""
        kinds = [True, False]
        if not self._takes_at_most(_SLOW):
            kinds.sort(key=lambda fused: self._latest(fused) is not None)
        for fused in kinds:
            limit = self._limit_of_another(fused, most)
            if limit and self._try(Recipe(PLAN, limit, near=True, fused=fused)) is not None:
                return True
        return False

    def _limit_of_another(self, fused: bool, most: int) -> int:
        """Returns the limit of another plan of a kind that may be faster; 0 if there is none."""
        latest = self._latest(fused)
        if latest is None and not self._takes_at_most(_SLOW):
            return _next_limit(None, most)
        latest = latest or self._latest(not fused)
        if latest is None:
            return 0
        if not self._fits(latest):
            is_faster = latest.cost < (1 - _NARROW) * self.best().cost
            return _next_limit(latest, most) if is_faster else 0
        if latest.peak_bytes > (1 - _NARROW) * most:
            return 0
        assert latest.plan is not None
        planned, peak = latest.plan.peak_bytes, latest.peak_bytes
        return min(planned * most // peak, planned + most - peak)

    def _takes_at_most(self, factor: float) -> bool:
        """Returns whether the best takes at most this many times as long as plain Inductor."""
        return self.best().cost <= factor * self.tried[0].cost


def _next_limit(found: Candidate | None, most: int) -> int:
    """Returns the limit of the next plan, after one that needed too much."""
    enough = most
    if found is not None and found.plan is not None:
        planned, peak = found.plan.peak_bytes, found.peak_bytes
        enough = min(planned * most // peak, planned - (peak - most))
    return max(1, int(_SAFETY * enough))
