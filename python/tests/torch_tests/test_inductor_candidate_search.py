"""Tests how candidates for Inductor are chosen, without Inductor."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ckplan
import pytest

from ckplan.torch.inductor import candidate_search
from ckplan.torch.inductor.candidate_search import KNOB, PLAIN, PLAN, Candidate, Recipe, Search
from ckplan.torch.inductor.choice_cache import CachedChoice
from ckplan.torch.inductor.lowered_step import Flags, NotReplayedError, Step
from ckplan.torch.request import Request

LEAST = 300


def candidate(recipe: Recipe, peak: int, cost: int, planned: int | None = None) -> Candidate:
    plan: Any = None if planned is None else SimpleNamespace(peak_bytes=planned)
    return Candidate(recipe, peak, peak, 0, cost, plan)


PLAIN_ROW = candidate(Recipe(PLAIN), 1000, 100)


class Model:
    """Stands for Inductor: a plan of P bytes comes to ``grown(P)``, and less memory takes time."""

    def __init__(self, grown: Callable[[int], int], knob: tuple[int, int] = (5000, 1)):
        self.grown, self.knob = grown, knob
        self.asked: list[Recipe] = []

    def __call__(self, recipe: Recipe) -> Candidate | None:
        if recipe.draws:
            return self.drawn(recipe)
        self.asked.append(recipe)
        if recipe.kind == KNOB:
            return candidate(recipe, *self.knob)
        planned = LEAST if recipe.value == "min" else max(LEAST, int(recipe.value))
        if any(row.kind == PLAN and row == recipe for row in self.asked[:-1]):
            return None
        peak = self.grown(planned) + (0 if recipe.near else 50)
        return candidate(recipe, peak, 2000 - planned - (0 if recipe.near else 10), planned)

    def drawn(self, _: Recipe) -> Candidate | None:
        """Plans that count the time of random numbers; there are none if none are drawn."""
        return None


def test_plain_inductor_is_used_where_it_fits():
    model = Model(lambda planned: planned)
    assert Search(PLAIN_ROW, 1000, model).run() is PLAIN_ROW
    assert model.asked == []


def test_the_limit_is_lowered_until_the_replay_keeps_it():
    model = Model(lambda planned: planned + 200)
    best = Search(PLAIN_ROW, 700, model).run()
    assert best.peak_bytes <= 700
    assert model.asked[0] == Recipe(PLAN, 686, near=True, fused=True)  # 98 % of the limit.
    assert best.plan is not None and best.plan.peak_bytes < 700


def test_the_cheapest_that_fits_is_used():
    knob = Model(lambda planned: planned, knob=(700, 3))
    assert Search(PLAIN_ROW, 700, knob).run().recipe.kind == KNOB
    too_large = Model(lambda planned: planned, knob=(701, 3))
    assert Search(PLAIN_ROW, 700, too_large).run().recipe.kind == PLAN


def test_the_knob_that_keeps_most_within_the_limit_is_tried():
    class Unfit(Model):
        def __call__(self, recipe: Recipe) -> Candidate | None:
            found = super().__call__(recipe)
            return None if recipe == Recipe(KNOB, candidate_search.KNOBS[0]) else found

    for model, value in (
        (Model(lambda planned: planned), 0.5),
        (Unfit(lambda planned: planned), 0.2),
    ):
        Search(PLAIN_ROW, 700, model).run()
        knobs = [row.value for row in model.asked if row.kind == KNOB]
        assert knobs[-1] == value and len(knobs) == 1 + (value != candidate_search.KNOBS[0])


def test_no_other_way_is_sought_when_a_step_takes_no_more_than_plain():
    good = Model(lambda planned: planned, knob=(700, 101))
    assert Search(PLAIN_ROW, 700, good).run().recipe.kind == KNOB
    assert [row.kind for row in good.asked] == [PLAN, KNOB]
    worse = Model(lambda planned: planned - 50, knob=(700, 104))
    Search(PLAIN_ROW, 700, worse).run()
    assert [row.kind for row in worse.asked] == [PLAN, KNOB, PLAN]
    narrow = Model(lambda planned: planned, knob=(700, 104))
    Search(PLAIN_ROW, 700, narrow).run()
    assert [row.kind for row in narrow.asked] == [PLAN, KNOB]


def test_only_the_best_step_is_kept():
    class Lowered(Model):
        def __call__(self, recipe: Recipe) -> Candidate | None:
            found = super().__call__(recipe)
            if found is not None:
                found.step = Step()
            return found

    search = Search(PLAIN_ROW, 700, Lowered(lambda planned: planned + 200))
    best = search.run()
    assert best.step is not None and len(search.tried) > 2
    assert all(row.step is None for row in search.tried if row is not best)


def test_a_replay_that_is_not_monotone_does_not_lose_the_best():
    peaks = {686: 900, 476: 650}  # A plan of 476 bytes is the only one that fits.
    model = Model(lambda planned: peaks.get(planned, 990))
    assert Search(PLAIN_ROW, 700, model).run().peak_bytes in (650, 700)


def test_there_are_no_more_rounds_than_promised_and_the_least_is_found():
    model = Model(lambda planned: planned + 400)
    search = Search(PLAIN_ROW, 500, model)
    assert search.run().peak_bytes == LEAST + 400
    slow = Search(PLAIN_ROW, 500, Model(lambda planned: 501))  # Each plan is a little smaller.
    assert slow.run().peak_bytes == 501
    assert len(slow.tried) == candidate_search.MOST_ROUNDS


@pytest.mark.parametrize(
    ("peak", "kinds"), [(701, [True, True, False, True]), (876, [True, False, True, False])]
)
def test_plans_of_kernels_and_of_operations_take_turns(peak, kinds):
    model = Model(lambda planned: peak)
    Search(PLAIN_ROW, 700, model).run()
    assert [row.fused for row in model.asked if row.kind == PLAN][:4] == kinds


class Kinds(Model):
    """Plans of kernels and of operations come to other parts of their peaks, in per cent."""

    def __init__(self, kernels: int, operations: int):
        super().__init__(lambda planned: planned)
        self.parts = {True: kernels, False: operations}

    def __call__(self, recipe: Recipe) -> Candidate | None:
        part = self.parts[recipe.fused]
        self.grown = lambda planned: planned * part // 100
        return super().__call__(recipe)

    def plans(self) -> list[Recipe]:
        return [row for row in self.asked if row.kind == PLAN]


COSTLY = candidate(Recipe(PLAIN), 1000, 1250)
"""Plain Inductor whose steps take so long that no plan of the model is slow, but none is good."""


@pytest.mark.parametrize("kernels", [80, 98])
def test_a_larger_plan_is_tried_where_the_limit_leaves_room(kernels):
    model = Kinds(kernels, 100)
    Search(COSTLY, 700, model).run()
    more = [] if kernels == 98 else [Recipe(PLAN, 838, True, True)]
    assert model.plans()[1:] == more


@pytest.mark.parametrize("kernels", [80, 98])
def test_a_plan_of_the_other_kind_is_tried_first_where_a_step_takes_long(kernels):
    model = Kinds(kernels, 100)
    Search(PLAIN_ROW, 700, model).run()
    assert model.plans()[1] == Recipe(PLAN, 686, near=True)


def test_a_plan_of_operations_is_the_larger_one_where_there_is_none_of_kernels():
    class Tried(Kinds):
        def __call__(self, recipe: Recipe) -> Candidate | None:
            found = super().__call__(recipe)
            return None if recipe == Recipe(PLAN, 838, True, True) else found

    model = Tried(80, 80)
    Search(COSTLY, 700, model).run()
    assert model.plans()[2] == Recipe(PLAN, 838, True)


class Drawing(Model):
    """Draws random numbers: plans that count their time come to these bytes, of this cost."""

    def __init__(self, *drawn: tuple[int, int], knob: tuple[int, int] = (5000, 1)):
        super().__init__(lambda planned: planned, knob)
        self.limits: list[int] = []
        self._drawn = iter(drawn)

    def drawn(self, recipe: Recipe) -> Candidate | None:
        assert recipe.near and recipe.fused
        self.limits.append(int(recipe.value))
        return candidate(recipe, *next(self._drawn), int(recipe.value))


def test_plans_that_count_the_time_of_random_numbers_are_tried():
    model = Drawing((690, 1290))  # Without random numbers, 686 bytes cost 1314.
    best = Search(COSTLY, 700, model).run()
    assert best.recipe.draws and model.limits == [875]  # 5/4 of the limit.
    large = Drawing((800, 1100), (700, 1290))
    assert Search(COSTLY, 700, large).run().peak_bytes == 700
    assert large.limits == [875, 749]  # 7/8 of 875, and 2 % of that less.
    worse = Drawing((400, 1320))  # The unused memory does not justify another plan.
    assert not Search(COSTLY, 700, worse).run().recipe.draws
    assert sum(row.kind == PLAN for row in worse.asked) == 1
    good = Drawing(knob=(700, 1270))
    Search(COSTLY, 700, good).run()
    assert good.limits == []


def test_kernels_for_cpus_end_where_a_plan_that_fuses_near_operations_frees_much():
    plan: Any = SimpleNamespace(peak_bytes=6400)
    assert Recipe(PLAN, 7000, near=True).flags(plan) == Flags(near=True, worth_bytes=200)
    assert Recipe(PLAN, 7000).flags(plan) == Recipe(KNOB, 0.5).flags(None) == Flags()


def test_a_kind_of_plan_is_asked_for_what_the_last_one_of_its_kind_has_come_to():
    model = Kinds(130, 80)
    Search(PLAIN_ROW, 700, model).run()
    # 686 bytes have come to 891: 891 - 700 less, and 2 % of that less.
    assert model.plans()[1] == Recipe(PLAN, 485, True)
    # Those come to 388 and take more time than the first plan, so another one is sought.
    assert model.plans()[2] == Recipe(PLAN, 485, True, True)


@pytest.mark.parametrize(("cost", "more"), [(125, 1), (126, 2)])
def test_more_than_one_other_plan_is_sought_where_a_step_takes_long(cost, more):
    peaks = iter([400, 690, 690])

    class Slow(Model):
        def __call__(self, recipe: Recipe) -> Candidate | None:
            found = super().__call__(recipe)
            if found is not None and recipe.kind == PLAN:
                found.peak_bytes, found.cost = next(peaks), cost
            return found

    model = Slow(lambda planned: planned)
    Search(PLAIN_ROW, 700, model).run()
    assert sum(row.kind == PLAN for row in model.asked) == 1 + more


def test_no_other_plan_of_a_kind_is_sought_that_takes_as_long():
    class AsLong(Kinds):
        def __call__(self, recipe: Recipe) -> Candidate | None:
            found = super().__call__(recipe)
            if found is not None:
                found.cost = 1400
            return found

    model = AsLong(130, 140)
    Search(PLAIN_ROW, 700, model).run()
    assert len(model.plans()) == 2


def test_a_refusal_comes_when_the_smallest_plans_of_both_kinds_are_too_large():
    model = Kinds(300, 300)
    best = Search(PLAIN_ROW, 700, model).run()
    assert best.peak_bytes == 3 * LEAST
    assert len(model.plans()) == 3 and not any(row.value == "min" for row in model.plans())


def test_a_limit_stays_a_number_of_bytes():
    model = Model(lambda planned: planned + 5000)  # Far more than the limit.
    Search(PLAIN_ROW, 500, model).run()
    assert all(int(row.value) > 0 for row in model.asked if row.kind == PLAN and row.value != "min")


def test_no_round_begins_after_the_time(monkeypatch):
    monkeypatch.setattr(candidate_search, "MOST_SECONDS", -1.0)
    model = Model(lambda planned: planned)
    assert Search(PLAIN_ROW, 700, model).run() is PLAIN_ROW
    assert model.asked == []


def test_the_same_question_has_the_same_answer():
    runs = []
    for _ in range(2):
        model = Model(lambda planned: planned + planned % 7 * 30)
        runs.append((Search(PLAIN_ROW, 600, model).run().recipe, model.asked))
    assert runs[0] == runs[1]


def test_min_is_the_least_replayed():
    model = Model(lambda planned: planned, knob=(250, 7))
    assert Search(PLAIN_ROW, None, model).run().recipe.kind == KNOB


class Graph:
    """Stands for a joint graph."""

    def __init__(self, content: bytes = b"graph"):
        self.content = content

    def to_bytes(self) -> bytes:
        return self.content


def kept(content: bytes = b"graph", limit: str = "60%", **options: Any) -> CachedChoice:
    graph: Any = Graph(content)
    return CachedChoice(graph, Request(budget=limit, compiler="inductor", **options), limit)


def refused(content: bytes = b"graph", budget: int | str = "60%", **options: Any) -> CachedChoice:
    graph: Any = Graph(content)
    return CachedChoice(graph, Request(budget=budget, compiler="inductor", **options))


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(PLAN, "min"),
        Recipe(KNOB, 0.2),
        Recipe(PLAN, 7, True),
        Recipe(PLAN, 7, True, True),
        Recipe(PLAN, 7, True, True, draws=True),
    ],
)
def test_each_kind_of_choice_is_kept(recipe):
    def evaluate(recipe: Recipe) -> Candidate:
        return candidate(recipe, 600, 100)

    kept().store(evaluate(recipe))
    again = kept().take(evaluate, PLAIN_ROW, None)
    assert again is not None and again.recipe == recipe


def test_a_choice_is_kept_and_replayed_again():
    model = Model(lambda planned: planned)
    chosen = model(Recipe(PLAN, 600, near=True))
    assert chosen is not None
    kept().store(chosen)
    again = kept().take(Model(lambda planned: planned), PLAIN_ROW, 600)
    assert again is not None and again.recipe == chosen.recipe
    assert kept(b"other").take(model, PLAIN_ROW, 600) is None
    assert kept(limit="50%").take(model, PLAIN_ROW, 600) is None
    assert kept(costs="flops").take(model, PLAIN_ROW, 600) is None


def test_a_refusal_is_remembered_in_this_process_alone():
    least = Model(lambda planned: planned)(Recipe(PLAN, "min", near=True))
    assert least is not None
    least.step = Step()
    refused().refuse(600, least, 7)
    assert refused(b"other").refused(600) is None and refused(costs="flops").refused(600) is None
    again = refused(budget=99).refused(600)
    assert again is not None and again.least.recipe == least.recipe and again.least.step is None
    assert again.rounds == 7
    assert refused().refused(601) is None  # A search with a larger limit may find something.


def test_a_kept_choice_of_another_peak_is_not_used():
    chosen = Model(lambda planned: planned)(Recipe(PLAN, 600, near=True))
    assert chosen is not None
    kept().store(chosen)
    assert kept().take(Model(lambda planned: planned + 1), PLAIN_ROW, 700) is None
    model = Model(lambda planned: planned)
    assert kept().take(model, PLAIN_ROW, 599) is None
    assert model.asked == []  # A recipe is tried only once.


SOUND = {"kind": 2, "value": 600, "near": 1, "fused": 0, "draws": 0, "peak_bytes": 600}
BEYOND: list[Any] = [-(10**400), -100, -2, 2**63, 10**400, True, None, 0.5, "1", [], {}]
FAULTS = [SOUND | {name: value} for name in SOUND for value in BEYOND]
FAULTS += [SOUND | {"kind": 1, "value": value} for value in (-1, 1001)]
FAULTS += [{key: SOUND[key] for key in SOUND if key != name} for name in SOUND]
FAULTS += [SOUND | {"more": 1}, SOUND | {"kind": 3}, SOUND | {"near": 2}, SOUND | {"draws": 2}]


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: str(row)[:60])
def test_a_damaged_choice_is_as_if_there_were_none(row, tmp_path, monkeypatch):
    monkeypatch.setenv("CKPLAN_CACHE", str(tmp_path))
    model = Model(lambda planned: planned)
    sound = model(Recipe(PLAN, 600, near=True))
    assert sound is not None
    kept().store(sound)
    (path,) = tmp_path.iterdir()
    right = path.read_bytes()
    assert json.loads(right) == SOUND
    path.write_text(json.dumps(row))
    model = Model(lambda planned: planned)
    assert kept().take(model, PLAIN_ROW, None) is None
    assert model.asked == []
    kept().store(sound)
    assert path.read_bytes() == right


@pytest.mark.parametrize("error", [NotReplayedError("x"), ckplan.PlanError("x", 2)])
def test_a_kept_choice_that_cannot_be_replayed_is_not_used(error):
    chosen = Model(lambda planned: planned)(Recipe(PLAN, 600, near=True))
    assert chosen is not None
    kept().store(chosen)

    def evaluate(recipe: Recipe) -> Candidate:
        raise error

    assert kept().take(evaluate, PLAIN_ROW, None) is None


@pytest.mark.parametrize("name", ["torch", "settings"])
def test_pytorch_and_its_settings_are_part_of_the_key(monkeypatch, name):
    from ckplan.torch.inductor import choice_cache

    chosen = Model(lambda planned: planned)(Recipe(PLAN, 600, near=True))
    assert chosen is not None
    kept().store(chosen)
    if name == "torch":
        monkeypatch.setattr(choice_cache.torch, "__version__", "99.0")
    else:
        monkeypatch.setattr(choice_cache.private, "settings", lambda: "other")
    assert kept().take(Model(lambda planned: planned), PLAIN_ROW, 600) is None
