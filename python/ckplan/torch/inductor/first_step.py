"""Measures the first step that compiled wrappers run.

Their allocations bypass the dispatcher, so for that step functions that also count replace their
allocating functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ckplan.torch.inductor import lowered_step, private
from ckplan.torch.inductor.replay import Counter, peak_bytes
from ckplan.torch.private import is_any_fake

Measured = Callable[[int, bool], None]
"""Is called with the peak in bytes, and whether the caller retains the graph."""


class FirstStep:
    """Runs the two wrappers of a step, and counts the memory of the first step.

    ``uncounted``: positions of uncounted gradients. ``within``: bytes that operators' calls need
    besides their results. If the forward wrapper runs again before the backward wrapper, nothing is
    measured.
    """

    def __init__(
        self,
        step: lowered_step.Step,
        uncounted: Collection[int],
        within: Mapping[str, int],
        measured: Measured,
    ):
        forward, backward = step.forward.module, step.backward.module
        assert forward is not None and backward is not None
        self._modules = forward, backward
        self._calls = forward.run, backward.run
        self._num_outputs, self._num_saved = step.num_outputs, 0
        self._uncounted, self._within, self._measured = uncounted, within, measured
        self._counter = Counter()
        self._has_begun = False
        forward.run, backward.run = self._forward, self._backward

    def _forward(self, arguments: list[Any]) -> Any:
        if is_any_fake(arguments):  # DistributedDataParallel compiles its next bucket.
            return self._calls[0](arguments)
        if self._has_begun:
            self._restore()
            return self._calls[0](arguments)
        self._has_begun = True
        with _count_allocations(self._counter, self._modules[0].names):
            results = self._counter.run(self._calls[0], arguments)
        self._counter.forget_dead()  # Storages that the wrapper held until its end.
        self._num_saved = len(results) - self._num_outputs
        return results

    def _backward(self, arguments: list[Any]) -> Any:
        self._restore()
        self._counter.forget_dead()
        self._counter.hold(arguments[self._num_saved :])
        with _count_allocations(self._counter, self._modules[1].names):
            gradients = self._counter.run(self._calls[1], arguments)
        self._counter.leave_out(gradients[i] for i in self._uncounted if i < len(gradients))
        peak = peak_bytes(self._counter.events(), self._within)
        self._measured(peak, private.keeps_graph())
        return gradients

    def _restore(self) -> None:
        for module, call in zip(self._modules, self._calls):
            module.run = call


def copy_retained(step: lowered_step.Step, retained: Callable[[], None]) -> None:
    """Makes backward passes that retain their graph work on copies of saved tensors.

    The wrapper may write to their memory. Each such pass calls ``retained``.
    """
    for wrapper in step.wrappers:
        if wrapper.is_backward and wrapper.module is not None:
            wrapper.module.run = _copy_reused(wrapper.module.run, step.reused, retained)


def _copy_reused(
    run: lowered_step.Call, reused: Collection[int], retained: Callable[[], None]
) -> lowered_step.Call:
    def keeping(arguments: list[Any]) -> Any:
        if private.keeps_graph():
            for position in reused:
                arguments[position] = arguments[position].clone()
            retained()
        return run(arguments)

    return keeping


@contextlib.contextmanager
def _count_allocations(counter: Counter, names: dict[str, Any]) -> Iterator[None]:
    """Makes a wrapper's allocating functions count their allocations."""
    originals = {name: made for name, made in names.items() if name.startswith("empty_strided_")}
    for name, made in originals.items():
        names[name] = counter.counting(made)
    try:
        yield
    finally:
        names.update(originals)
