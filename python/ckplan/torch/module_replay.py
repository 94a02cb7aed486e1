"""Simulates the forward and backward modules, and returns the memory that they need.

The simulation uses neither the plan nor the joint graph, so it checks the modules as built. It
visits the nodes in the order of the code, gives each result new memory unless its fake tensor
shares an argument's memory, and frees memory that no later node reads.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

from torch import fx

from ckplan.torch import operators, private, storages
from ckplan.torch.capture import is_held_by_caller, storage_bytes, tensors_in
from ckplan.torch.module_builder import Modules
from ckplan.torch.offload.emitting import kind_of
from ckplan.torch.offload.steps import OUT
from ckplan.torch.randomness import generator_state


@dataclass(frozen=True)
class Replay:
    """Bytes of activations, their gradients and results, without inputs and parameters."""

    peak_bytes: int
    forward_peak_bytes: int
    saved_bytes: int
    """Bytes in memory between the two modules."""
    host_peak_bytes: int = 0
    """Peak bytes of copies on the host, which the other figures exclude."""
    saved_host_bytes: int = 0


@dataclass(eq=False)
class _Memory:
    """One allocation, with the number of its users."""

    bytes: int
    users: int = 0
    is_host: bool = False


def replay_modules(
    modules: Modules,
    uncounted_gradients: Iterable[int],
    dropped: Container[int] = (),
    is_retained: bool = False,
    held: Container[int] = (),
) -> Replay:
    """Returns the memory a step needs to run ``modules``.

    ``dropped``: positions of forward outputs that the caller does not hold.
    ``uncounted_gradients``: positions of backward outputs to exclude, such as parameter gradients.
    ``is_retained``: the graph is retained, so saved tensors stay to the end.
    ``held``: positions of incoming gradients that the caller holds until the end.
    """
    forward = _Pass(modules.forward)
    for node in _inputs(modules.forward):
        forward.hold(node, [_Memory(0)])
    outputs = _outputs(modules.forward)
    returned, saved = outputs[: modules.num_forward_outputs], outputs[modules.num_forward_outputs :]
    numbers = modules.num_numbers
    passed = saved[len(saved) - numbers :] + saved[: len(saved) - numbers]

    backward = _Pass(modules.backward)
    backward.exclude(_outputs(modules.backward), uncounted_gradients)
    forward.exclude_saved(backward, passed, returned)
    forward.run()
    kept = _drop_duplicates(forward, outputs)
    for memory in kept:
        memory.users = 0
    held_results = [r for i, r in enumerate(returned) if i not in dropped]
    for memory in _drop_duplicates(forward, held_results):
        memory.users += 1  # The caller holds the results until the end.
    if is_retained:
        for memory in _drop_duplicates(forward, saved):
            memory.users += 1
    inputs = _inputs(modules.backward)
    for node, source in zip(inputs, passed):
        backward.hold(node, forward.memories[source])
    for position, node in enumerate(inputs[len(saved) :]):
        tensor = next(tensors_in(node.meta["val"]))
        is_held = position in held or is_held_by_caller(tensor)
        memory = _Memory(storage_bytes(tensor), users=int(is_held))
        kept.append(memory)
        backward.hold(node, [memory])
    at_boundary = sum(memory.bytes for memory in kept if not memory.is_host)
    # Dropped results are freed before the backward pass, unless it reads them.
    live = [memory for memory in kept if memory.users > 0]
    backward.live = sum(memory.bytes for memory in live if not memory.is_host)
    backward.host_live = sum(memory.bytes for memory in live if memory.is_host)
    saved_bytes, saved_host_bytes = backward.live, backward.host_live
    backward.run()
    peak = max(forward.peak, at_boundary, backward.peak)
    host_peak = max(forward.host_peak, saved_host_bytes, backward.host_peak)
    return Replay(peak, max(forward.peak, at_boundary), saved_bytes, host_peak, saved_host_bytes)


def replay_built(
    forward: fx.GraphModule,
    backward: fx.GraphModule,
    num_outputs: int,
    uncounted_gradients: Iterable[int],
    dropped: Container[int] = (),
    is_retained: bool = False,
    held: Container[int] = (),
) -> Replay:
    """Like ``replay_modules``, for two modules that are compiled already."""
    numbers = sum(not list(tensors_in(n.meta.get("val"))) for n in _outputs(forward)[num_outputs:])
    modules = Modules(forward, backward, num_outputs, numbers)
    return replay_modules(modules, uncounted_gradients, dropped, is_retained, held)


class _Pass:
    """The memory of one module while it runs."""

    def __init__(self, module: fx.GraphModule):
        self.module = module
        self.memories: dict[fx.Node, list[_Memory]] = {}
        self.uncounted: set[fx.Node] = set()
        self.live = 0
        self.peak = 0
        self.host_live = 0
        self.host_peak = 0
        self._nodes = list(module.graph.nodes)
        self._keys: dict[fx.Node, list[int]] = {}
        self._last_reads = _last_reads(self._nodes)

    def hold(self, node: fx.Node, memories: list[_Memory]) -> None:
        self.memories[node] = memories
        for memory in memories:
            memory.users += 1

    def exclude(self, outputs: list[Any], positions: Iterable[int]) -> None:
        """Excludes the memory of these outputs, unless another output shares it."""
        chosen = set(positions)
        roots = [_source(output) for output in outputs]
        counted = {root for i, root in enumerate(roots) if i not in chosen}
        self.uncounted = {r for i, r in enumerate(roots) if i in chosen and r not in counted}

    def exclude_saved(self, backward: _Pass, saved: list[Any], returned: list[Any]) -> None:
        """Excludes the memory of gradients that the forward module makes."""
        sources = zip(_inputs(backward.module), saved)
        chosen = {_source(node) for made, node in sources if made in backward.uncounted}
        self.uncounted = chosen.difference(map(_source, returned))

    def run(self) -> None:
        for node in self._nodes:
            if node.op == "output":
                return
            if node.op != "placeholder":
                self._run(node)
            self._free(self._last_reads.get(node, []))

    def _run(self, node: fx.Node) -> None:
        self.hold(node, self._result(node))
        self.peak = max(self.peak, self.live)
        self.host_peak = max(self.host_peak, self.host_live)

    def _count(self, memory: _Memory, sign: int) -> None:
        if memory.is_host:
            self.host_live += sign * memory.bytes
        else:
            self.live += sign * memory.bytes

    def _result(self, node: fx.Node) -> list[_Memory]:
        if node.op == "get_attr" or node.target is generator_state:
            return [_Memory(0)]  # A constant, or the few bytes of a generator's state.
        if kind_of(node) is not None:  # A copy has the size of what it is a copy of.
            (original,) = self.memories[node.all_input_nodes[0]]
            copy = _Memory(original.bytes, is_host=kind_of(node) == OUT)
            self._count(copy, 1)
            return [copy]
        shared: dict[int, _Memory] = {}
        arguments = [memory for s in node.all_input_nodes for memory in self.memories.get(s, [])]
        for source in node.all_input_nodes:
            shared.update(zip(_keys(source), self.memories.get(source, [])))
        memories = []
        for position, tensor in enumerate(tensors_in(node.meta.get("val"))):
            memory = shared.get(private.storage_key(tensor))
            if memory is None and operators.is_declared_view(node):
                memory = arguments[0]
            if memory is None:
                size = 0 if node in self.uncounted else self._counted_bytes(node, tensor, position)
                memory = _Memory(size)
                self._count(memory, 1)
            memories.append(memory)
        return memories

    def _counted_bytes(self, node: fx.Node, tensor: Any, position: int) -> int:
        for user in node.users:
            is_item = user in self.uncounted and user.target is operator.getitem
            if is_item and _keys(user) == [private.storage_key(tensor)]:
                return 0
        return max(storage_bytes(tensor), storages.allocated_bytes(node, position))

    def _free(self, nodes: list[fx.Node]) -> None:
        for node in nodes:
            for memory in self.memories.get(node, []):
                memory.users -= 1
                if memory.users == 0:
                    self._count(memory, -1)


def _keys(node: fx.Node) -> list[int]:
    """Returns the keys of the storages of a node's tensors, in order."""
    return [private.storage_key(tensor) for tensor in tensors_in(node.meta.get("val"))]


