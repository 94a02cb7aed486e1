"""Compiles the C++ kernels of a wrapper together.

Inductor compiles each kernel to its own library, and most of that time does not depend on the
kernel: the compiler starts, reads headers, and links. Here kernels share libraries; there are as
many libraries as Inductor has compile threads.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from ckplan.torch.private import real_tensors


@dataclass(frozen=True)
class CppKernel:
    """A kernel for CPUs: the C++ types of its parameters, and its text."""

    types: tuple[str, ...]
    text: str


Kernel = Callable[..., Any]

Compile = Callable[[list[CppKernel]], list[Kernel]]
"""Compiles each kernel to its own library."""

_ENTRY = re.compile(r'extern "C"\s+void\s+kernel\(')
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)

_START = 2000
"""The overhead of compiling a kernel, in characters of code that take equally long."""


def compiled(kernels: Iterable[CppKernel], compile: Compile, threads: int) -> list[Kernel]:
    """Returns the function of each kernel.

    A kernel whose parameters are not all pointers has its own library, and so has every kernel if
    the compiler rejects the shared libraries.
    """
    kernels = list(kernels)
    known: dict[CppKernel, Kernel] = {}
    libraries = _divide_kernels(filter(_can_share, dict.fromkeys(kernels)), threads)
    try:
        functions = compile([_join_kernels(library) for library in libraries])
        for library, function in zip(libraries, functions):
            known.update(_parts(library, function))
    except RuntimeError:
        known.clear()
    alone = [kernel for kernel in dict.fromkeys(kernels) if kernel not in known]
    known.update(zip(alone, compile(alone)))
    return [known[kernel] for kernel in kernels]


def _can_share(kernel: CppKernel) -> bool:
    pointers = all(type.endswith("*") for type in kernel.types)
    return pointers and len(_ENTRY.findall(kernel.text)) == 1


def _divide_kernels(kernels: Iterable[CppKernel], count: int) -> list[list[CppKernel]]:
    """Divides kernels among at most ``count`` libraries with about equal compile times."""
    libraries: list[list[CppKernel]] = [[] for _ in range(max(1, count))]
    lengths = [0] * len(libraries)
    for kernel in sorted(kernels, key=lambda kernel: -len(kernel.text)):
        shortest = lengths.index(min(lengths))
        libraries[shortest].append(kernel)
        lengths[shortest] += len(kernel.text) + _START
    return [library for library in libraries if library]


def _join_kernels(library: list[CppKernel]) -> CppKernel:
    """Returns a kernel that calls the library's kernel whose number is its first argument.

    The called kernel gets the last arguments.
    """
    count = _max_parameters(library)
    includes, texts, cases = {}, [], []
    for number, kernel in enumerate(library):
        includes.update(dict.fromkeys(_INCLUDE.findall(kernel.text)))
        text = _ENTRY.sub("static void kernel(", _INCLUDE.sub("", kernel.text))
        texts.append(f"namespace kernel_{number} {{\n{text}\n}}\n")
        first = count - len(kernel.types)
        arguments = ", ".join(
            f"static_cast<{type}>(argument_{first + place})"
            for place, type in enumerate(kernel.types)
        )
        cases.append(f"    case {number}: kernel_{number}::kernel({arguments}); break;\n")
    types = "const int64_t", *["void*"] * count
    parameters = ", ".join(f"void* argument_{place}" for place in range(count))
    entry = (
        f'extern "C" void kernel(const int64_t which, {parameters}) {{\n'
        f"  switch (which) {{\n{''.join(cases)}  }}\n}}\n"
    )
    return CppKernel(types, "\n".join([*includes, *texts, entry]))


def _parts(library: list[CppKernel], function: Kernel) -> dict[CppKernel, Kernel]:
    """Returns the function of each kernel of a library. Unused arguments are some tensor."""
    with real_tensors():
        unused = torch.empty(1)
    return {
        kernel: functools.partial(
            function, number, *[unused] * (_max_parameters(library) - len(kernel.types))
        )
        for number, kernel in enumerate(library)
    }


def _max_parameters(library: list[CppKernel]) -> int:
    return max(len(kernel.types) for kernel in library)
