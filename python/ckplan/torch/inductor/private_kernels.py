"""Private names of PyTorch for kernels, and the versions that have them.

This module controls what Inductor fuses into a kernel, and how kernels are compiled.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

from ckplan.torch.inductor import libraries
from ckplan.torch.inductor.libraries import CppKernel
from ckplan.torch.inductor.lowered_step import Flags


@contextlib.contextmanager
def fusing(flags: Flags) -> Iterator[None]:
    """Sets how Inductor fuses.

    ``V.set_choices_handler`` and ``InductorChoices.can_fuse``, since 2.7;
    ``config.fusion_memory_timeline_peak_memory_pct_threshold``, since about 2.14.
    """
    if not flags.near:
        yield
        return
    from torch._inductor import config
    from torch._inductor.virtualized import V

    name = "fusion_memory_timeline_peak_memory_pct_threshold"
    patch = {name: 0.0} if hasattr(config, name) else {}
    choices: Any = type(V.choices)
    with (
        config.patch(patch),
        V.set_choices_handler(_near_choices(choices)()),
        _ending_kernels(flags.worth_bytes),
    ):
        yield


@contextlib.contextmanager
def _ending_kernels(worth_bytes: int) -> Iterator[None]:
    """Ends a kernel for CPUs where at least this many bytes can be freed.

    Inductor makes one kernel of all loops between two operators. Their results are allocated before
    the kernel runs, and their arguments are freed after it, so both are in memory at once.

    Replaces ``CppScheduling.ready_to_flush``, since 2.2, which Inductor calls after the loops of
    each fused operation.
    """
    from torch._inductor.codegen.cpp import CppScheduling

    place: Any = CppScheduling
    original = place.ready_to_flush

    def is_worth_it(self: Any) -> bool:
        return bool(original(self)) or _freed_bytes(self.scheduler) >= worth_bytes

    place.ready_to_flush = is_worth_it if worth_bytes > 0 else original
    try:
        yield
    finally:
        place.ready_to_flush = original


_PARAMETER = "primals_"
"""The prefix of a step's own inputs, which its caller holds."""


def _freed_bytes(scheduler: Any) -> int:
    """Returns how many bytes can be freed because no later operation reads them.

    ``Scheduler.buffer_names_to_free``, since 2.0, ``name_to_buf``, since 2.5, with buffers' method
    ``can_free``; ``GraphLowering.graph_inputs`` and ``removed_buffers``, since 2.0; ``freed`` of
    the wrapper's code, since 2.0.
    """
    from torch._inductor.virtualized import V

    found = 0
    freed_names = V.graph.removed_buffers | V.graph.wrapper_code.freed
    for name in scheduler.buffer_names_to_free - freed_names:
        if name in scheduler.name_to_buf:
            buffer = scheduler.name_to_buf[name]
            found += _bytes_of(buffer.node) if buffer.can_free() else 0
        elif not name.startswith(_PARAMETER):
            found += _bytes_of(V.graph.graph_inputs.get(name))
    return found


def _bytes_of(buffer: Any) -> int:
    """``IRNode.maybe_get_size`` and ``maybe_get_dtype``, since 2.6; None if it is not a tensor."""
    size = None if buffer is None else buffer.maybe_get_size()
    if size is None:
        return 0
    return math.prod(int(each) for each in size) * int(buffer.maybe_get_dtype().itemsize)


def keeping_order() -> AbstractContextManager[Any]:
    """Makes Inductor keep the order of the graph, except for fusion.

    Otherwise it moves copies back from the host to the beginning of the backward pass, because they
    depend on nothing on the device. ``config.reorder_for_peak_memory``, since 2.6.
    """
    from torch._inductor import config

    in_order: AbstractContextManager[Any] = config.patch(reorder_for_peak_memory=False)
    return in_order


_NEAR = 8
"""The maximum distance of fused operations in the order of the plan."""


@functools.cache
def _near_choices(choices: Any) -> Any:
    class NearChoices(choices):  # type: ignore[misc]
        @staticmethod
        def can_fuse(scheduler: Any, node1: Any, node2: Any, shared_data_score: int) -> bool:
            distance = max(
                abs(node1.min_order - node2.max_order), abs(node2.min_order - node1.max_order)
            )
            return distance <= _NEAR and bool(
                choices.can_fuse(scheduler, node1, node2, shared_data_score)
            )

    return NearChoices


Together = Callable[[list[CppKernel], libraries.Compile, int], list[libraries.Kernel]]
"""Compiles kernels together, given a function that compiles them one by one, and its threads."""


@contextlib.contextmanager
def compiled_by(together: Together) -> Iterator[None]:
    """Within this context, one call compiles all C++ kernels of a wrapper.

    Replaces ``async_compile.AsyncCompile.cpp_pybinding``, since 2.2, which starts compiling one
    kernel, and ``AsyncCompile.wait``, since 2.0, which a wrapper calls last.
    ``async_compile.get_compile_threads``, since 2.6.
    """
    from torch._inductor import async_compile

    place: Any = async_compile.AsyncCompile
    begin, wait = place.cpp_pybinding, place.wait

    def noting(_: Any, types: list[str], text: str) -> CppKernel:
        return CppKernel(tuple(types), text)

    def waiting(self: Any, scope: dict[str, Any]) -> None:
        def alone(kernels: list[CppKernel]) -> list[Any]:
            begun = [begin(self, list(kernel.types), kernel.text) for kernel in kernels]
            return [each.result() if hasattr(each, "result") else each for each in begun]

        noted = {name: value for name, value in scope.items() if isinstance(value, CppKernel)}
        threads = async_compile.get_compile_threads()
        scope.update(zip(noted, together(list(noted.values()), alone, threads)))
        wait(self, scope)

    place.cpp_pybinding, place.wait = noting, waiting
    try:
        yield
    finally:
        place.cpp_pybinding, place.wait = begin, wait


def compiled_kernels(texts: list[str]) -> list[Callable[..., Any]]:
    """Compiles kernels as a wrapper does (``async_compile.AsyncCompile``, since 2.0).

    Each text is a call of a method of ``async_compile``. Triton kernels have a method ``run``,
    which takes the stream returned by ``torch._C._cuda_getCurrentRawStream``, since 1.x.
    """
    from torch._inductor.async_compile import AsyncCompile

    names: dict[str, Any] = {"async_compile": AsyncCompile(), "torch": torch}
    kernels = [f"kernel_{number}" for number in range(len(texts))]
    with compiled_by(libraries.compiled):
        for name, text in zip(kernels, texts):
            names[name] = eval(text, names)
        names["async_compile"].wait(names)
    return [_run_of(names[name]) for name in kernels]


def _run_of(kernel: Any) -> Callable[..., Any]:
    if not hasattr(kernel, "run"):
        return kernel  # type: ignore[no-any-return]

    def run(*args: Any) -> Any:
        stream = torch._C._cuda_getCurrentRawStream(torch.cuda.current_device())
        return kernel.run(*args, stream=stream)

    return run
