"""The private names of PyTorch about kernels, and since when each exists.

What Inductor fuses into a kernel is decided here, and how kernels are compiled.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

from ckplan.torch.inductor import libraries
from ckplan.torch.inductor.libraries import CppKernel
from ckplan.torch.inductor.lowered import Flags

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
    with config.patch(patch), V.set_choices_handler(_near_choices(choices)()):
        yield


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
