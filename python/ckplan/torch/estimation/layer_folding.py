"""Removes equal layers from a TorchDynamo graph, so that AOT autograd traces only a few of them.

TorchDynamo ran the model's code for each layer, so its graph shows whether layers are equal: a
period of the graph calls the same functions as the period before, with the same arguments, on the
results of corresponding calls and on parameters of the same form. The shorter graph has the first
two and the last five of these periods.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from ckplan.torch import private
from ckplan.torch.bounds import line_of
from ckplan.torch.estimation.periods import Run, runs

KEPT = 7
"""How many periods stay. A rule that holds for all of these holds for the removed ones too."""

FRONT = 2
"""How many of them come before the removed ones."""

_FARTHEST = 2
"""The most periods that a call may reach back."""


@dataclass(frozen=True)
class FoldedLayers:
    """The number of removed periods, and of parameters in each."""

    left_out: int
    inputs: int


@dataclass
class FoldedGraph:
    """A graph with fewer layers, its remaining inputs, and the removed layers, in order."""

    module: fx.GraphModule
    inputs: list[Any]
    repeats: list[FoldedLayers]


def fold_layers(module: fx.GraphModule, inputs: Sequence[Any]) -> FoldedGraph | None:
    """Returns a graph without most of the equal layers; None if there are too few."""
    table = _Table(module)
    found = runs(table.forms, table.same, 0, len(table.calls))
    parts = [part for run in found if (part := table.part(run)) is not None]
    if not parts:
        return None
    gone = {node for part in parts for node in part.nodes}
    moved = {node: kept for part in parts for node, kept in part.moved.items()}
    left = _remove_nodes(module, gone, moved)
    placeholders = zip(module.graph.find_nodes(op="placeholder"), inputs)
    kept_inputs = [value for node, value in placeholders if node not in gone]
    return FoldedGraph(left, kept_inputs, [part.repeat for part in parts])


@dataclass
class _Part:
    """The nodes to remove, and the replacements of those that are still read."""

    repeat: FoldedLayers
    nodes: list[fx.Node]
    moved: dict[fx.Node, fx.Node]


class _Table:
    """The calls of a graph, in a comparable form."""

    def __init__(self, module: fx.GraphModule):
        self._inputs = module.graph.find_nodes(op="placeholder")
        ends = ("placeholder", "output")
        self.calls = [node for node in module.graph.nodes if node.op not in ends]
        self._position = {node: position for position, node in enumerate(self.calls)}
        self.forms: list[Hashable] = []
        self._reads: list[list[fx.Node]] = []
        numbers: dict[Hashable, int] = {}
        for node in self.calls:
            reads: list[fx.Node] = []
            # The line of code determines the bounds of data-dependent sizes.
            line = line_of(node) if depends_on_data(node) else ()
            arguments = _form((node.args, node.kwargs), reads)
            form = (node.op, node.target, arguments, _described(node), line)
            self.forms.append(numbers.setdefault(form, len(numbers)))
            self._reads.append(reads)
        self._described = {node: _described(node) for node in self._inputs}

    def same(self, position: int, period: int) -> bool:
        """Returns whether a call corresponds to the one a period later."""
        pairs = zip(self._reads[position], self._reads[position + period])
        return all(self._correspond(one, other, period) for one, other in pairs)

    def _correspond(self, one: fx.Node, other: fx.Node, period: int) -> bool:
        if one is other:
            return True
        if one in self._position and other in self._position:
            return self._position[other] - self._position[one] == period
        if one in self._position or other in self._position:
            return False
        return self._described[one] == self._described[other]

    def part(self, run: Run) -> _Part | None:
        """Returns what can be removed from a run; None if nothing."""
        left_out = run.count - KEPT
        if left_out < _FARTHEST or not self._is_closed(run):
            return None
        owned = [self._exclusive_inputs(run, number) for number in range(run.count)]
        if len({len(inputs) for inputs in owned}) > 1:
            return None
        if not self._have_exclusive_inputs(run, owned):
            return None
        removed = run.position(FRONT), run.position(FRONT + left_out)
        nodes = self.calls[removed[0] : removed[1]]
        nodes += [node for inputs in owned[FRONT : FRONT + left_out] for node in inputs]
        shift = left_out * run.period
        last = range(removed[1] - _FARTHEST * run.period, removed[1])
        moved = {self.calls[i]: self.calls[i - shift] for i in last}
        return _Part(FoldedLayers(left_out, len(owned[0])), nodes, moved)

    def _is_closed(self, run: Run) -> bool:
        """Returns whether calls in the run read only nearby results, or ones from before the run.

        Calls after the run may read results of its last periods.
        """
        last = run.end - _FARTHEST * run.period
        for position in range(run.start, len(self.calls)):
            for read in self._reads[position]:
                source = self._position.get(read, -1)
                if not run.contains(source):
                    continue
                least = position - _FARTHEST * run.period if run.contains(position) else last
                if source < least:
                    return False
        outputs = {node for call in self.calls[run.start : last] for node in call.users}
        return all(node.op != "output" for node in outputs)

    def _exclusive_inputs(self, run: Run, number: int) -> list[fx.Node]:
        """Returns the graph's inputs that only this period reads."""
        found: dict[fx.Node, None] = {}
        step = run.period if number + 1 < run.count else -run.period
        for position in range(run.position(number), run.position(number + 1)):
            pairs = zip(self._reads[position], self._reads[position + step])
            for read, other in pairs:
                if read not in self._position and read is not other:
                    found[read] = None
        return list(found)

    def _have_exclusive_inputs(self, run: Run, owned: list[list[fx.Node]]) -> bool:
        """Returns whether each period's inputs are read only by its own calls."""
        for number, inputs in enumerate(owned):
            period = range(run.position(number), run.position(number + 1))
            for node in inputs:
                if any(self._position.get(user, -1) not in period for user in node.users):
                    return False
        return True


