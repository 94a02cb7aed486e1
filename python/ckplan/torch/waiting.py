"""Which forward passes of a graph wait for their backward pass, and what became of their results.

A model that is called several times before the backward pass, as a siamese network or the
discriminator of a GAN is, keeps what all these calls have saved.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import fx

from ckplan.torch.capture import tensors_in
from ckplan.torch.private import storage_key, storage_watch


class Results:
    """What one call of the forward module returned. Does not keep it in memory."""

    def __init__(self, outputs: Sequence[Any]):
        self._keys = [storage_key(o) if isinstance(o, torch.Tensor) else None for o in outputs]
        self._watches = {storage_key(t): storage_watch(t) for t in tensors_in(list(outputs))}
        self._objects: dict[int, list[Callable[[], Any]]] = {}

    def returned(self, tensors: Iterable[Any]) -> None:
        """Notes the tensors that the caller got: the outputs, or views of them."""
        for tensor in tensors_in(list(tensors)):
            self._objects.setdefault(storage_key(tensor), []).append(weakref.ref(tensor))

    def dropped(self, saved: Iterable[Any]) -> set[int]:
        """The positions of results that the caller does not hold any more.

        What the backward module reads, ``saved``, is in memory for its own sake.
        """
        kept = {storage_key(tensor) for tensor in tensors_in(list(saved))}
        return {i for i, key in enumerate(self._keys) if not self._is_held(key, kept)}

    def _is_held(self, key: int | None, kept: set[int]) -> bool:
        if key is None or key not in self._watches or not self._watches[key]():
            return False
        return key not in kept or any(object() is not None for object in self._objects.get(key, []))


class Waiting:
    """The forward passes whose saved tensors live. Each is known by the first tensor it made."""

    def __init__(self) -> None:
        self._passes: dict[int, tuple[Callable[[], bool], Results]] = {}

    def begin(self, made: torch.Tensor, results: Results) -> None:
        """A forward pass has ended, and ``made`` is among what it saved."""
        self._passes[storage_key(made)] = storage_watch(made), results

    def end(self, made: torch.Tensor) -> Results | None:
        """Its backward pass begins: it waits no longer. Returns its results."""
        _, results = self._passes.pop(storage_key(made), (None, None))
        return results

    def count(self) -> int:
        """How many wait. Passes whose graph was dropped do not."""
        for key in [key for key, (lives, _) in self._passes.items() if not lives()]:
            del self._passes[key]
        return len(self._passes)


def first_made(forward: fx.GraphModule, num_outputs: int) -> int | None:
    """The position, among what a forward module saves, of the first tensor that is no input."""
    (output,) = forward.graph.find_nodes(op="output")
    for position, node in enumerate(output.args[0][num_outputs:]):
        if isinstance(node, fx.Node) and node.op == "call_function":
            return position
    return None
