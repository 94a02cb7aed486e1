"""Spare saved tensors, so that one graph of AOT autograd can run several plans.

AOT autograd saves all tensors that forward returns beyond its results, and passes them to backward.
Only a list made at compile time needs an entry for each, so the compiled modules get spare entries.
Each plan saves a different number of tensors, which tells the backward pass which plan ran. Hooks
for saved tensors may replace tensors, but cannot change their number.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ckplan.torch import operators, private_autograd
from ckplan.torch.capture import is_tangent

_SPARE = 64
_NAME = "spare_saved"


@dataclass(frozen=True)
class Slots:
    """How many tensors and numbers the first plan saves, and how many more others may save."""

    num_outputs: int
    num_saved: int
    num_numbers: int
    spare: int

    def number_for(self, count: int, taken: Container[int]) -> int | None:
        """Returns an unused number of tensors, at least ``count``, if there is one."""
        free = range(count, self.num_saved + self.spare + 1)
        return next((n for n in free if n != self.num_saved and n not in taken), None)

    def remove_from_forward(self, forward: fx.GraphModule) -> None:
        """Removes the spare outputs again."""
        (output,) = forward.graph.find_nodes(op="output")
        count = self.num_outputs + self.num_saved + self.num_numbers
        if len(output.args[0]) == count:
            return
        values, descriptors = output.args[0], output.meta.get("desc")
        _set_outputs(output, self._drop_spare(values), self._drop_spare(descriptors))

    def _drop_spare(self, values: Any) -> list[Any] | None:
        if values is None:
            return None
        end = self.num_outputs + self.num_saved
        return [*values[:end], *values[end + self.spare :]]

    def remove_from_backward(self, backward: fx.GraphModule) -> None:
        """Removes the spare inputs again."""
        for node in backward.graph.find_nodes(op="placeholder"):
            if node.name.startswith(_NAME):
                backward.graph.erase_node(node)


def add(forward: fx.GraphModule, backward: fx.GraphModule, num_outputs: int) -> Slots:
    """Adds spare saved tensors to the modules of the first plan."""
    saved = saved_by(forward, num_outputs)
    tensors = [node for node in saved if not is_number(node)]
    spare = max(_SPARE, len(tensors)) if tensors else 0
    slots = Slots(num_outputs, len(tensors), len(saved) - len(tensors), spare)
    if not tensors:
        return slots
    (output,) = forward.graph.find_nodes(op="output")
    end = num_outputs + len(tensors)
    outputs, descriptors = list(output.args[0]), output.meta.get("desc")
    outputs[end:end] = [tensors[0]] * spare
    if descriptors is not None:
        descriptors = list(descriptors)
        first = len(saved)
        descriptors[end:end] = [
            private_autograd.saved_output_descriptor(first + i) for i in range(spare)
        ]
    _set_outputs(output, outputs, descriptors)
    forward.recompile()
    _add_inputs(backward, tensors[0], spare)
    return slots


def saved_by(forward: fx.GraphModule, num_outputs: int) -> list[fx.Node]:
    """Returns the values that a forward module saves: tensors, and then numbers."""
    (output,) = forward.graph.find_nodes(op="output")
    return list(output.args[0][num_outputs:])


def updated_inputs(forward: fx.GraphModule, num_outputs: int) -> list[int]:
    """Returns the positions in a forward module's outputs of saved inputs that it updates in place.

    The backward module ignores their values (``operators.ignores_running_statistics``).
    """
    updated = {n.args[0] for n in forward.graph.nodes if operators.is_mutation(n)}
    saved = enumerate(saved_by(forward, num_outputs), num_outputs)
    return [position for position, node in saved if node.op == "placeholder" and node in updated]


def is_number(node: fx.Node) -> bool:
    """Returns whether a saved value is a size or another number."""
    return not isinstance(node.meta.get("val"), torch.Tensor)


def _add_inputs(backward: fx.GraphModule, like: fx.Node, count: int) -> None:
    inputs = backward.graph.find_nodes(op="placeholder")
    following = next((node for node in inputs if is_tangent(node)), None)
    if following is None:
        following = next(n for n in backward.graph.nodes if n.op != "placeholder")
    with backward.graph.inserting_before(following):
        for position in range(count):
            made = backward.graph.placeholder(f"{_NAME}_{position}")
            made.meta["val"] = like.meta["val"]
    backward.recompile()


def _set_outputs(output: fx.Node, values: list[Any] | None, descriptors: Any) -> None:
    assert values is not None
    output.args = (tuple(values),)
    if descriptors is not None:
        output.meta["desc"] = descriptors
