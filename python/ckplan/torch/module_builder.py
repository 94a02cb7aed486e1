"""Builds the forward and backward FX modules of a plan.

The steps before the boundary form the forward module, the others the backward module. Each step
copies its operation into its module, and each reader of a view applies the view again. Boxed code
drops each name after its last use, so each version of a value lives exactly as long as planned.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import fx

from ckplan.torch import bounds, garbage_collection, private_autograd
from ckplan.torch.capture import is_tangent, tensors_in
from ckplan.torch.errors import OffloadError
from ckplan.torch.graph import JointGraph, Operation
from ckplan.torch.offload import steps as transfers
from ckplan.torch.offload.emitting import Compiled, Eager, Emitter
from ckplan.torch.offload.host import HostMemory
from ckplan.torch.offload.steps import Placement, Transfer
from ckplan.torch.randomness import generator_state, replay

# Metadata of other passes that holds only for the joint graph's own partition.
_STALE_META = ("saved_tensor_with_no_vc_check", "recompute", "ac_graph_id")


class _HostCopy(NamedTuple):
    """The key of a root's copy on the host."""

    root: fx.Node


class _Move(NamedTuple):
    """A transfer of a root. ``offset`` is the place of the copy that an ``out`` makes."""

    kind: str
    root: fx.Node
    offset: int


# The key of a kept value: the root in whose memory it lies, or the id of a random operation that
# runs again, for the generator's state before its first run, or a copy on the host.
_Key = fx.Node | int | _HostCopy


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
    """How many of the saved values are numbers rather than tensors."""


@garbage_collection.paused
def build(
    joint: fx.GraphModule,
    captured: JointGraph,
    steps: Sequence[transfers.Step],
    *,
    on_host: Placement = Placement(),
    is_compiled: bool = False,
) -> Modules:
    """Returns the modules that run the operations of ``captured`` in the order of ``steps``.

    ``on_host`` places the copies on the host. ``is_compiled`` means that a compiler gets the
    modules. Raises OffloadError if the plan moves a value that cannot be moved.
    """
    return _Builder(joint, captured, steps, on_host, is_compiled).build()


class _Builder:
    def __init__(
        self,
        joint: fx.GraphModule,
        captured: JointGraph,
        steps: Sequence[transfers.Step],
        on_host: Placement,
        is_compiled: bool,
    ):
        self._joint = joint
        self._captured = captured
        self._descriptors = _output_descriptors(joint)
        runs = Counter(step for step in steps if not isinstance(step, Transfer))
        random = [operation for operation in captured.operations if operation.is_random]
        self._rerun_random = {operation.id for operation in random if runs[operation.id] > 1}
        moved = _moved_roots(captured, steps)
        self._emitter: Emitter = Compiled() if is_compiled and moved else Eager(HostMemory(on_host))
        offsets = iter(on_host.offsets)
        actions: list[Operation | _Move] = []
        for step in steps:
            if isinstance(step, Transfer):
                offset = next(offsets, 0) if step.kind == transfers.OUT else 0
                actions.append(_Move(step.kind, moved[step.value], offset))
            else:
                actions.append(captured.operations[step])
        cut = steps.index(captured.boundary)
        self._before, self._after = actions[:cut], actions[cut + 1 :]

    def build(self) -> Modules:
        captured = self._captured
        inputs = self._joint.graph.find_nodes(op="placeholder")
        tangents = [node for node in inputs if is_tangent(node)]
        forward = _Half(captured, self._rerun_random, self._emitter)
        for node in inputs:
            if node not in tangents:
                forward.place(node, node)
        forward.compute_numbers()
        forward.run(self._before)
        for copy in captured.boundary_copies:
            forward.copy(copy)
        returned = [forward.read(node) for node in captured.forward_outputs]
        if self._emitter.waits_before_backward:
            forward.wait_for_all()
        keys = self._saved(forward)
        numbers = [key for key in keys if key in forward.numbers]
        tensors = [key for key in keys if key not in forward.numbers]
        saved = {key: forward.memory[key] for key in tensors + numbers}

        backward = _Half(captured, self._rerun_random, self._emitter, forward)
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
        made: set[_Key] = set()

        def need(nodes: Iterable[fx.Node]) -> None:
            for root in (root for node in nodes for root in _roots_of(captured, node)):
                if root.op != "get_attr" and root not in made and root in forward.memory:
                    needed[root] = None

        for action in self._after:
            if isinstance(action, _Move):
                copy = _HostCopy(action.root)
                if action.kind != transfers.IN:
                    need([action.root])
                if action.kind != transfers.OUT and copy not in made:
                    needed[copy] = None
                made.add(copy if action.kind == transfers.OUT else action.root)
                continue
            need(action.call.all_input_nodes)
            made.update(_tensors_made(action.call))
            if action.id in forward.memory:
                needed[action.id] = None
        need(node for node in captured.backward_outputs if isinstance(node, fx.Node))
        needed.update((_HostCopy(root), None) for root in forward.arriving if root in needed)
        return list(needed)

    def _saved_descriptors(self, returned: int, kept: int) -> list[Any]:
        return self._descriptors[:returned] + [
            private_autograd.saved_output_descriptor(index) for index in range(kept)
        ]


