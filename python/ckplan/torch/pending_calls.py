"""Tracks the forward passes that wait for backward, and which of their results are alive.

A model that is called several times before the backward pass, such as a siamese network or the
discriminator of a GAN, keeps the saved values of all these calls. So does a call whose graph is
retained for another backward pass.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import fx

from ckplan.torch.capture import tensors_in
from ckplan.torch.private import storage_key, storage_watch
from ckplan.torch.unused_results import Unused


class Call:
    """One forward pass, and the use of its results, which this object does not keep alive."""

    def __init__(
        self,
        outputs: Sequence[Any],
        inputs: list[Any],
        states: list[torch.Tensor],
        given: Iterable[int] = (),
    ):
        self.unused: Unused | None = None
        """What no backward pass has used so far; None before the first one."""
        self.shows_absent = False
        """Whether missing gradients are None rather than zeros."""
        self.inputs = inputs
        """The inputs for a second run of forward; empty if it cannot run again."""
        self.states = states
        """The states of random generators before the call."""
        self.versions = [version(tensor) for tensor in inputs]
        self._keys = [storage_key(o) if isinstance(o, torch.Tensor) else None for o in outputs]
        self._watches = {storage_key(t): storage_watch(t) for t in tensors_in(list(outputs))}
        self._given = set(given)  # The storages of its inputs.
        self._objects: dict[int, list[Callable[[], Any]]] = {}

    def returned(self, tensors: Iterable[Any]) -> None:
        """Records the tensors that the caller received: the outputs, or views of them."""
        for tensor in tensors_in(list(tensors)):
            self._objects.setdefault(storage_key(tensor), []).append(weakref.ref(tensor))

    def has_made(self, tensor: torch.Tensor) -> bool:
        """Returns whether a tensor is in memory that the call allocated."""
        key = storage_key(tensor)
        return key in self._watches and key not in self._given

    def note_pass(self, absent: frozenset[int], saved: Iterable[Any]) -> None:
        """Records what the backward pass that begins now uses.

        The values that it reads, ``saved``, stay in memory whether the caller holds them or not.
        """
        unused = Unused(absent, frozenset(self._dropped(saved)))
        self.unused = unused if self.unused is None else self.unused & unused

    def check_inputs(self, positions: Iterable[int]) -> None:
        """Raises RuntimeError if an input of a second run of forward was changed in place."""
        if any(version(self.inputs[i]) != self.versions[i] for i in positions):
            raise RuntimeError(
                "a tensor that the backward pass needs was changed in place after the forward pass"
            )

    def _dropped(self, saved: Iterable[Any]) -> set[int]:
        """Returns the positions of results that the caller no longer holds."""
        kept = {storage_key(tensor) for tensor in tensors_in(list(saved))}
        return {i for i, key in enumerate(self._keys) if not self._is_held(key, kept)}

    def _is_held(self, key: int | None, kept: set[int]) -> bool:
        if key is None or key not in self._watches or not self._watches[key]():
            return False
        return key not in kept or any(object() is not None for object in self._objects.get(key, []))


class PendingCalls:
    """The calls whose saved tensors are alive, each identified by the first tensor that it made.

    Hooks for saved tensors may replace that tensor. Such a call does not count.
    """

    def __init__(self) -> None:
        self._calls: dict[int, tuple[Callable[[], bool], Call]] = {}

    def begin(self, made: torch.Tensor, call: Call) -> None:
        """Records that a forward pass has ended, with ``made`` among its saved values."""
        self._calls[storage_key(made)] = storage_watch(made), call

    def find(self, saved: Iterable[Any]) -> Call | None:
        """Returns the call that saved these tensors; None if unknown."""
        self.count()
        for tensor in tensors_in(list(saved)):
            if storage_key(tensor) in self._calls:
                return self._calls[storage_key(tensor)][1]
        return None

    def end(self, call: Call) -> None:
        """Records that the last backward pass of a call begins."""
        self._calls = {key: row for key, row in self._calls.items() if row[1] is not call}

    def count(self) -> int:
        """Returns the number of waiting calls, without those whose graph was dropped."""
        for key in [key for key, (lives, _) in self._calls.items() if not lives()]:
            del self._calls[key]
        return len(self._calls)


def first_saved_result(forward: fx.GraphModule, num_outputs: int) -> int | None:
    """Returns the position of the first saved value of a forward module that is not an input."""
    (output,) = forward.graph.find_nodes(op="output")
    for position, node in enumerate(output.args[0][num_outputs:]):
        if isinstance(node, fx.Node) and node.op == "call_function":
            if any(True for _ in tensors_in(node.meta.get("val"))):
                return position
    return None


def version(tensor: Any) -> int:
    """Returns the number of times that a tensor was changed in place."""
    is_counted = isinstance(tensor, torch.Tensor) and not tensor.is_inference()
    return tensor._version if is_counted else 0
