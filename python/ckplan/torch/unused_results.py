"""Removes results that the caller does not use from a step, with their gradients.

If a caller uses only the loss, no gradient arrives for the logits. PyTorch then passes zeros, which
the joint graph adds to the gradient of the loss. Backward operations are linear in gradients, so
those that eager mode would skip only compute zeros here. They are removed, and so are the sums that
add their results.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ckplan.torch import operators, private
from ckplan.torch.capture import GRADIENT_NOTE, is_tangent, tensors_in
from ckplan.torch.errors import UnsupportedGraphError
from ckplan.torch.module_builder import copied_meta

DROPPED = (
    "the caller drops results of the model, or uses them without a gradient: plans take this "
    'into account from the second step on; returns="loss" does so from the start'
)

HELD_AFTER_ALL = (
    "the caller used results that it had dropped before: this step needs more memory than planned, "
    "and plans count these results from the next step on"
)

HOOKED = (
    "saved_tensors_hooks are active, so plans count the gradients of all results again: "
    'returns="loss" excludes those that your loop never uses'
)

UNUSED_NOTE = "without results that the caller drops, or uses without a gradient"

RETAINED = (
    "a graph is retained for another backward pass, so its saved tensors stay: planned peaks now "
    "count them, and from the next step on plans do too"
)

GRADIENT_HELD = (
    "the caller holds a gradient that it passes to the backward pass until the pass ends: planned "
    "peaks now count it"
)

NO_LOSS = 'returns="loss", but a graph has no one-element result, so its plan counts all results'

_SUM = torch.ops.aten.add.Tensor


def better_plan_refused(error: Exception) -> str:
    """Returns the warning that a plan which would save memory was rejected."""
    what = str(error).strip() or type(error).__name__
    return f"training continues with the current plan, because a better one failed ({what})"


@dataclass(frozen=True)
class Unused:
    """Results that the caller drops, and tangents it passes no gradient for."""

    absent: frozenset[int] = frozenset()
    """Positions of tangents whose gradients do not arrive."""
    dropped: frozenset[int] = frozenset()
    """Positions of forward outputs that are freed before the backward pass."""

    def __and__(self, other: Unused) -> Unused:
        return Unused(self.absent & other.absent, self.dropped & other.dropped)

    def __le__(self, other: Unused) -> bool:
        return self.absent <= other.absent and self.dropped <= other.dropped


def results_beyond_loss(joint: fx.GraphModule, num_outputs: int) -> Unused | None:
    """Returns everything but one-element results as unused; None if there is no loss."""
    tangents = [node for node in joint.graph.find_nodes(op="placeholder") if is_tangent(node)]
    (output,) = joint.graph.find_nodes(op="output")
    results = torch.utils._pytree.arg_tree_leaves(*output.args)[:num_outputs]
    absent = frozenset(i for i, node in enumerate(tangents) if not _is_scalar(node))
    if len(absent) == len(tangents):
        return None
    dropped = (i for i, node in enumerate(results) if isinstance(node, fx.Node))
    return Unused(absent, frozenset(i for i in dropped if not _is_scalar(results[i])))


def tangents_beyond_loss(joint: fx.GraphModule) -> list[int]:
    """Returns the positions of all tangents but that of the loss, the first with one element."""
    tangents = [node for node in joint.graph.find_nodes(op="placeholder") if is_tangent(node)]
    loss = next((i for i, node in enumerate(tangents) if _is_scalar(node)), None)
    return [i for i in range(len(tangents)) if i != loss]


def _is_scalar(node: fx.Node) -> bool:
    return all(private.upper_bound(tensor.numel()) == 1 for tensor in _tensors(node))


def without_gradients(joint: fx.GraphModule, absent: Collection[int]) -> fx.GraphModule:
    """Returns the graph without the tangents at the positions ``absent`` among all tangents.

    Raises UnsupportedGraphError if a removed operation does more than compute gradients.
    """
    if not absent:
        return joint
    writer = _Writer(absent)
    for node in joint.graph.nodes:
        writer.visit(node)
    _drop_unread(writer.graph)
    writer.graph.lint()
    return fx.GraphModule(joint, writer.graph, "JointWithoutGradients")


class _Writer:
    """Copies a graph, except for operations whose result is zero."""

    def __init__(self, absent: Collection[int]):
        self.graph = fx.Graph()
        self._absent = absent
        self._tangents = 0
        self._made: dict[fx.Node, fx.Node] = {}
        # Nodes of the old graph that depend on a tangent, and those among them that are zero.
        self._gradients: set[fx.Node] = set()
        self._zeros: set[fx.Node] = set()

    def visit(self, node: fx.Node) -> None:
        if is_tangent(node):
            self._gradients.add(node)
            self._tangents += 1
            if self._tangents - 1 in self._absent:
                self._zeros.add(node)
                return
        elif node.op == "call_function" and self._is_left_out(node):
            return
        self._made[node] = self.graph.node_copy(node, self._read)
        if node.op == "output":
            self._made[node].meta = dict(node.meta)

    def _is_left_out(self, node: fx.Node) -> bool:
        gradients = [source for source in node.all_input_nodes if source in self._gradients]
        if not gradients:
            return False
        self._gradients.add(node)
        zeros = [source for source in gradients if source in self._zeros]
        if len(zeros) == len(gradients):
            _check_is_linear(node)
            self._zeros.add(node)
            return True
        other = _other_summand(node, zeros)
        if other is None:
            return False
        self._made[node] = self._made[other]
        return True

    def _read(self, node: fx.Node) -> fx.Node:
        if node not in self._made:
            self._made[node] = self._write_zeros(node)
        return self._made[node]

    def _write_zeros(self, node: fx.Node) -> fx.Node:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or not value.is_contiguous():
            raise UnsupportedGraphError(f"zeros in the form of {node.name}")
        made = self.graph.call_function(
            torch.ops.aten.zeros.default,
            (list(value.shape),),
            {"dtype": value.dtype, "device": value.device, "pin_memory": False},
        )
        made.meta = copied_meta(node)
        made.meta["val"] = value.new_zeros(value.shape)
        made.meta[GRADIENT_NOTE] = True
        return made


def _check_is_linear(node: fx.Node) -> None:
    is_gradient = all(
        tensor.is_floating_point() or tensor.is_complex() for tensor in _tensors(node)
    )
    if not is_gradient or operators.is_random(node) or _acts(node):
        raise UnsupportedGraphError(
            f"operation {node.name} ({node.target}) does not compute a gradient"
        )


def _other_summand(node: fx.Node, zeros: list[fx.Node]) -> fx.Node | None:
    """Returns x for a sum x + zeros of the same shape; None for any other node."""
    if node.target is not _SUM or len(zeros) != 1 or node.kwargs or len(node.args) != 2:
        return None
    other = next((source for source in node.args if source is not zeros[0]), None)
    if not isinstance(other, fx.Node):
        return None
    (mine,), theirs = _tensors(node), _tensors(other)
    if [_form(mine)] != [_form(tensor) for tensor in theirs]:
        return None
    return other


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tuple(tensor.shape), tensor.stride()


def _tensors(node: fx.Node) -> list[torch.Tensor]:
    return list(tensors_in(node.meta.get("val")))


def _acts(node: fx.Node) -> bool:
    """Returns whether the operation has side effects."""
    return operators.is_collective(node) or operators.is_mutation(node) or not _tensors(node)


def _drop_unread(graph: fx.Graph) -> None:
    """Removes unread nodes, except operations with side effects and random ones."""
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and not node.users:
            is_item = not isinstance(node.meta.get("val"), torch.Tensor) and not _tensors(node)
            if is_item and not operators.schema_name(node):
                graph.erase_node(node)  # A number that a getitem returned.
            elif not (operators.is_random(node) or _acts(node)):
                graph.erase_node(node)


def rerun_module(forward: fx.GraphModule, num_outputs: int) -> fx.GraphModule:
    """Returns a module that recomputes the values that ``forward`` saves, from the same inputs.

    Raises UnsupportedGraphError if a second run is unsafe or could compute other values.
    """
    graph = fx.Graph()
    copies = _copied(forward.graph, graph, num_outputs)
    updates = [node for node in copies.values() if operators.is_mutation(node)]
    updated = {node.args[0] for node in updates}
    for node in updates:
        graph.erase_node(node)
    _drop_unread(graph)
    for node in graph.nodes:
        reads_updated = updated.intersection(node.all_input_nodes)
        if node.op != "call_function":
            continue
        if _acts(node) and operators.schema_name(node) and not operators.is_number(node):
            raise UnsupportedGraphError(f"operation {node.name} ({node.target}) must not run twice")
        if reads_updated and not operators.ignores_running_statistics(node):
            raise UnsupportedGraphError(
                f"operation {node.name} reads a tensor that the step updates"
            )
    graph.lint()
    return fx.GraphModule(forward, graph, "SavingAgain")


def _copied(old: fx.Graph, new: fx.Graph, skipped: int) -> dict[fx.Node, fx.Node]:
    """Copies all nodes, and all outputs but the first ``skipped``."""
    copies: dict[fx.Node, fx.Node] = {}
    for node in old.nodes:
        if node.op == "output":
            new.output(fx.map_arg(tuple(node.args[0][skipped:]), copies.__getitem__))
        else:
            copies[node] = new.node_copy(node, copies.__getitem__)
    return copies


def random_devices(module: fx.GraphModule) -> list[torch.device]:
    """Returns the devices from whose generators the module draws."""
    nodes = [node for node in module.graph.nodes if operators.is_random(node)]
    return list(dict.fromkeys(_tensors(node)[0].device for node in nodes))


def unmodified_inputs(forward: fx.GraphModule) -> list[int]:
    """Returns the positions of the inputs that a forward module does not update itself."""
    updated = {node.args[0] for node in forward.graph.nodes if operators.is_mutation(node)}
    inputs = enumerate(forward.graph.find_nodes(op="placeholder"))
    return [position for position, node in inputs if node not in updated]
