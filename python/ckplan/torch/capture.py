"""Converts PyTorch's joint FX graph to ckplan's JointGraph.

Memory follows the storages of the fake tensors in ``meta["val"]``: a node is a view if its storage
was made by another node.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from ckplan.torch import operators, private, private_autograd, storages
from ckplan.torch.bounds import Bounds, apply_bounds
from ckplan.torch.errors import UnsupportedGraphError
from ckplan.torch.graph import CONSTANT, PARAMETER_GRADIENT, JointGraph, Operation


def capture(
    joint: fx.GraphModule,
    num_forward_outputs: int,
    parameters: set[int] | None,
    *,
    replays_random: bool = True,
    arriving: bool = False,
    dropped: Collection[int] = (),
    bounds: Bounds | None = None,
) -> JointGraph:
    """Returns the joint graph of a training step.

    ``parameters``: positions of parameters among the inputs of the step; None for all inputs.
        Gradients of other inputs are results, which count in the peak.
    ``replays_random``: random operations may run again, since the generator's state is restored.
    ``arriving``: gradients of parameters count in the peak from the run that makes them.
    ``dropped``: positions of forward outputs that the caller does not hold.
    ``bounds``: upper bounds of data-dependent sizes.

    Raises UnsupportedGraphError, and UnboundedSizeError for a size without a bound.
    """
    walk = _Capture(joint, replays_random)
    walk.graph.checks = apply_bounds(joint, bounds)
    walk.outputs(num_forward_outputs)
    for node in joint.graph.nodes:
        walk.visit(node)
    walk.insert_boundary(dropped)
    walk.mark_parameters(parameters)
    walk.mark_gradients(parameters, arriving)
    return walk.graph


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yields the tensors in a node's ``meta["val"]``, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def storage_bytes(tensor: torch.Tensor) -> int:
    """Returns the size of the tensor's memory. Raises UnsupportedGraphError."""
    try:
        size = tensor.untyped_storage().nbytes()
    except (NotImplementedError, RuntimeError) as error:
        raise UnsupportedGraphError(f"a tensor has no storage: {error}") from error
    most = private.upper_bound(size)
    if most is None:
        raise UnsupportedGraphError(
            "data-dependent or dynamic sizes; dynamic=False fixes the batch size"
        )
    return most


