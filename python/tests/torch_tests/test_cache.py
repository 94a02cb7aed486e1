"""Tests that cached plans are checked like any others before use, whatever the file holds."""

from __future__ import annotations

import copy
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ckplan
import ckplan.torch
import pytest
import torch
from torch import nn
from torch_tests.test_modules import captured_of
from torch_tests.training import train_both

from ckplan.torch import cache
from ckplan.torch.graph import JointGraph
from ckplan.torch.request import Request, make_plan


def mlp() -> nn.Sequential:
    layers = [part for _ in range(3) for part in (nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.2))]
    return nn.Sequential(*layers)


def rows() -> torch.Tensor:
    return torch.randn(16, 32)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Returns the folder of cached plans."""
    monkeypatch.setenv("CKPLAN_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture(autouse=True)
def _each_plan_is_made_once(monkeypatch):
    """Makes each plan once, because some tests request the same plan hundreds of times."""

    def plan(content: bytes, budget: Any, **options: Any) -> dict[str, Any]:
        asked = repr((content, budget, options))
        if asked not in ANSWERS:
            ANSWERS[asked] = make(content, budget=budget, **options)
        return copy.deepcopy(ANSWERS[asked])

    make = ckplan.plan
    monkeypatch.setattr(ckplan, "plan", plan)


ANSWERS: dict[str, dict[str, Any]] = {}


@pytest.fixture(scope="module")
def graph() -> Iterator[JointGraph]:
    """Yields the joint graph of a step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CKPLAN_CACHE", "")
        yield captured_of(patch, mlp(), rows())


def the_file(folder: Path) -> Path:
    """Returns the only file of the folder."""
    (path,) = folder.iterdir()
    return path


def plan_of(graph: JointGraph, limit: int | str = "70%", **options: Any) -> Any:
    return make_plan(graph, Request(budget=limit, **options), limit)


def stored(graph: JointGraph, folder: Path, limit: int | str = "70%", **options: Any) -> Path:
    """Returns the file of a newly made plan."""
    plan_of(graph, limit, **options)
    return the_file(folder)


def keep_everything(graph: JointGraph) -> dict[str, Any]:
    """Returns the plan that keeps everything, whose figures are all right."""
    return ckplan.plan(graph.to_bytes(), budget="100%", algo="keep-all")


@pytest.mark.parametrize("limit", ["70%", "min", 13_000])
def test_a_plan_that_keeps_everything_and_says_so_is_not_used(graph, folder, limit):
    path = stored(graph, folder, limit)
    right = json.loads(path.read_bytes())
    wrong = keep_everything(graph)
    wrong["request"] |= {"algorithm": "best", "budget_bytes": wrong["result"]["peak_bytes"]}
    wrong["result"]["certificate"] = right["result"].get("certificate")
    path.write_text(json.dumps(wrong))
    with pytest.warns(ckplan.PlanWarning, match="planning the graph again"):
        plan = plan_of(graph, limit)
    assert plan.peak_bytes == right["result"]["peak_bytes"] < wrong["result"]["peak_bytes"]
    assert json.loads(path.read_bytes()) == right


@pytest.mark.parametrize("limit", ["70%", "min", 13_000, "12.75KiB"])
@pytest.mark.parametrize("algo", ["best", "dtr"])
def test_cached_plans_are_used_without_a_warning(graph, folder, limit, algo, monkeypatch, recwarn):
    plan = plan_of(graph, limit, algo=algo)
    monkeypatch.setattr(cache.CachedPlan, "store", lambda *_: pytest.fail("planned again"))
    assert plan_of(graph, limit, algo=algo) == plan
    assert not recwarn.list


def test_training_keeps_its_budget_whatever_the_cache_says(folder):
    report = train_both(mlp, rows, steps=1, budget="70%")
    peak = report.graphs[0].plan.peak_bytes
    path = the_file(folder)
    plan = json.loads(path.read_bytes())
    plan["result"]["peak_bytes"] -= 4
    path.write_text(json.dumps(plan))
    torch._dynamo.reset()
    with pytest.warns(ckplan.PlanWarning, match="peak_bytes"):
        report = train_both(mlp, rows, steps=1, budget="70%")
    assert report.graphs[0].measured_peak_bytes == peak


ALIEN = {
    "empty": b"",
    "object": b"{}",
    "list": b"[]",
    "text": b'"x"',
    "null": b"null",
    "request of another kind": b'{"request": []}',
    "nested": b"[" * 200_000,
    "nested and closed": b"[" * 100_000 + b"]" * 100_000,
    "nested objects": b'{"a":' * 100_000,
    "long number": b"1" * 10_000,
    "no text": bytes(range(256)),
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "NaN": b"NaN",
    "a number of 400 digits": b'{"peak": 1' + b"0" * 400 + b"}",
    "a fraction beyond all": b'{"peak": 1e999}',
    "a key twice": b'{"result": {}, "result": {}}',
}