class _Half:
    """One of the two modules, while its graph is being built."""

    def __init__(
        self,
        captured: JointGraph,
        rerun_random: set[int],
        emitter: Emitter,
        before: _Half | None = None,
    ):
        self.graph = fx.Graph()
        # Sizes that depend on data are computed and checked once, in one of the modules.
        self.numbers: set[_Key] = set()
        self._missing: list[fx.Node] = list(before._missing if before else captured.numbers)
        self._unchecked: list[bounds.Check] = list(before._unchecked if before else captured.checks)
        # The node of this graph with the current version of each kept value.
        self.memory: dict[_Key, fx.Node] = {}
        # The roots whose copies back are still under way.
        self.arriving: dict[fx.Node, None] = dict(before.arriving) if before else {}
        self._given: set[_Key] = set()
        self._copied: set[fx.Node] = set()
        self._captured = captured
        self._rerun_random = rerun_random
        self._emitter = emitter

    def place(self, key: _Key, node: fx.Node) -> None:
        """Adds an input like ``node`` to this module, for a kept value."""
        made = self.graph.create_node("placeholder", node.name, name=node.name)
        made.meta = copied_meta(node)
        self.memory[key] = made
        self._given.add(key)

    def run(self, actions: Iterable[Operation | _Move]) -> None:
        for action in actions:
            if isinstance(action, _Move):
                self._move(action)
                continue
            self._run(action)
            self.compute_numbers()

    def wait_for_all(self) -> None:
        """Waits for all copies back that are under way."""
        for root in list(self.arriving):
            self._current_version(root)

    def compute_numbers(self) -> None:
        """Computes all numbers, such as sizes, whose operands exist, and checks bounds.

        Called right after an operation, when its results are still in memory.
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
        """Copies the node into this graph, reading the current versions."""
        return self._copy(node, {})

    def read(self, node: Any) -> Any:
        """Returns this graph's node for the same tensor; returns other values unchanged."""
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
            made = self._replay_random(node, self.memory[operation.id])
        else:
            if operation.id in self._rerun_random:
                self.memory[operation.id] = self._save_generator_state(node)
            made = self.copy(node)
        if isinstance(node.meta.get("val"), torch.Tensor):
            self.memory[node] = made
            return
        for item in node.users:
            if item.target is operator.getitem and self._captured.roots.get(item) is item:
                self.memory[item] = self._copy_item(made, item)

    def _move(self, move: _Move) -> None:
        root, copy = move.root, _HostCopy(move.root)
        if move.kind == transfers.OUT:
            source = self._current_version(root)
            self.memory[copy] = self._emitter.out(self.graph, source, move.offset)
        elif move.kind == transfers.DROP:
            host, poisons = self.memory[copy], self._owns_alone(root)
            dropped = self._emitter.drop(self.graph, host, self.memory.pop(root), poisons)
            self.memory[copy] = dropped
        else:
            self.memory[root] = self._emitter.load(self.graph, self.memory[copy])
            self.arriving[root] = None

    def _owns_alone(self, root: fx.Node) -> bool:
        """Returns whether this module alone holds a root's tensor.

        The backward module runs twice if its graph is retained, autograd may pass a gradient to
        several graphs, and a caller may hold a result that the plan assumes to be dropped.
        """
        returned = (self._captured.roots.get(n) for n in self._captured.forward_outputs)
        return root not in self._given and root not in returned

    def _current_version(self, root: fx.Node) -> fx.Node:
        """Returns the node with a root's current version; waits for its copy back first."""
        if root in self.arriving:
            del self.arriving[root]
            host = self.memory[_HostCopy(root)]
            self.memory[root] = self._emitter.wait(self.graph, self.memory[root], host)
        return self.memory[root]

    def _copy_item(self, made: fx.Node, item: fx.Node) -> fx.Node:
        node = self.graph.create_node(
            "call_function", operator.getitem, (made, item.args[1]), name=self._unused_name(item)
        )
        node.meta = copied_meta(item)
        return node

    def _save_generator_state(self, node: fx.Node) -> fx.Node:
        device = _device(node)
        made = self.graph.call_function(generator_state, (device,))
        tensor = next(tensors_in(node.meta["val"]))
        size = generator_state(device).numel()
        made.meta["val"] = tensor.new_empty(size, dtype=torch.uint8, device="cpu")
        return made

    def _replay_random(self, node: fx.Node, state: fx.Node) -> fx.Node:
        views: dict[fx.Node, Any] = {}
        args = fx.map_arg(node.args, lambda source: self._read(source, views))
        kwargs = fx.map_arg(node.kwargs, lambda source: self._read(source, views))
        replay_arguments: tuple[Any, ...] = (state, _device(node), node.target, args, kwargs)
        made = self.graph.call_function(replay, replay_arguments)
        made.meta = copied_meta(node)
        return made

    def _read(self, node: fx.Node, views: dict[fx.Node, Any]) -> Any:
        """Returns the node's tensor by applying views to the current version of its root.

        ``views`` caches the views that one reader has already applied.
        """
        if node in self.memory:
            return self._current_version(node)
        if node in views:
            return views[node]
        if node.op == "get_attr":
            made = self.graph.node_copy(node)
            made.meta = copied_meta(node)
            self.memory[node] = made
            return made
        value = node.meta.get("val")
        if node.target is operator.getitem and not isinstance(value, torch.Tensor):
            return value
        root = self._captured.roots.get(node)
        if root is not None and root is not node and _is_same_item(node, root):
            return self._read(root, views)
        if root is node:
            raise AssertionError(f"{node.name} is read before the plan computes it")
        views[node] = made = self._copy(node, views)
        return made

    def _copy(self, node: fx.Node, views: dict[fx.Node, Any]) -> fx.Node:
        args = fx.map_arg(node.args, lambda source: self._read(source, views))
        kwargs = fx.map_arg(node.kwargs, lambda source: self._read(source, views))
        made = self.graph.create_node(
            node.op, node.target, args, kwargs, self._unused_name(node), node.type
        )
        made.meta = copied_meta(node)
        return made

    def _unused_name(self, node: fx.Node) -> str:
        """Returns an unused name for a copy of the node; FX's own search is slow."""
        if node in self._copied:
            return f"{node.name}_again"
        self._copied.add(node)
        return node.name


