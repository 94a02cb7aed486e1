"""Tracks which forward passes of a graph wait for backward, and which of their results live.

A model that is called several times before the backward pass, such as a siamese network or the
discriminator of a GAN, keeps the saved values of all these calls.
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
    """The results of one call of the forward module. This object does not keep them in memory."""

    def __init__(self, outputs: Sequence[Any]):
        self._keys = [storage_key(o) if isinstance(o, torch.Tensor) else None for o in outputs]
        self._watches = {storage_key(t): storage_watch(t) for t in tensors_in(list(outputs))}
        self._objects: dict[int, list[Callable[[], Any]]] = {}

    def returned(self, tensors: Iterable[Any]) -> None:
        """Records the tensors that the caller got: the outputs, or views of them."""
        for tensor in tensors_in(list(tensors)):
            self._objects.setdefault(storage_key(tensor), []).append(weakref.ref(tensor))

    def dropped(self, saved: Iterable[Any]) -> set[int]:
        """Returns the positions of results that the caller no longer holds.

        ``saved``, the values that the backward module reads, stay in memory in any case.
        """
        kept = {storage_key(tensor) for tensor in tensors_in(list(saved))}
        return {i for i, key in enumerate(self._keys) if not self._is_held(key, kept)}

    def _is_held(self, key: int | None, kept: set[int]) -> bool:
        if key is None or key not in self._watches or not self._watches[key]():
            return False
        return key not in kept or any(object() is not None for object in self._objects.get(key, []))


class Waiting:
    """The forward passes whose saved tensors live. The first tensor of a pass identifies it."""

    def __init__(self) -> None:
        self._passes: dict[int, tuple[Callable[[], bool], Results]] = {}

    def begin(self, made: torch.Tensor, results: Results) -> None:
        """Records that a forward pass has ended, with ``made`` among its saved values."""
        self._passes[storage_key(made)] = storage_watch(made), results

    def end(self, made: torch.Tensor) -> Results | None:
        """Records that its backward pass begins: it no longer waits. Returns its results."""
        _, results = self._passes.pop(storage_key(made), (None, None))
        return results

    def count(self) -> int:
        """Returns how many passes wait. Passes whose graph was dropped do not count."""
        for key in [key for key, (lives, _) in self._passes.items() if not lives()]:
            del self._passes[key]
        return len(self._passes)


def first_made(forward: fx.GraphModule, num_outputs: int) -> int | None:
    """Returns the position of the first saved value of a forward module that is not an input."""
    (output,) = forward.graph.find_nodes(op="output")
    for position, node in enumerate(output.args[0][num_outputs:]):
        if isinstance(node, fx.Node) and node.op == "call_function":
            if any(True for _ in tensors_in(node.meta.get("val"))):
                return position
    return None
