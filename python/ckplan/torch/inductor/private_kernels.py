"""The private names of PyTorch about kernels, and since when each exists.

What Inductor fuses into a kernel is decided here, and how kernels are compiled.
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
    """Ends a kernel for CPUs where so many bytes can be freed.

    Inductor makes one kernel of all loops between two operators. What these write is allocated
    before the kernel runs, and what they have read is freed after it, so that both are in memory.

    Replaces ``CppScheduling.ready_to_flush``, since 2.2, which Inductor asks after the loops of each
    operation that it has fused.
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
"""How the names of a step's own inputs begin, which its caller holds."""


def _freed_bytes(scheduler: Any) -> int:
    """Returns how many bytes no later operation reads that are not freed yet.

    ``Scheduler.buffer_names_to_free``, since 2.0, ``name_to_buf``, since 2.5, with buffers' method
    ``can_free``; ``GraphLowering.graph_inputs`` and ``removed_buffers``, since 2.0; ``freed`` of the
    wrapper's code, since 2.0.
    """
    from torch._inductor.virtualized import V

    found = 0
    gone = V.graph.removed_buffers | V.graph.wrapper_code.freed
    for name in scheduler.buffer_names_to_free - gone:
        if name in scheduler.name_to_buf:
            buffer = scheduler.name_to_buf[name]
            found += _bytes_of(buffer.node) if buffer.can_free() else 0
        elif not name.startswith(_PARAMETER):
            found += _bytes_of(V.graph.graph_inputs.get(name))
    return found


def _bytes_of(buffer: Any) -> int:
    """``IRNode.maybe_get_size`` and ``maybe_get_dtype``, since 2.6; None of a buffer of no tensor."""
    size = None if buffer is None else buffer.maybe_get_size()
    if size is None:
        return 0
    return math.prod(int(each) for each in size) * int(buffer.maybe_get_dtype().itemsize)


def keeping_order() -> AbstractContextManager[Any]:
    """Has Inductor keep the order of the graph, but for what it fuses.

    Otherwise it moves copies back from the host, which read nothing that is made on the device, to
    the beginning of the backward pass. ``config.reorder_for_peak_memory``, since 2.6.
    """
    from torch._inductor import config

    in_order: AbstractContextManager[Any] = config.patch(reorder_for_peak_memory=False)
    return in_order


_NEAR = 8
"""How far apart operations may be, in the order of the plan, that are fused nevertheless."""


@functools.cache
def _near_choices(choices: Any) -> Any:
    class NearChoices(choices):  # type: ignore[misc]
        @staticmethod
        def can_fuse(scheduler: Any, node1: Any, node2: Any, shared_data_score: int) -> bool:
            apart = max(
                abs(node1.min_order - node2.max_order), abs(node2.min_order - node1.max_order)
            )
            return apart <= _NEAR and bool(
                choices.can_fuse(scheduler, node1, node2, shared_data_score)
            )

    return NearChoices


Together = Callable[[list[CppKernel], libraries.Compile, int], list[libraries.Kernel]]
"""Compiles kernels, given what compiles each one alone and the number of threads for that."""


@contextlib.contextmanager
def compiled_by(together: Together) -> Iterator[None]:
    """Within this context all C++ kernels that a wrapper has are compiled by one call.

    Replaces ``async_compile.AsyncCompile.cpp_pybinding``, since 2.2, which begins to compile one,
    and ``AsyncCompile.wait``, since 2.0, which a wrapper calls after all of these.
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

    Each text is a wrapper's call of a method of ``async_compile``. Triton's kernels run by their
    method ``run``, on a stream that ``torch._C._cuda_getCurrentRawStream``, since 1.x, names.
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
