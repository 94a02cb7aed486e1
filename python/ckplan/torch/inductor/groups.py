"""A joint graph whose operations are the kernels that Inductor will make of them.

A plan of the graph itself counts every result of every operation, and may run operations of the
same kernel at different times, which splits the kernel. Here an operation with only one reader is
merged into it, if both can be in one kernel. Plans of this graph are further candidates.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable

import torch

from ckplan.torch.capture import tensors_in
from ckplan.torch.graph import VALUE, JointGraph, Operation
from ckplan.torch.inductor.costs import is_fusible
from ckplan.torch.offload.steps import Step
from ckplan.torch.request import Plan

_MASK_WEIGHT = 4
"""How many times its bytes a mask on a CPU counts.

Kernels write and read masks slowly (see the costs), so plans should rather keep the floats that
masks are recomputed from: a mask counts as many bytes as these. A mask with a single reader in the
backward pass is merged into that operation.
"""


class Groups:
    """The groups of a graph, as a graph of fewer operations and values.

    Masks on a CPU are avoided unless ``keeps_masks`` is set.
    """

    def __init__(self, graph: JointGraph, keeps_masks: bool = False):
        self._graph = graph
        operations = [] if keeps_masks else [each for each in graph.operations if _is_mask(each)]
        self.masks = {value for each in operations for value in each.writes}
        """The avoided values."""
        readers: dict[int, set[int]] = defaultdict(set)
        for operation in graph.operations:
            for value in operation.reads:
                readers[value].add(operation.id)
        aliased = {value.alias_of for value in graph.values}
        separate = aliased | set(graph.results)
        self._inner: set[int] = set()
        self._head = {operation.id: operation.id for operation in graph.operations}
        """The last operation of the group of each operation."""
        for operation in reversed(graph.operations):
            found = {reader for value in operation.writes for reader in readers[value]}
            if len(found) != 1 or not separate.isdisjoint(operation.writes):
                continue
            reader = graph.operations[found.pop()]
            if reader.id > operation.id and self._joins(operation, reader):
                self._head[operation.id] = self._head[reader.id]
                self._inner.update(operation.writes)
        self._members: dict[int, list[int]] = defaultdict(list)
        for operation in graph.operations:
            self._members[self._head[operation.id]].append(operation.id)
        self._heads = sorted(self._members)
        self.graph = self._contract()

    def expanded(self, plan: Plan) -> Plan:
        """Converts a plan of ``graph`` to steps of the whole graph."""
        schedule: list[Step] = []
        for step in plan.steps:
            schedule += self._members[self._heads[step]]
        return dataclasses.replace(plan, schedule=schedule)

    def _joins(self, operation: Operation, reader: Operation) -> bool:
        is_mask = not self.masks.isdisjoint(operation.writes)
        return (
            (operation.is_backward == reader.is_backward or is_mask)
            and all(_can_join(each, self._graph) for each in (operation, reader))
            and all(self._is_simple(value) for value in operation.writes)
        )

    def _is_simple(self, value: int) -> bool:
        known = self._graph.values[value]
        return known.kind == VALUE and known.alias_of is None

    def _contract(self) -> JointGraph:
        graph = self._graph
        kept = [value for value in graph.values if value.id not in self._inner]
        place = {value.id: position for position, value in enumerate(kept)}
        values = [
            dataclasses.replace(
                value,
                id=place[value.id],
                bytes=value.bytes * (_MASK_WEIGHT if value.id in self.masks else 1),
                alias_of=None if value.alias_of is None else place[value.alias_of],
            )
            for value in kept
        ]
        operations = [self._group(position, place) for position in range(len(self._heads))]
        return dataclasses.replace(
            graph,
            operations=operations,
            values=values,
            results=[place[value] for value in graph.results],
            boundary=self._heads.index(graph.boundary),
        )

    def _group(self, position: int, place: dict[int, int]) -> Operation:
        """Returns the operation that stands for a group."""
        members = [self._graph.operations[id] for id in self._members[self._heads[position]]]
        reads = _distinct_places(place.get(value) for each in members for value in each.reads)
        writes = _distinct_places(place.get(value) for each in members for value in each.writes)
        return dataclasses.replace(
            members[-1],
            id=position,
            reads=reads,
            writes=writes,
            repeats=all(each.repeats for each in members),
            cost=sum(each.cost for each in members),
        )


def _is_mask(operation: Operation) -> bool:
    """Returns whether the operation makes Booleans in a CPU kernel."""
    if operation.node is None or not is_fusible(operation.node):
        return False
    made = list(tensors_in(operation.node.meta.get("val")))
    return any(tensor.dtype is torch.bool and tensor.device.type == "cpu" for tensor in made)


def _can_join(operation: Operation, graph: JointGraph) -> bool:
    node = operation.node
    return (
        node is not None
        and is_fusible(node)
        and not operation.is_random
        and operation.name not in graph.recomputed
    )


def _distinct_places(places: Iterable[int | None]) -> list[int]:
    """Returns the distinct places in order, without None, which stands for inner values."""
    return list(dict.fromkeys(place for place in places if place is not None))