def _moved_roots(captured: JointGraph, steps: Sequence[transfers.Step]) -> dict[int, fx.Node]:
    """Returns the roots of all values that are moved. Raises OffloadError."""
    roots = {value: node for node, value in captured.value_of.items()}
    shared = {value.alias_of for value in captured.values if value.alias_of is not None}
    moved_values = {step.value for step in steps if isinstance(step, Transfer)}
    for value in sorted(moved_values):
        name = captured.values[value].name
        if value in shared:
            raise OffloadError(f"the plan moves {name}, but another value shares its memory")
        if value not in roots:
            raise OffloadError(f"the plan moves {name}, but no operation reads it")
    return {value: roots[value] for value in moved_values}


def _roots_of(captured: JointGraph, node: fx.Node) -> list[fx.Node]:
    """Returns the roots whose views can be the node's tensor."""
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


def copied_meta(node: fx.Node) -> dict[str, Any]:
    """Returns the metadata of a node that also holds for its copy in another graph."""
    return {key: value for key, value in node.meta.items() if key not in _STALE_META}


def _output_descriptors(joint: fx.GraphModule) -> list[Any]:
    (output,) = joint.graph.find_nodes(op="output")
    flat = torch.utils._pytree.arg_tree_leaves(*output.args)
    found = output.meta.get("desc")
    if found is None:
        return [None] * len(flat)
    return torch.utils._pytree.arg_tree_leaves(found)