def _remove_nodes(
    module: fx.GraphModule, gone: set[fx.Node], moved: dict[fx.Node, fx.Node]
) -> fx.GraphModule:
    """Returns a copy without the nodes ``gone``; readers use their replacements in ``moved``."""
    graph = fx.Graph()
    made: dict[fx.Node, fx.Node] = {}

    def read(node: fx.Node) -> fx.Node:
        return made[node] if node in made else made[moved[node]]

    for node in module.graph.nodes:
        if node not in gone:
            made[node] = private.copy_notes(graph.node_copy(node, read), node)
    copy: fx.GraphModule = private.copy_notes(fx.GraphModule(module, graph), module)
    return copy


def _form(value: Any, reads: list[fx.Node]) -> Hashable:
    """Returns arguments without nodes, as a key, and adds the nodes to ``reads``."""
    if isinstance(value, fx.Node):
        reads.append(value)
        return fx.Node
    if isinstance(value, (tuple, list)):
        return type(value).__name__, tuple(_form(item, reads) for item in value)
    if isinstance(value, dict):
        return "dict", tuple((repr(key), _form(item, reads)) for key, item in value.items())
    if isinstance(value, slice):
        return "slice", _form((value.start, value.stop, value.step), reads)
    return type(value).__name__, repr(value)


def _described(node: fx.Node) -> Hashable:
    """Returns what is known of a node's result: shapes, types, and whether it has a gradient."""
    return _description(node.meta.get("example_value"))


def depends_on_data(node: fx.Node) -> bool:
    """Returns whether a node's result has a data-dependent size, or is such a number."""
    leaves, _ = private.flatten(node.meta.get("example_value"))
    sizes = [size for leaf in leaves if isinstance(leaf, Tensor) for size in leaf.shape]
    kinds = (torch.SymInt, torch.SymFloat, torch.SymBool)
    return any(isinstance(value, kinds) for value in (*leaves, *sizes))


def _description(value: Any) -> Hashable:
    if isinstance(value, Tensor):
        shape, stride = map(_size, value.shape), map(_size, value.stride())
        facts = (value.dtype, str(value.device), value.requires_grad, value.layout)
        return type(value).__name__, tuple(shape), tuple(stride), *facts
    if isinstance(value, (tuple, list)):
        return tuple(_description(item) for item in value)
    return _size(value)


def _size(value: Any) -> str:
    """Returns a size as text, without the numbers of symbols, which differ between layers."""
    return re.sub(r"\bu\d+", "u", repr(value))


def updates_buffers(module: fx.GraphModule) -> bool:
    """Returns whether the forward pass may update statistics, as BatchNorm's does."""
    names = (getattr(node.target, "__name__", str(node.target)) for node in module.graph.nodes)
    return any("batch_norm" in name for name in names)