@pytest.mark.parametrize("name", ALIEN)
def test_files_without_the_plan_are_planned_again_with_one_warning(graph, folder, name, recwarn):
    path = stored(graph, folder)
    right = path.read_bytes()
    path.write_bytes(ALIEN[name])
    plan = plan_of(graph)
    (warning,) = recwarn.list
    assert warning.category is ckplan.PlanWarning
    assert path.read_bytes() == right
    assert plan_of(graph) == plan  # Now the plan comes from the cache, without a warning.
    assert len(recwarn.list) == 1


def test_a_link_is_neither_read_nor_written_through(graph, folder, tmp_path):
    path = stored(graph, folder)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    with pytest.warns(ckplan.PlanWarning, match="link"):
        plan_of(graph)
    assert not path.is_symlink()
    assert elsewhere.read_bytes() == before


def test_a_pipe_does_not_block_and_devices_are_not_read(graph, folder):
    path = stored(graph, folder)
    for replace in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        path.unlink()
        replace(path)
        with pytest.warns(ckplan.PlanWarning, match="regular file|link"):
            plan_of(graph)
        assert path.is_file() and not path.is_symlink()


def test_only_as_many_bytes_are_read_as_a_plan_may_have(graph, folder):
    path = stored(graph, folder)
    with path.open("r+b") as file:
        file.truncate(1 << 40)  # A sparse TiB takes no disk, and exceeds the memory.
    with pytest.warns(ckplan.PlanWarning, match="larger than the limit of"):
        plan_of(graph)
    assert path.stat().st_size < 1 << 20


def test_predictable_names_are_not_opened(graph, folder, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path = stored(graph, folder)
    path.unlink()
    for pid in (os.getpid(), os.getpid() + 1):
        (folder / f"{path.stem}.{pid}.part").symlink_to(victim)
    plan_of(graph)
    assert victim.read_text() == "mine"
    assert path.is_file()


def test_only_their_user_can_access_the_folder_and_its_files(graph, folder):
    path = stored(graph, folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_folder_in_place_of_a_plan_only_costs_time(graph, folder):
    path = stored(graph, folder)
    path.unlink()
    path.mkdir()
    with pytest.warns(ckplan.PlanWarning, match="not a regular file"):
        plan_of(graph)
    assert list(folder.iterdir()) == [path]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields all places of a JSON document, but only the first and the last item of long lists."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    if isinstance(value, list):
        for position in sorted({0, len(value) - 1} & set(range(len(value)))):
            yield from places(value[position], (*path, position))


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


DAMAGES: dict[str, Callable[[Any], Any]] = {
    "null": lambda _: None,
    "true": lambda _: True,
    "text": lambda _: "x",
    "list": lambda _: [],
    "object": lambda _: {},
    "deep": lambda _: nested(300),
    "fraction": lambda old: old + 0.5 if type(old) is int else 0.5,
    "float": lambda old: float(old) if type(old) is int else 1e300,
    "more": lambda old: old + 1 if type(old) is int else 1,
    "less": lambda old: old - 1 if type(old) is int else -1,
    "huge": lambda _: 2**63,
    "twice": lambda old: old + old if isinstance(old, list) else [old, old],
    "half": lambda old: old[: len(old) // 2] if isinstance(old, (list, str)) else old and 0,
}


def damaged(plan: Any, path: tuple[Any, ...], damage: str) -> Any:
    """Returns the plan with one place damaged or removed."""
    document = {"": copy.deepcopy(plan)}
    holder: Any = document
    *way, last = ("", *path)
    for key in way:
        holder = holder[key]
    if damage == "delete":
        del holder[last]
    else:
        holder[last] = DAMAGES[damage](holder[last])
    return document.get("")


def test_no_damage_to_a_plan_ends_training_or_breaks_its_budget(graph, folder, recwarn):
    right = plan_of(graph)
    path = the_file(folder)
    sound = json.loads(path.read_bytes())
    kinds = ["delete", *DAMAGES]
    tried = 0
    for number, place in enumerate(places(sound)):
        # Each place gets three kinds of damage, the next place others.
        for damage in (kinds[(3 * number + i) % len(kinds)] for i in range(3)):
            changed = damaged(sound, place, damage)
            if json.dumps(changed) == json.dumps(sound):
                continue
            path.write_text(json.dumps(changed))
            recwarn.clear()
            plan = plan_of(graph)
            tried += 1
            # Values that no check can know may differ, but not the steps and their memory.
            assert plan.steps == right.steps, (place, damage)
            assert plan.peak_bytes == right.peak_bytes, (place, damage)
            assert plan.keep_all_peak_bytes == right.keep_all_peak_bytes, (place, damage)
            assert len(recwarn.list) <= 1, (place, damage)
    assert tried > 200
