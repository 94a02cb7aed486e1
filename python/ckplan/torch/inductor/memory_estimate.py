"""Estimates the memory of the two modules of a step before Inductor lowers them.

Operations run in the order of the modules, and values within a kernel do not count. Inductor
reorders operations and fuses more of them, so the estimate is not a bound.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch import fx

from ckplan.torch.capture import storage_bytes, tensors_in
from ckplan.torch.inductor.costs import is_fusible
from ckplan.torch.private import storage_key


def estimated_peak_bytes(
    forward: fx.GraphModule, backward: fx.GraphModule, num_results: int, uncounted: Collection[int]
) -> int:
    """Returns the peak in bytes, without the step's inputs.

    ``uncounted``: positions of uncounted gradients.
    """
    inputs = {node.name for node in forward.graph.find_nodes(op="placeholder")}
    (output,) = forward.graph.find_nodes(op="output")
    results = sum(
        size
        for node in output.args[0][:num_results]
        if isinstance(node, fx.Node)
        for size in storages(node).values()
    )
    return max(
        _Storages(forward, inputs, ()).peak_bytes(),
        results + _Storages(backward, inputs, uncounted).peak_bytes(),
    )


def storages(node: fx.Node) -> dict[int, int]:
    """Returns the bytes of the storages of a node's tensors."""
    tensors = tensors_in(node.meta.get("val"))
    return {storage_key(tensor): storage_bytes(tensor) for tensor in tensors}


class _Storages:
    """The storages that a module makes or receives, and their lifetimes.

    A node makes a storage if none of its arguments lies in it. The fake tensor alone does not tell,
    because operations that run again have the same fake tensors as before.
    """

    def __init__(self, module: fx.GraphModule, inputs: Collection[str], uncounted: Collection[int]):
        self._sizes: list[int] = []
        self._lives: list[tuple[int, int]] = []
        """The positions of the first and of the last node of a storage."""
        self._of: dict[fx.Node, dict[int, int]] = {}
        """The number of each storage that a node's tensors lie in."""
        nodes = list(module.graph.nodes)
        for position, node in enumerate(nodes):
            self._use(node, position)
            if node.op != "output":
                self._of[node] = self._numbers(node, position, node.name in inputs)
        results: Any = nodes[-1].args[0]
        for place, result in enumerate(results):
            if place in uncounted and isinstance(result, fx.Node):
                for number in self._of[result].values():
                    self._sizes[number] = 0

    def peak_bytes(self) -> int:
        """Returns the peak of live bytes."""
        changes: dict[int, int] = {}
        for size, (first, last) in zip(self._sizes, self._lives):
            changes[first] = changes.get(first, 0) + size
            changes[last + 1] = changes.get(last + 1, 0) - size
        live = peak = 0
        for position in sorted(changes):
            live += changes[position]
            peak = max(peak, live)
        return peak

    def _use(self, node: fx.Node, position: int) -> None:
        for source in node.all_input_nodes:
            for number in self._of[source].values():
                self._lives[number] = self._lives[number][0], position

    def _numbers(self, node: fx.Node, position: int, is_input: bool) -> dict[int, int]:
        known: dict[int, int] = {}
        for source in node.all_input_nodes:
            known |= self._of[source]
        found = {}
        for key, size in storages(node).items():
            if key not in known:
                known[key] = len(self._sizes)
                given = node.op == "placeholder"
                self._sizes.append(0 if is_input or (not given and _is_passed_on(node)) else size)
                self._lives.append((0 if given else position, position))
            found[key] = known[key]
        return found


def _is_passed_on(node: fx.Node) -> bool:
    """Returns whether the result has a single reader, in the same kernel."""
    return is_fusible(node) and len(node.users) == 1 and all(map(is_fusible, node.users))
