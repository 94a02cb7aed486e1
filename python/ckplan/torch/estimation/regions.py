"""Lets TorchDynamo trace the code of equal layers only once, if PyTorch supports that.

``torch.compiler.nested_compile_region`` marks a function whose graph TorchDynamo reuses for later
calls, after it has compared everything that the code depends on: shapes, attributes, globals. It
traces layers that differ separately. The resulting graph calls the graphs of the layers. This
module inlines them, so that the result is the graph that TorchDynamo makes of unmarked layers.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any

from torch import fx, nn

from ckplan.torch import private as names
from ckplan.torch.estimation import private
from ckplan.torch.estimation.layer_folding import KEPT


class CannotInlineError(Exception):
    """The graph of a layer has an unsupported form."""


@contextlib.contextmanager
def marked(model: nn.Module) -> Iterator[bool]:
    """Marks the classes of layers in long lists. Yields whether there are any."""
    kinds = _count_layer_classes(model) if private.uses_regions_again() else {}
    forwards = {kind: vars(kind).get("forward") for kind in kinds}
    for kind, count in kinds.items():
        setattr(kind, "forward", private.region(kind.forward, count))
    try:
        yield bool(kinds)
    finally:
        for kind, forward in forwards.items():
            if forward is None:
                delattr(kind, "forward")
            else:
                setattr(kind, "forward", forward)


def _count_layer_classes(model: nn.Module) -> dict[type[nn.Module], int]:
    """Returns the classes with many layers in one list, and how many layers each has in all."""
    modules = list(model.modules())
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in modules):
        return {}  # TorchDynamo does not reuse a graph that changes statistics.
    found: dict[type[nn.Module], int] = {}
    for parent in modules:
        if not isinstance(parent, (nn.ModuleList, nn.Sequential)) or len(parent) <= KEPT:
            continue
        for kind in {type(layer) for layer in parent}:
            count = sum(type(layer) is kind for layer in parent)
            if count > KEPT:
                found[kind] = found.get(kind, 0) + count
    return found


def inlined(module: fx.GraphModule, inputs: list[Any]) -> tuple[fx.GraphModule, list[Any]]:
    """Returns a graph without calls of other graphs, and its inputs.

    The inputs are in the order in which they are read, whether or not there were calls: TorchDynamo
    lists the inputs of a call before others. Raises CannotInlineError.
    """
    writer = _Writer(module)
    for node in module.graph.nodes:
        writer.add(node)
    value_of = dict(zip(writer.graph.find_nodes(op="placeholder"), inputs))
    _order_inputs(writer.graph)
    copy: fx.GraphModule = names.copy_notes(fx.GraphModule(module, writer.graph), module)
    return copy, [value_of[node] for node in writer.graph.find_nodes(op="placeholder")]


def _order_inputs(graph: fx.Graph) -> None:
    """Puts the inputs in the order in which they are read."""
    nodes = list(graph.nodes)
    place = {node: position for position, node in enumerate(nodes)}

    def read_at(node: fx.Node) -> tuple[int, int]:
        user = min(node.users, key=lambda user: place[user], default=None)
        return (
            (len(nodes), 0)
            if user is None
            else (
                place[user],
                user.all_input_nodes.index(node),
            )
        )

    first = next(node for node in nodes if node.op != "placeholder")
    for node in sorted(graph.find_nodes(op="placeholder"), key=read_at):
        first.prepend(node)


class _Writer:
    """Copies a graph, and inlines the graphs that it calls."""

    def __init__(self, module: fx.GraphModule):
        self.graph = fx.Graph()
        self._module = module
        self._made: dict[Any, Any] = {}

    def add(self, node: fx.Node) -> None:
        if private.is_region(node):
            self._made[node] = self._call(node)
        elif node.target is operator.getitem and isinstance(self._made[node.args[0]], tuple):
            self._made[node] = self._made[node.args[0]][node.args[1]]
        elif node.op != "get_attr" or not all(private.is_region(user) for user in node.users):
            self._made[node] = self._copy(node, self._made)

    def _copy(self, node: fx.Node, made: dict[Any, Any]) -> fx.Node:
        copy = self.graph.node_copy(node, lambda read: made[read])
        found: fx.Node = names.copy_notes(copy, node)
        return found

    def _call(self, node: fx.Node) -> tuple[Any, ...]:
        """Copies the graph that a call runs, and returns its results."""
        target, _, *operands = node.args
        assert isinstance(target, fx.Node)
        inner = getattr(self._module, str(target.target)).graph
        inputs = inner.find_nodes(op="placeholder")
        if len(inputs) != len(operands):
            raise CannotInlineError(f"{node.name} has {len(operands)} arguments")
        made: dict[Any, Any] = {
            one: self._made[other] if isinstance(other, fx.Node) else other
            for one, other in zip(inputs, operands)
        }
        for inner_node in inner.nodes:
            if inner_node.op == "call_function" or inner_node.op == "call_method":
                made[inner_node] = self._copy(inner_node, made)
                made[inner_node].meta = _layer_metadata(inner_node, node)
            elif inner_node.op == "output":
                return tuple(fx.map_arg(inner_node.args[0], lambda read: made[read]))
            elif inner_node.op != "placeholder":
                raise CannotInlineError(f"{inner_node.name} in a layer is a {inner_node.op}")
        raise CannotInlineError(f"{node.name} returns nothing")


def _layer_metadata(node: fx.Node, call: fx.Node) -> dict[str, Any]:
    """Returns the metadata of a node, with the modules of the layer that the call is for."""
    meta = dict(node.meta)
    # These symbols belong to the traced layer. Each layer makes its own.
    meta.pop("unbacked_bindings", None)
    inner_stack, outer = meta.get("nn_module_stack"), call.meta.get("nn_module_stack")
    if not inner_stack or not outer:
        raise CannotInlineError(f"{node.name} has no module")
    paths = [path for path, _ in outer.values()]
    before = list(inner_stack.values())[len(paths) - 1 : len(paths)]
    if not before:
        raise CannotInlineError(f"{node.name} lies outside of its layer")
    first, layer = before[0][0], paths[-1]
    stack = {}
    for position, (key, (path, kind)) in enumerate(inner_stack.items()):
        if position < len(paths):
            path = paths[position]
        elif path.startswith(first):
            path = layer + path[len(first) :]
        else:
            raise CannotInlineError(f"{node.name} lies in another module than its layer")
        stack[key] = path, kind
    meta["nn_module_stack"] = stack
    return meta
