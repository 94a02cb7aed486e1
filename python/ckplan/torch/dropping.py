"""Plans steps whose caller uses less than the model returns.

If a caller uses only the loss, no gradient arrives for the logits. PyTorch then passes zeros, which
the joint graph adds to the gradient from the loss. Operations that eager mode would skip for lack
of a gradient only compute zeros here, because they are all linear in gradients. They are left out,
and so are the sums that add their results.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ckplan.torch import operators, private
from ckplan.torch.building import notes_of
from ckplan.torch.capture import GRADIENT_NOTE, is_tangent, tensors_in
from ckplan.torch.errors import UnsupportedGraphError

DROPPED = (
    "the caller drops results of the model, or uses them without a gradient: from the second step "
    'on they are planned as such; returns="loss" says so from the start'
)

HELD_AFTER_ALL = (
    "the caller used results that it had dropped before: this step needs more memory than planned, "
    "and from the next one on they are planned as held"
)

HOOKED = (
    "saved_tensors_hooks are in force, so gradients are planned for all results again: "
    'returns="loss" leaves out those that your loop never uses'
)

LEAN_NOTE = "without results that the caller drops, or uses without a gradient"

RETAINED = (
    "a graph is retained for another backward pass, so that its saved tensors stay: planned peaks "
    "count them, and from the next step on the graph is planned as such"
)

GRADIENT_HELD = (
    "the caller holds a gradient that it passes to the backward pass until the end: planned peaks "
    "count it"
)

NO_LOSS = (
    'returns="loss", but a graph has no result of one element: all its results are planned for'
)

_SUM = torch.ops.aten.add.Tensor


def refused(error: Exception) -> str:
    """Says that a plan which would save memory is not used."""
    what = str(error).strip() or type(error).__name__
    return f"training goes on by the plan that it has: a better one is refused ({what})"


@dataclass(frozen=True)
class Unused:
    """The results and gradients of a step that its caller does not use."""

    absent: frozenset[int] = frozenset()
    """Positions among the tangents of gradients that do not arrive."""
    dropped: frozenset[int] = frozenset()
    """Positions of forward outputs that are not held until the backward pass."""

    def __and__(self, other: Unused) -> Unused:
        return Unused(self.absent & other.absent, self.dropped & other.dropped)

    def __le__(self, other: Unused) -> bool:
        return self.absent <= other.absent and self.dropped <= other.dropped


def beyond_the_loss(joint: fx.GraphModule, num_outputs: int) -> Unused | None:
    """Returns all but the results of one element, if a loss is among them; otherwise None."""
    tangents = [node for node in joint.graph.find_nodes(op="placeholder") if is_tangent(node)]
    (output,) = joint.graph.find_nodes(op="output")
    results = torch.utils._pytree.arg_tree_leaves(*output.args)[:num_outputs]
    absent = frozenset(i for i, node in enumerate(tangents) if not _is_scalar(node))
    if len(absent) == len(tangents):
        return None
    dropped = (i for i, node in enumerate(results) if isinstance(node, fx.Node))
    return Unused(absent, frozenset(i for i in dropped if not _is_scalar(results[i])))


def beyond_first_number(joint: fx.GraphModule) -> list[int]:
    """Returns the positions of all tangents but the first of one element, which is the loss's."""
    tangents = [node for node in joint.graph.find_nodes(op="placeholder") if is_tangent(node)]
    loss = next((i for i, node in enumerate(tangents) if _is_scalar(node)), None)
    return [i for i in range(len(tangents)) if i != loss]


def _is_scalar(node: fx.Node) -> bool:
    return all(private.most(tensor.numel()) == 1 for tensor in _tensors(node))


def without_gradients(joint: fx.GraphModule, absent: Collection[int]) -> fx.GraphModule:
    """Returns the graph without the tangents at the positions ``absent`` among all tangents.

    Raises UnsupportedGraphError if operations to be left out do more than make gradients.
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
        # Nodes of the old graph that depend on a tangent, and those of these nodes that are zero.
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
        made.meta = notes_of(node)
        made.meta["val"] = value.new_zeros(value.shape)
        made.meta[GRADIENT_NOTE] = True
        return made


def _check_is_linear(node: fx.Node) -> None:
    is_gradient = all(
        tensor.is_floating_point() or tensor.is_complex() for tensor in _tensors(node)
    )
    if not is_gradient or operators.is_random(node) or _acts(node):
        raise UnsupportedGraphError(f"operation {node.name} ({node.target}) makes no gradient")


def _other_summand(node: fx.Node, zeros: list[fx.Node]) -> fx.Node | None:
    """Returns the other summand of a sum with zeros; None for any other node or another form."""
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
    """Returns whether the operation does more than make its results."""
    return operators.is_collective(node) or operators.is_mutation(node) or not _tensors(node)


def _drop_unread(graph: fx.Graph) -> None:
    """Removes nodes that are never read, except operations with effects and random ones."""
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and not node.users:
            is_item = not isinstance(node.meta.get("val"), torch.Tensor) and not _tensors(node)
            if is_item and not operators.schema_name(node):
                graph.erase_node(node)  # A number that a getitem returned.
            elif not (operators.is_random(node) or _acts(node)):
                graph.erase_node(node)


def saving_again(forward: fx.GraphModule, num_outputs: int) -> fx.GraphModule:
    """Returns a module that makes the values that ``forward`` saves again, from the same inputs.

    Raises UnsupportedGraphError if a second run could do harm, or compute other values.
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
            raise UnsupportedGraphError(f"operation {node.name} ({node.target}) runs once")
        if reads_updated and not operators.ignores_running_statistics(node):
            raise UnsupportedGraphError(f"operation {node.name} reads what the step updates")
    graph.lint()
    return fx.GraphModule(forward, graph, "SavingAgain")


def _copied(old: fx.Graph, new: fx.Graph, skipped: int) -> dict[fx.Node, fx.Node]:
    """Copies all nodes, and the outputs after the first ``skipped`` ones."""
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


def inputs_kept(forward: fx.GraphModule) -> list[int]:
    """Returns the positions of the inputs that a forward module does not update itself."""
    updated = {node.args[0] for node in forward.graph.nodes if operators.is_mutation(node)}
    inputs = enumerate(forward.graph.find_nodes(op="placeholder"))
    return [position for position, node in inputs if node not in updated]