def _source(node: Any) -> Any:
    """Returns the node that made the memory of an output, looking through its views."""
    while isinstance(node, fx.Node) and node.op == "call_function":
        sources = node.all_input_nodes
        if node.target is operator.getitem and not operators.is_declared_view(sources[0]):
            return node
        keys, is_view = set(_keys(node)), operators.is_declared_view(node)
        producers = [source for source in sources if is_view or keys.intersection(_keys(source))]
        if not producers:
            return node
        node = producers[0]
    return node


def _last_reads(nodes: list[fx.Node]) -> dict[fx.Node, list[fx.Node]]:
    """Maps each node to the nodes that are last read by it, and to itself if it is never read."""
    last: dict[fx.Node, fx.Node] = {}
    for node in nodes:
        last[node] = node
        for source in node.all_input_nodes:
            last[source] = node
    grouped: dict[fx.Node, list[fx.Node]] = {}
    for node, reader in last.items():
        grouped.setdefault(reader, []).append(node)
    return grouped


def _drop_duplicates(half: _Pass, nodes: list[Any]) -> list[_Memory]:
    memories = {}
    for node in nodes:
        for memory in half.memories.get(node, []) if isinstance(node, fx.Node) else []:
            memories[id(memory)] = memory
    return list(memories.values())


def _inputs(module: fx.GraphModule) -> list[fx.Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _outputs(module: fx.GraphModule) -> list[Any]:
    (output,) = module.graph.find_nodes(op="output")
    return list(output.args[0])