def _sizes(tensors: Iterable[torch.Tensor], memory: int | None = None) -> Iterator[tuple[int, int]]:
    """Yields the number of elements of each tensor, and the bytes of an element.

    ``memory``, the bytes that all the tensors occupy, is an upper bound: an expanded tensor has
    more elements, and two parameters may share a gradient.
    """
    for tensor in tensors:
        elements, each = tensor.numel(), tensor.element_size()
        if memory is not None:
            elements = min(elements, memory // each)
            memory -= elements * each
        yield elements, each


def _group_sizes(sizes: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Groups equal sizes: (elements, bytes of an element, number of tensors). Drops empty ones."""
    return [(*size, count) for size, count in sorted(Counter(sizes).items()) if size[0]]


def is_tangent(node: fx.Node) -> bool:
    """Returns whether the node is the gradient of an output of the forward module."""
    return node.op == "placeholder" and node.name.startswith("tangents")


GRADIENT_NOTE = "ckplan_gradient"
"""The metadata key of a node that makes a gradient without using one from the caller."""


def is_held_by_caller(tangent: torch.Tensor) -> bool:
    """Returns whether a gradient from the caller stays in memory until backward ends.

    ``loss.backward()`` holds the one-element gradient of the loss itself.
    """
    return private.upper_bound(tangent.numel()) == 1 or not private_autograd.frees_gradients()


class _Capture:
    """One walk over the nodes of a joint FX graph."""

    def __init__(self, joint: fx.GraphModule, replays_random: bool):
        self.graph = JointGraph()
        self._joint = joint
        self._replays_random = replays_random
        # By storage: the node that made it. The nodes hold all tensors, so the keys stay valid.
        self._owner: dict[int, fx.Node] = {}
        # By storage: the values of results that no getitem has read yet.
        self._unnamed: dict[int, int] = {}
        self._tangents: list[fx.Node] = []
        self._after_tangents: set[fx.Node] = set()
        self._held_at_boundary: list[int] = []
        self._mutated: set[fx.Node] = set()
        self._last_random: int | None = None
        self._last_random_before_boundary: int | None = None

    def outputs(self, num_forward_outputs: int) -> None:
        """Records the outputs, and the inputs that are updated at the end of the forward pass."""
        (output,) = self._joint.graph.find_nodes(op="output")
        flat = _flatten(output.args[0])
        self.graph.forward_outputs = flat[:num_forward_outputs]
        self.graph.backward_outputs = flat[num_forward_outputs:]
        for node in self._joint.graph.nodes:
            if node.op == "call_function" and operators.is_mutation(node):
                self._boundary_copy(node)

    def visit(self, node: fx.Node) -> None:
        depends = any(source in self._after_tangents for source in node.all_input_nodes)
        if depends or node.meta.get(GRADIENT_NOTE):
            self._after_tangents.add(node)
        if node.op == "placeholder":
            self._placeholder(node)
        elif node.op == "get_attr":
            self._constant(node)
        elif node.op == "call_function":
            if node.target is operator.getitem:
                self._getitem(node)
            elif operators.is_number(node):
                self.graph.numbers[node] = None
            elif isinstance(node.target, OpOverload) or operators.is_opaque(node):
                if not operators.is_mutation(node):
                    self._call(node)
            else:
                raise UnsupportedGraphError(f"operation {node.name} calls {node.target}")
        elif node.op != "output":
            raise UnsupportedGraphError(f"node {node.name} of kind {node.op}")

    def insert_boundary(self, dropped: Collection[int]) -> None:
        """Adds the boundary after the last operation that it reads from."""
        graph = self.graph
        outputs = enumerate(graph.forward_outputs)
        made = ((i, node) for i, node in outputs if isinstance(node, fx.Node))
        roots = {i: self._root_of(node) for i, node in made if not operators.is_number(node)}
        returned = [graph.value_of[root] for root in dict.fromkeys(roots.values())]
        held = {graph.value_of[root] for i, root in roots.items() if i not in dropped}
        copied = [
            graph.value_of[self._root_of(copy.all_input_nodes[-1])]
            for copy in graph.boundary_copies
        ]
        if self._last_random_before_boundary is not None:
            copied.append(self._last_random_before_boundary)
        read = dict.fromkeys(returned + copied + self._held_at_boundary)
        reads = [value for value in read if graph.values[value].kind != CONSTANT]
        writes = []
        for value in returned:
            if graph.values[value].kind == CONSTANT or value not in held:
                continue
            writes.append(
                graph.add_value(f"{graph.values[value].name}_returned", 0, alias_of=value)
            )
        graph.results += writes
        graph.results += [
            graph.value_of[node] for node in self._tangents if is_held_by_caller(self._tensor(node))
        ]
        writes = writes + [graph.value_of[node] for node in self._tangents]
        boundary = Operation(0, None, reads, writes, repeats=False)
        self._place_boundary(boundary)
        for position, operation in enumerate(graph.operations):
            operation.id = position
        graph.boundary = boundary.id

    def mark_parameters(self, parameters: set[int] | None) -> None:
        """Sets how many bytes of the constants are parameters."""
        graph = self.graph
        inputs = self._joint.graph.find_nodes(op="placeholder")
        graph.parameters = {
            position
            for position, node in enumerate(inputs)
            if not is_tangent(node) and (parameters is None or position in parameters)
        }
        values = {graph.value_of[inputs[position]] for position in graph.parameters}
        graph.parameter_bytes = sum(graph.values[value].bytes for value in values)

    def mark_gradients(self, parameters: set[int] | None, arriving: bool) -> None:
        """Marks the values that are gradients of parameters; other gradients are results."""
        graph = self.graph
        gradients: dict[int, bool] = {}
        tensors: dict[int, list[torch.Tensor]] = {}
        for position, node in enumerate(graph.backward_outputs):
            if not isinstance(node, fx.Node):
                continue
            value = graph.value_of[self._root_of(node)]
            if graph.values[value].kind != CONSTANT and value not in graph.results:
                of_parameter = parameters is None or position in parameters
                gradients[value] = gradients.get(value, True) and of_parameter
                tensors.setdefault(value, []).append(self._tensor(node))
        trained = [value for value, of_parameter in gradients.items() if of_parameter]
        graph.trained_bytes = sum(graph.values[value].bytes for value in trained)
        graph.trained = _group_sizes(size for value in trained for size in _sizes(tensors[value]))
        graph.optimized = _group_sizes(
            size for value in trained for size in _sizes(tensors[value], graph.values[value].bytes)
        )
        for value, of_parameter in gradients.items():
            if of_parameter and not arriving:
                graph.values[value].kind = PARAMETER_GRADIENT
            else:
                graph.results.append(value)
        self._keep_gradients_single()

    def _keep_gradients_single(self) -> None:
        """Forbids a second run of operations that make an uncounted gradient and other values.

        A second run would allocate the gradient again, but only one is counted separately.
        """
        values = self.graph.values
        for operation in self.graph.operations:
            kinds = [values[value].kind == PARAMETER_GRADIENT for value in operation.writes]
            if any(kinds) and not all(kinds):
                operation.repeats = False

    def _boundary_copy(self, node: fx.Node) -> None:
        target = node.args[0] if node.args else None
        if (
            operators.schema_name(node) != "aten::copy_"
            or getattr(target, "op", "") != "placeholder"
        ):
            raise UnsupportedGraphError(
                f"operation {node.name} ({node.target}) writes to its input"
            )
        if not isinstance(node.args[1], fx.Node) or node.users:
            raise UnsupportedGraphError(
                f"operation {node.name} updates an input that another operation reads later"
            )
        self.graph.boundary_copies.append(node)
        self._mutated.add(target)  # type: ignore[arg-type]

    def _placeholder(self, node: fx.Node) -> None:
        if is_tangent(node):
            self._tangents.append(node)
            self._after_tangents.add(node)
            tensor = self._tensor(node)
            self._register(node, tensor, self.graph.add_value(node.name, storage_bytes(tensor)))
        elif node.name.startswith("primals"):
            self._constant(node)
        else:
            raise UnsupportedGraphError(
                f"input {node.name} is neither a tensor of the model nor a gradient"
            )

    def _constant(self, node: fx.Node) -> None:
        value = node.meta.get("val", getattr(self._joint, str(node.target), None))
        if not isinstance(value, torch.Tensor):
            raise UnsupportedGraphError(
                f"input {node.name} is not a tensor; if it is a dynamic size, use dynamic=False"
            )
        if private.storage_key(value) in self._owner:
            # Two inputs share this memory, which counts once.
            self.graph.roots[node] = node
            self.graph.value_of[node] = self.graph.value_of[self._owner[private.storage_key(value)]]
            return
        self._register(node, value, self.graph.add_value(node.name, storage_bytes(value), CONSTANT))

    def _root_of(self, node: fx.Node) -> fx.Node:
        if node not in self.graph.roots:
            raise UnsupportedGraphError(f"the step returns {node.name}, which is not a tensor")
        return self.graph.roots[node]

    def _tensor(self, node: fx.Node) -> torch.Tensor:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise UnsupportedGraphError(f"{node.name} is not a tensor")
        return value

    def _register(self, node: fx.Node, tensor: torch.Tensor, value: int) -> None:
        self._owner[private.storage_key(tensor)] = node
        self.graph.roots[node] = node
        self.graph.value_of[node] = value

    def _getitem(self, node: fx.Node) -> None:
        source = node.args[0]
        assert isinstance(source, fx.Node)
        item = source.meta["val"][node.args[1]]
        if not isinstance(item, torch.Tensor):
            return  # A number, which its readers get as an argument.
        key = private.storage_key(item)
        if key in self._unnamed:
            self._register(node, item, self._unnamed.pop(key))
        elif key in self._owner:
            self.graph.roots[node] = self._owner[key]
        else:
            raise UnsupportedGraphError(f"{node.name} has no known source")

    def _call(self, node: fx.Node) -> None:
        tensors = list(tensors_in(node.meta.get("val")))
        keys = dict.fromkeys(private.storage_key(tensor) for tensor in tensors)
        known = [key for key in keys if key in self._owner]
        runs_once = operators.runs_once(node)
        if (
            tensors
            and not runs_once
            and (len(known) == len(keys) or operators.is_declared_view(node))
        ):
            self._view(node, tensors)
        elif not known or (runs_once and len(known) == len(keys)):
            self._operation(node, tensors)
        else:
            raise UnsupportedGraphError(
                f"operation {node.name} ({node.target}) returns both new memory and its arguments'"
            )

    def _view(self, node: fx.Node, tensors: list[torch.Tensor]) -> None:
        base = next((n for n in node.all_input_nodes if n in self.graph.roots), None)
        for tensor in tensors:
            if private.storage_key(tensor) not in self._owner:
                if base is None:
                    raise UnsupportedGraphError(
                        f"operation {node.name} is a view without a base tensor"
                    )
                self._owner[private.storage_key(tensor)] = self.graph.roots[base]
        if isinstance(node.meta["val"], torch.Tensor):
            self.graph.roots[node] = self._owner[private.storage_key(tensors[0])]

    def _operation(self, node: fx.Node, tensors: list[torch.Tensor]) -> None:
        graph = self.graph
        operation = Operation(0, node, self._reads(node), [], module=operators.module_path(node))
        operation.is_backward = node in self._after_tangents
        operation.repeats = not operators.runs_once(node)
        for position, tensor in enumerate(tensors):
            self._write(operation, tensor, position)
        if operators.is_random(node):
            operation.is_random = True
            operation.repeats = operation.repeats and self._replays_random
            self._keep_order_of_random(operation)
        if not tensors:
            self._hold(operation)
            operation.repeats = False
        if self._reads_mutated(node):
            self._hold(operation)
            operation.repeats = False
        graph.operations.append(operation)

    def _reads(self, node: fx.Node) -> list[int]:
        values = []
        for source in node.all_input_nodes:
            if source in self.graph.roots:
                values.append(self.graph.value_of[self.graph.roots[source]])
            elif list(tensors_in(source.meta.get("val"))):
                raise UnsupportedGraphError(
                    f"operation {node.name} reads a list of tensors, {source.name}"
                )
        return list(dict.fromkeys(values))

    def _write(self, operation: Operation, tensor: torch.Tensor, position: int) -> None:
        node = operation.node
        assert node is not None
        key = private.storage_key(tensor)
        is_single = isinstance(node.meta["val"], torch.Tensor)
        name = node.name if is_single else f"{node.name}.{position}"
        if key in self._owner:  # Communication that works in place.
            base = self.graph.value_of[self._owner[key]]
            value = self.graph.add_value(name, 0, alias_of=base)
        elif key in self._unnamed:
            raise UnsupportedGraphError(
                f"operation {node.name} returns two tensors that share memory"
            )
        else:
            size = max(storage_bytes(tensor), storages.allocated_bytes(node, position))
            value = self.graph.add_value(name, size)
        operation.writes.append(value)
        if is_single:
            self._register(node, tensor, value)
        else:
            self._owner.pop(key, None)
            self._unnamed[key] = value

    def _keep_order_of_random(self, operation: Operation) -> None:
        """Chains random operations by values of 0 bytes, to keep the order of eager mode."""
        if self._last_random is not None:
            operation.reads.append(self._last_random)
        self._last_random = self.graph.add_value(f"{operation.name}.order", 0)
        operation.writes.append(self._last_random)
        if not operation.is_backward:
            self._last_random_before_boundary = self._last_random

    def _hold(self, operation: Operation) -> None:
        """Makes the operation run before the boundary."""
        if operation.is_backward:
            raise UnsupportedGraphError(f"operation {operation.name} has side effects")
        token = self.graph.add_value(f"{operation.name}.done", 0)
        operation.writes.append(token)
        self._held_at_boundary.append(token)

    def _reads_mutated(self, node: fx.Node) -> bool:
        if not self._mutated or operators.ignores_running_statistics(node):
            return False
        roots = {self.graph.roots.get(source) for source in node.all_input_nodes}
        return bool(roots & self._mutated)

    def _place_boundary(self, boundary: Operation) -> None:
        """Inserts the boundary where the backward pass begins, after all that it reads."""
        operations = self.graph.operations
        reads = set(boundary.reads)
        writers = [i for i, operation in enumerate(operations) if reads & set(operation.writes)]
        misplaced = next((operations[i] for i in writers if operations[i].is_backward), None)
        if misplaced is not None:
            raise UnsupportedGraphError(
                f"{misplaced.name} is needed before the backward pass, but belongs to it"
            )
        starts = [i for i, operation in enumerate(operations) if operation.is_backward]
        position = starts[0] if starts else len(operations)
        if writers and writers[-1] >= position:
            operations.sort(key=lambda operation: operation.is_backward)
            position = len(operations) - len(starts)
        operations.insert(position, boundary)


def _flatten(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _flatten(item)]
    return [value]
