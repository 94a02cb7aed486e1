"""Counts results of the previous step, which a loop like ``outputs = model(**batch)`` holds."""

from __future__ import annotations

from ckplan.torch.graph import JointGraph, Operation

BEFORE = "results of the step before"


def hold_results(graph: JointGraph) -> None:
    """Adds the results of the previous step, which live until ``outputs`` is bound to new ones."""
    boundary = graph.operations[graph.boundary]
    held = [graph.values[value].alias_of for value in boundary.writes]
    before = Operation(0, None, [], [], repeats=False, title=BEFORE)
    for value in held:
        if value is not None:
            row = graph.values[value]
            before.writes.append(graph.add_value(f"{row.name}_before", row.bytes))
    boundary.reads = boundary.reads + before.writes
    graph.operations.insert(0, before)
    for position, operation in enumerate(graph.operations):
        operation.id = position
    graph.boundary += 1


def bytes_before(graph: JointGraph) -> int:
    """Returns the bytes of the previous step's results, which do not depend on the plan."""
    first = graph.operations[0]
    return sum(graph.values[v].bytes for v in first.writes) if first.title == BEFORE else 0
