"""Builds two FX modules from a plan; they run the plan's steps in its order.

The steps before the boundary form the forward module, the others the backward module. Each step
copies its operation into its module, and each reader of a view applies the view anew. Memory is
free after its last use, because boxed code drops each name there. So each version of a value lives
exactly as long as the plan says.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ckplan.torch import bounds, collector, private
from ckplan.torch.capture import is_tangent, tensors_in
from ckplan.torch.graph import JointGraph, Operation
from ckplan.torch.randomness import generator_state, replay

# Notes of other passes that describe the joint graph's own partition.
_STALE_NOTES = ("saved_tensor_with_no_vc_check", "recompute", "ac_graph_id")

# The key of a kept value: the root in whose memory it lies, or the id of a random operation that
# runs again, for the generator's state before its first run.
_Key = fx.Node | int


@dataclass
class Modules:
    """The forward and the backward module, in AOT autograd's calling convention.

    The forward module takes the inputs of the step, and returns its results, the tensors that it
    saves, and then sizes that depend on data. The backward module takes these sizes, the saved
    tensors, and then the gradients of the results.
    """

    forward: fx.GraphModule
    backward: fx.GraphModule
    num_forward_outputs: int
    num_numbers: int = 0
    """How many of the saved values are no tensors."""


@collector.paused
def build(joint: fx.GraphModule, captured: JointGraph, steps: list[int]) -> Modules:
    """Returns the modules that run the operations of ``captured`` in the order of ``steps``."""
    return _Builder(joint, captured, steps).build()


class _Builder:
    def __init__(self, joint: fx.GraphModule, captured: JointGraph, steps: list[int]):
        self._joint = joint
        self._captured = captured
        self._descriptors = _output_descriptors(joint)
        runs = Counter(steps)
        random = [operation for operation in captured.operations if operation.is_random]
        self._rerun_random = {operation.id for operation in random if runs[operation.id] > 1}
        cut = steps.index(captured.boundary)
        self._before = [captured.operations[step] for step in steps[:cut]]
        self._after = [captured.operations[step] for step in steps[cut + 1 :]]

    def build(self) -> Modules:
        captured = self._captured
        inputs = self._joint.graph.find_nodes(op="placeholder")
        tangents = [node for node in inputs if is_tangent(node)]
        forward = _Half(captured, self._rerun_random)
        for node in inputs:
            if node not in tangents:
                forward.place(node, node)
        forward.compute_numbers()
        forward.run(self._before)
        for copy in captured.boundary_copies:
            forward.copy(copy)
        returned = [forward.read(node) for node in captured.forward_outputs]
        keys = self._saved(forward)
        numbers = [key for key in keys if key in forward.numbers]
        tensors = [key for key in keys if key not in forward.numbers]
        saved = {key: forward.memory[key] for key in tensors + numbers}

        backward = _Half(captured, self._rerun_random, forward)
        for key in numbers + tensors:
            backward.place(key, saved[key])
        for node in tangents:
            backward.place(node, node)
        backward.run(self._after)
        gradients = [backward.read(node) for node in captured.backward_outputs]

        count = len(returned)
        forward.finish(returned + list(saved.values()), self._saved_descriptors(count, len(saved)))
        backward.finish(gradients, self._descriptors[count:])
        return Modules(
            fx.GraphModule(self._joint, forward.graph, "PlannedForward"),
            fx.GraphModule(self._joint, backward.graph, "PlannedBackward"),
            count,
            len(numbers),
        )

    def _saved(self, forward: _Half) -> list[_Key]:
        """Returns the values that the backward module needs from forward, in the order of use."""
        captured = self._captured
        needed: dict[_Key, None] = {}
        made: set[fx.Node] = set()

        def need(nodes: Iterable[fx.Node]) -> None:
            for root in (root for node in nodes for root in _roots_of(captured, node)):
                if root.op != "get_attr" and root not in made and root in forward.memory:
                    needed[root] = None

        for operation in self._after:
            need(operation.call.all_input_nodes)
            made.update(_tensors_made(operation.call))
            if operation.id in forward.memory:
                needed[operation.id] = None
        need(node for node in captured.backward_outputs if isinstance(node, fx.Node))
        return list(needed)

    def _saved_descriptors(self, returned: int, kept: int) -> list[Any]:
        return self._descriptors[:returned] + [
            private.saved_output_descriptor(index) for index in range(kept)
        ]


class _Half:
    """One of the two modules, while its graph is being built."""

    def __init__(
        self, captured: JointGraph, rerun_random: set[int], before: _Half | None = None
    ):
        self.graph = fx.Graph()
        # Sizes that depend on data are computed and checked once, in one of the modules.
        self.numbers: set[_Key] = set()
        self._missing: list[fx.Node] = list(before._missing if before else captured.numbers)
        self._unchecked: list[bounds.Check] = list(
            before._unchecked if before else captured.checks
        )
        # The node of this graph with the present version of each kept value.
        self.memory: dict[_Key, fx.Node] = {}
        self._copied: set[fx.Node] = set()
        self._captured = captured
        self._rerun_random = rerun_random

    def place(self, key: _Key, node: fx.Node) -> None:
        """Adds an input like ``node`` to this module, which brings a kept value."""
        made = self.graph.create_node("placeholder", node.name, name=node.name)
        made.meta = notes_of(node)
        self.memory[key] = made

    def run(self, operations: Iterable[Operation]) -> None:
        for operation in operations:
            self._run(operation)
            self.compute_numbers()

    def compute_numbers(self) -> None:
        """Computes all sizes and other numbers whose operands are there, and checks bounds.

        Right after an operation, its results are in memory in any case.
        """
        if not self._missing and not self._unchecked:
            return
        for row in [row for row in self._unchecked if self._has(row.node)]:
            size = self.read(row.node)
            self.graph.call_function(bounds.check, (size, row.dim, row.bound, row.words))
            self._unchecked.remove(row)
        for node in list(self._missing):
            if all(self._has(source) for source in node.all_input_nodes):
                self.memory[node] = self.copy(node)
                self.numbers.add(node)
                self._missing.remove(node)

    def _has(self, node: fx.Node) -> bool:
        roots = _roots_of(self._captured, node)
        return all(root in self.memory or root.op == "get_attr" for root in roots)

    def copy(self, node: fx.Node) -> fx.Node:
        """Copies the node into this graph, reading the present versions."""
        return self._copy(node, {})

    def read(self, node: Any) -> Any:
        """Returns the node of this graph with the same tensor; other values stay as they are."""
        return self._read(node, {}) if isinstance(node, fx.Node) else node

    def finish(self, outputs: list[Any], descriptors: list[Any]) -> None:
        """Ends the graph, and removes nodes that are never read."""
        node = self.graph.output(tuple(outputs))
        if any(descriptor is not None for descriptor in descriptors):
            node.meta["desc"] = descriptors
        for made in reversed(list(self.graph.nodes)):
            if made.target is operator.getitem and not made.users:
                self.graph.erase_node(made)
        self.graph.lint()

    def _run(self, operation: Operation) -> None:
        node = operation.call
        if operation.id in self.memory:
            made = self._replay(node, self.memory[operation.id])
        else:
            if operation.id in self._rerun_random:
                self.memory[operation.id] = self._take_state(node)
            made = self.copy(node)
        if isinstance(node.meta.get("val"), torch.Tensor):
            self.memory[node] = made
            return
        for item in node.users:
            if item.target is operator.getitem and self._captured.roots.get(item) is item:
                self.memory[item] = self._item(made, item)

    def _item(self, made: fx.Node, item: fx.Node) -> fx.Node:
        taken = self.graph.create_node(
            "call_function", operator.getitem, (made, item.args[1]), name=self._name(item)
        )
        taken.meta = notes_of(item)
        return taken

    def _take_state(self, node: fx.Node) -> fx.Node:
        device = _device(node)
        made = self.graph.call_function(generator_state, (device,))
        tensor = next(tensors_in(node.meta["val"]))
        size = generator_state(device).numel()
        made.meta["val"] = tensor.new_empty(size, dtype=torch.uint8, device="cpu")
        return made

    def _replay(self, node: fx.Node, state: fx.Node) -> fx.Node:
        views: dict[fx.Node, Any] = {}
        args = fx.map_arg(node.args, lambda source: self._read(source, views))
        kwargs = fx.map_arg(node.kwargs, lambda source: self._read(source, views))
        again: tuple[Any, ...] = (state, _device(node), node.target, args, kwargs)
        made = self.graph.call_function(replay, again)
        made.meta = notes_of(node)
        return made

    def _read(self, node: fx.Node, views: dict[fx.Node, Any]) -> Any:
        """Returns the node's tensor, made by views of the present version of its root.

        ``views`` has the views that one reader has already made.
        """
        if node in self.memory:
            return self.memory[node]
        if node in views:
            return views[node]
        if node.op == "get_attr":
            made = self.graph.node_copy(node)
            made.meta = notes_of(node)
            self.memory[node] = made
            return made
        value = node.meta.get("val")
        if node.target is operator.getitem and not isinstance(value, torch.Tensor):
            return value
        root = self._captured.roots.get(node)
        if root is not None and root is not node and _is_same_item(node, root):
            return self._read(root, views)
        if root is node:
            raise AssertionError(f"{node.name} is read where the plan has not made it")
        views[node] = made = self._copy(node, views)
        return made

    def _copy(self, node: fx.Node, views: dict[fx.Node, Any]) -> fx.Node:
        args = fx.map_arg(node.args, lambda source: self._read(source, views))
        kwargs = fx.map_arg(node.kwargs, lambda source: self._read(source, views))
        made = self.graph.create_node(
            node.op, node.target, args, kwargs, self._name(node), node.type
        )
        made.meta = notes_of(node)
        return made

    def _name(self, node: fx.Node) -> str:
        """Returns a name for a copy of the node. FX would try many names if this one were taken."""
        if node in self._copied:
            return f"{node.name}_again"
        self._copied.add(node)
        return node.name


def _roots_of(captured: JointGraph, node: fx.Node) -> list[fx.Node]:
    """Returns the nodes in memory from which views can make the node's tensor."""
    if node in captured.numbers:
        return [node]
    root = captured.roots.get(node)
    if root is node or (root is not None and _is_same_item(node, root)):
        return [root]
    if node.target is operator.getitem and not isinstance(node.meta.get("val"), torch.Tensor):
        return []
    return [root for source in node.all_input_nodes for root in _roots_of(captured, source)]


def _is_same_item(node: fx.Node, root: fx.Node) -> bool:
    """Returns whether both nodes are the same result of one operation."""
    return (
        node.target is operator.getitem
        and root.target is operator.getitem
        and node.args == root.args
    )


def _tensors_made(node: fx.Node) -> list[fx.Node]:
    items = [user for user in node.users if user.target is operator.getitem]
    return items if items else [node]


def _device(node: fx.Node) -> torch.device:
    return next(tensors_in(node.meta["val"])).device


def notes_of(node: fx.Node) -> dict[str, Any]:
    """Returns the notes of a node that are also valid for its copy in another graph."""
    return {key: value for key, value in node.meta.items() if key not in _STALE_NOTES}


def _output_descriptors(joint: fx.GraphModule) -> list[Any]:
    (output,) = joint.graph.find_nodes(op="output")
    flat = torch.utils._pytree.arg_tree_leaves(*output.args)
    found = output.meta.get("desc")
    if found is None:
        return [None] * len(flat)
    return torch.utils._pytree.arg_tree_leaves(found)
