"""Calls the program to plan a captured step, and to explain and report plans."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ckplan
from ckplan.invocation import ProgramResult, run_program

_ROWS = 10


@dataclass(frozen=True)
class Peak:
    """The peak of keep-all: the operation, and the bytes in memory by module."""

    operation: str
    modules: list[tuple[str, int]]

    def to_json(self) -> dict[str, Any]:
        modules = [{"module": name, "bytes": size} for name, size in self.modules]
        return {"operation": self.operation, "modules": modules}


def best_plan(graph: bytes, effort: str, **options: Any) -> dict[str, Any]:
    """Returns a plan of the algorithm ``best``. Raises ckplan.PlanError."""
    return ckplan.plan(graph, algo="best", effort=effort, **options)


def keep_all(graph: bytes) -> dict[str, Any]:
    """Returns the plan that keeps everything."""
    return ckplan.plan(graph, algo="keep-all")


def steps_of(plan: dict[str, Any]) -> list[int]:
    """Returns the operations that a plan runs, in order."""
    return [step[1] for step in plan["schedule"]["steps"]]


def step_cost(plan: dict[str, Any]) -> int:
    """Returns the cost of one run of each operation."""
    result = plan["result"]
    return int(result["forward_cost"] + result["backward_cost"])


def peak_of(plan: dict[str, Any], graph: bytes) -> Peak:
    """Returns a plan's peak: the operation, and the bytes in memory by module."""
    with _files(plan, graph) as (plan_path, graph_path):
        answer = run_program(
            "explain", plan_path, "peak", graph_path, "--format=json", "--no-config"
        )
    found = json.loads(_output(answer))["peak"]
    sizes: dict[str, int] = {}
    for row in found["live"]:
        name = _group(row["modules"][-1] if row["modules"] else "")
        sizes[name] = sizes.get(name, 0) + row["bytes"]
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(size for _, size in ordered[_ROWS:])
    rows = ordered[:_ROWS] + ([(f"[{len(ordered) - _ROWS} others]", rest)] if rest else [])
    return Peak(found["step_name"], rows)


def write_report(graph: bytes, plan: dict[str, Any] | None, path: str | os.PathLike[str]) -> None:
    """Writes the HTML report of a plan, by default the one that keeps everything."""
    made = plan if plan is not None else keep_all(graph)
    with _files(made, graph) as (plan_path, graph_path):
        where = f"--model={graph_path}", f"--output={path}"
        _output(run_program("report", plan_path, *where, "--no-config"))


def save(graph: bytes, plan: dict[str, Any] | None, path: str | os.PathLike[str]) -> list[Path]:
    """Writes a plan, by default the one that keeps everything, and its graph. Returns the paths.

    They are PATH.plan.json and PATH.graph.json; the plan names its graph.
    """
    made = plan if plan is not None else keep_all(graph)
    plan_path, graph_path = Path(f"{path}.plan.json"), Path(f"{path}.graph.json")
    document = made | {"model": made["model"] | {"name": graph_path.name}}
    graph_path.write_bytes(graph)
    plan_path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return [plan_path, graph_path]


@contextmanager
def _files(plan: dict[str, Any], graph: bytes) -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="ckplan-") as folder:
        plan_path, graph_path = Path(folder) / "plan.json", Path(folder) / "graph.json"
        plan_path.write_text(json.dumps(plan))
        graph_path.write_bytes(graph)
        yield str(plan_path), str(graph_path)


def _output(answer: ProgramResult) -> bytes:
    if answer.exit_code != 0:
        raise answer.error()
    return answer.output


def _group(path: str) -> str:
    """Returns the common name of a module in all layers, such as ``layers.*.mlp``."""
    parts = path.split(".")
    layer = next((at for at, part in enumerate(parts) if part.isdigit()), None)
    if layer is None:
        return ".".join(parts[:2]) or "(outside of modules)"
    return ".".join([*parts[:layer], "*", *parts[layer + 1 : layer + 2]])
