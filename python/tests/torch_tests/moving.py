"""Makes plans that move values to the host, at random.

These plans need not save memory. They have transfers in all orders that are allowed: copies that
are dropped late, that come back early or several times, and in either pass.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import defaultdict
from typing import Any

from ckplan.torch import graph_planner, request
from ckplan.torch.graph import VALUE, JointGraph
from ckplan.torch.offload.steps import DROP, IN, OUT, Step, Transfer


def use_moves(monkeypatch: Any, seed: int = 0) -> list[request.Plan]:
    """Makes all later plans offload values. Returns a list that collects these plans."""
    plans: list[request.Plan] = []

    def plan(graph: JointGraph, *rest: Any) -> request.Plan:
        made = request.make_plan(graph, *rest)
        plans.append(given(graph, with_moves(graph, made.steps, random.Random(seed))))
        return plans[-1]

    monkeypatch.setattr(graph_planner, "make_plan", plan)
    return plans


def given(graph: JointGraph, schedule: list[Step]) -> request.Plan:
    """Returns the program's plan of these steps."""
    rows = [
        [step.kind, step.value] if isinstance(step, Transfer) else ["r", step] for step in schedule
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"order": rows}, file)
        file.flush()
        options: dict[str, Any] = {"algo": "given", "decisions": file.name, "offload": "pcie5"}
        content = graph.to_bytes()
        return request._parse_plan(request._plan_quietly(content, **options), content)


def with_moves(graph: JointGraph, steps: list[int], chance: random.Random) -> list[Step]:
    """Returns the steps with transfers of all values that can be moved between two reads."""
    inserted: dict[int, list[Transfer]] = defaultdict(list)
    for value in _movable(graph):
        at = [i for i, step in enumerate(steps) if _touches(graph, step, value)]
        producers = [i for i in at if value in graph.operations[steps[i]].writes]
        if len(producers) > 1:
            continue
        copied = False
        for before, after in zip(at, at[1:]):
            if after - before < 4 or chance.random() < 0.2:
                continue
            places = sorted(chance.randint(before + 1, after) for _ in range(3))
            kinds = [IN] if copied and chance.random() < 0.5 else [OUT, DROP, IN]
            for kind, place in zip(kinds, places[-len(kinds) :]):
                inserted[place].append(Transfer(kind, value))
            copied = True
    schedule: list[Step] = []
    for position, step in enumerate(steps):
        schedule += [*inserted[position], step]
    return schedule


def _movable(graph: JointGraph) -> list[int]:
    shared = {value.alias_of for value in graph.values}
    held = shared | set(graph.results)
    kept = {v for op in graph.operations if op.name in graph.never_offloaded for v in op.writes}
    counted = (v for v in graph.values if v.kind == VALUE and v.bytes and v.alias_of is None)
    return [value.id for value in counted if value.id not in held | kept]


def _touches(graph: JointGraph, step: int, value: int) -> bool:
    operation = graph.operations[step]
    return value in operation.reads or value in operation.writes
