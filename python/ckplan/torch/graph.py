"""A joint graph in ckplan's format (docs/joint-graphs.md), with the FX nodes of its operations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from ckplan.torch.bounds import Check

VALUE = "value"
CONSTANT = "constant"
PARAMETER_GRADIENT = "parameter_gradient"


@dataclass
class Value:
    """The memory of one storage, shared by all views of it."""

    id: int
    name: str
    bytes: int
    kind: str = VALUE
    alias_of: int | None = None


@dataclass
class Operation:
    """An operation; a run makes all values that it writes. ``node`` is None for the boundary."""

    id: int
    node: fx.Node | None
    reads: list[int]
    writes: list[int]
    is_backward: bool = False
    repeats: bool = True
    is_random: bool = False
    cost: int = 0
    workspace_bytes: int = 0
    module: str = ""
    title: str = "boundary"
    """Its name if it has no node."""
    named: str | None = None
    """Its name if operations of equal layers share a node."""

    @property
    def name(self) -> str:
        """Returns the operation's name, which is unique in the graph."""
        if self.named is not None:
            return self.named
        return self.title if self.node is None else self.node.name

    @property
    def call(self) -> fx.Node:
        """Returns the node, which every operation except the boundary has."""
        assert self.node is not None
        return self.node


@dataclass
class JointGraph:
    """A training step in the order in which PyTorch traced it.

    The *boundary* is an extra operation between the forward and the backward module. It reads all
    results of the forward module and holds them until the end, as the caller does. It makes the
    gradients that the caller passes in (*tangents*).

    ``roots`` maps each node that is a tensor to the node that made its memory. Views are not part
    of any operation: each reader applies them again to their root.
    """

    operations: list[Operation] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    boundary: int = -1
    roots: dict[fx.Node, fx.Node] = field(default_factory=dict)
    value_of: dict[fx.Node, int] = field(default_factory=dict)
    forward_outputs: list[Any] = field(default_factory=list)
    backward_outputs: list[Any] = field(default_factory=list)
    boundary_copies: list[fx.Node] = field(default_factory=list)
    numbers: dict[fx.Node, None] = field(default_factory=dict)
    """The nodes that compute sizes and other numbers, in order. They take no memory."""
    checks: list[Check] = field(default_factory=list)
    """The checks of data-dependent sizes against their bounds."""
    parameters: set[int] = field(default_factory=set)
    """The positions of parameters and buffers among the inputs of the step."""
    parameter_bytes: int = 0
    """Bytes of the constants that are parameters or buffers."""
    trained_bytes: int = 0
    """Bytes of the parameters that get a gradient."""
    trained: list[tuple[int, int, int]] = field(default_factory=list)
    """Those parameters, in rows of (elements, bytes of an element, number of such tensors)."""
    optimized: list[tuple[int, int, int]] = field(default_factory=list)
    """The same rows, but at most the memory of their gradients, as the file needs it."""
    recomputed: list[str] = field(default_factory=list)
    """The names of operations that plans must recompute. Not in the file."""
    never_offloaded: list[str] = field(default_factory=list)
    """The names of operations whose results plans must not offload. Not in the file."""

    def add_value(
        self, name: str, size: int, kind: str = VALUE, alias_of: int | None = None
    ) -> int:
        """Adds a value and returns its id."""
        self.values.append(Value(len(self.values), name, size, kind, alias_of))
        return len(self.values) - 1

    def constant_bytes(self) -> int:
        """Returns the bytes of parameters, buffers and inputs, which exist throughout the step."""
        return sum(value.bytes for value in self.values if value.kind == CONSTANT)

    def parameter_gradients(self) -> list[int]:
        """Returns the positions of backward outputs whose gradients do not count in the peak."""
        outputs = enumerate(self.backward_outputs)
        made = [(i, self.value_of[self.roots[n]]) for i, n in outputs if isinstance(n, fx.Node)]
        return [i for i, value in made if self.values[value].kind == PARAMETER_GRADIENT]

    def to_json(self, name: str = "torch") -> dict[str, Any]:
        """Returns the graph in the full form of a joint graph file."""
        document: dict[str, Any] = {"schema_version": "1.0", "kind": "joint", "name": name}
        # Gradients that count in the peak are ordinary results, so only this tells what is trained.
        document["optimized_tensors"] = [list(row) for row in self.optimized]
        document["values"] = [_value_json(value) for value in self.values]
        document["ops"] = [_operation_json(operation) for operation in self.operations]
        document["results"] = self.results
        return document

    def to_bytes(self) -> bytes:
        """Returns the file's bytes. The same graph gives the same bytes."""
        return json.dumps(self.to_json(), separators=(",", ":")).encode()


def from_json(document: Mapping[str, Any]) -> JointGraph:
    """Returns the graph in a valid file in the full form, without FX nodes.

    Ids must be positions, as in all files that this package writes.
    """
    graph = JointGraph()
    for row in document["values"]:
        graph.add_value(row.get("name", ""), row["bytes"], row["kind"], row.get("alias_of"))
    for row in document["ops"]:
        is_backward = row.get("phase") == "backward"
        operation = Operation(row["id"], None, row["reads"], row["writes"], is_backward)
        operation.module, operation.title = row.get("module", ""), row.get("name", "")
        graph.operations.append(operation)
    graph.results = document["results"]
    return graph


def _value_json(value: Value) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": value.id,
        "name": value.name,
        "bytes": value.bytes,
        "kind": value.kind,
    }
    if value.alias_of is not None:
        row["alias_of"] = value.alias_of
    return row


def _operation_json(operation: Operation) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": operation.id,
        "name": operation.name,
        "op": operation.title if operation.node is None else str(operation.node.target),
        "phase": "backward" if operation.is_backward else "forward",
        "reads": operation.reads,
        "writes": operation.writes,
        "cost": operation.cost,
        "workspace_bytes": operation.workspace_bytes,
        "repeat": "yes" if operation.repeats else "never",
    }
    if operation.module:
        row["module"] = operation.module
    return row
