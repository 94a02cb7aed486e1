"""Reads a plan file: which run allocates each piece of memory, and how long it lives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckplan.invocation import run_program
from ckplan.torch import untrusted_files
from ckplan.torch.errors import SnapshotError
from ckplan.torch.estimation.events import Version, versions
from ckplan.torch.graph import PARAMETER_GRADIENT, VALUE, JointGraph, Operation, from_json
from ckplan.torch.untrusted_files import RefusedError


@dataclass(frozen=True)
class Planned:
    """A plan of a joint graph."""

    name: str
    graph: JointGraph
    steps: list[int]
    """The operations that run, in order."""
    versions: list[Version]
    """Everything with its own memory, in the order of allocation."""

    def operation(self, run: int) -> Operation:
        """Returns the operation of a run."""
        return self.graph.operations[self.steps[run]]

    def is_counted(self, version: Version) -> bool:
        """Returns whether the plan's peak counts it; gradients of parameters may not count."""
        return self.graph.values[version.value].kind == VALUE


def read(plan: str | os.PathLike[str], graph: str | os.PathLike[str] | None = None) -> Planned:
    """Reads a plan, and has the program check it.

    ``graph`` is the graph's file; by default, the file next to the plan that the plan names. Raises
    ckplan.PlanError, OSError, SnapshotError.
    """
    path = Path(plan)
    document = _document(path)
    model = document.get("model")
    named = str(model.get("name", "")) if isinstance(model, dict) else ""
    if graph is None and not _is_file_name(named):
        raise SnapshotError(
            f"{path}: model.name {named!a:.60} is not a valid file name; pass the graph's file too"
        )
    beside = Path(graph) if graph is not None else path.parent / Path(named).name
    answer = run_program("check", str(path), str(beside), "--no-config", "--quiet")
    if answer.exit_code != 0:
        raise answer.error()
    content = _document(beside)
    if document.get("request", {}).get("offload"):
        raise SnapshotError(f"{path}: the plan offloads values; plan again without --offload")
    if document.get("request", {}).get("align_bytes") != 1:
        raise SnapshotError(f"{path}: the plan rounds sizes up; plan again without --align")
    try:
        _check(content)
        found = from_json(content)
        steps = [step[1] for step in document["schedule"]["steps"]]
        # Empty tensors are not allocated.
        made = [v for v in versions(found, steps, (VALUE, PARAMETER_GRADIENT)) if v.bytes]
    except SnapshotError as error:
        raise SnapshotError(f"{beside}: {error}") from None
    for version in made:
        if found.values[version.value].kind == PARAMETER_GRADIENT:
            version.last = len(steps)  # It stays until the next step, whatever reads it.
    return Planned(path.name, found, steps, made)


def _is_file_name(name: str) -> bool:
    """Returns whether the system accepts the name: it has no NUL and no lone surrogate."""
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


def _document(path: Path) -> Mapping[str, Any]:
    try:
        content = untrusted_files.file_bytes(path, untrusted_files.MOST_JSON_BYTES)
        return untrusted_files.mapping(untrusted_files.json_value(content), "it")
    except RefusedError as error:
        raise SnapshotError(f"{path}: {error}") from None


def _check(graph: Mapping[str, Any]) -> None:
    """Raises SnapshotError for graphs that ckplan.torch did not write."""
    for key in ("values", "ops"):
        rows = graph.get(key, [])
        if [row.get("id") if isinstance(row, dict) else None for row in rows] != [
            *range(len(rows))
        ]:
            raise SnapshotError(f"the ids of {key} must equal their positions")
    is_of_torch = (
        graph.get("kind") == "joint"
        and graph.get("values")
        and not any(row.get("workspace_bytes") or row.get("in_place") for row in graph["ops"])
    )
    if not is_of_torch:
        raise SnapshotError(
            "it is not a graph of a PyTorch step as ckplan.torch writes it next to a plan"
        )
