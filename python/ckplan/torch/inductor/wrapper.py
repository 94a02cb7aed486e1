"""Runs a wrapper of Inductor on fake tensors, without its kernels.

The wrapper is executed, so Python's reference counts decide which buffers live, as in a real run.
Kernels are replaced, so nothing is compiled, and operators run on fake tensors.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ckplan.torch.inductor import lowered_step, private
from ckplan.torch.inductor.lowered_step import Call, NotReplayedError


@dataclass(frozen=True)
class Kernel:
    """One kernel of a wrapper."""

    name: str
    text: str
    """The call that compiles it."""


OnKernel = Callable[[Kernel, tuple[Any, ...]], None]

_COMPILER = "async_compile"


def load(wrapper: lowered_step.Wrapper, on_kernel: OnKernel) -> Call:
    """Returns the wrapper's function ``call``, for fake tensors.

    It calls ``on_kernel`` with each kernel that would run, and the kernel's arguments.
    """
    tree = ast.parse(wrapper.text)
    body: list[ast.stmt] = []
    names: dict[str, Any] = {"__name__": "ckplan_replay", **wrapper.constants}
    lines = wrapper.text.encode().splitlines(keepends=True)
    for statement in tree.body:
        kernel = _kernel(statement, lines)
        if kernel is not None:
            names[kernel.name] = _Stub(kernel, on_kernel)
        elif not _is_of_compiler(statement):
            body.append(statement)
    kept = dict(names)
    for statement in body:
        _execute(statement, names)
    names.update(kept)
    names.update(_replacements(names))
    call: Call | None = names.get("call")
    if call is None:
        raise NotReplayedError("the wrapper has no function call")
    return call


def _execute(statement: ast.stmt, names: dict[str, Any]) -> None:
    code = compile(ast.Module([statement], []), "<wrapper>", "exec")
    # A machine without the device may lack modules that only kernels need, such as Triton.
    is_import = isinstance(statement, ast.Import | ast.ImportFrom)
    expected = (ImportError, AttributeError) if is_import or _is_alias(statement) else ()
    with contextlib.suppress(*expected):
        exec(code, names)


def _is_alias(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Attribute)


def _kernel(statement: ast.stmt, lines: list[bytes]) -> Kernel | None:
    """Returns the kernel that a statement defines: ``name = async_compile.cpp_pybinding(...)``."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    called = statement.value.func
    if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        return None
    target = statement.targets[0]
    if called.value.id != _COMPILER or not isinstance(target, ast.Name):
        return None
    return Kernel(target.id, _segment(statement.value, lines))


def _segment(node: ast.expr, lines: list[bytes]) -> str:
    """Returns the text of an expression; ``ast.get_source_segment`` splits all lines each time."""
    assert node.end_lineno is not None
    first, *rest = lines[node.lineno - 1 : node.end_lineno]
    end = node.end_col_offset
    if not rest:
        return first[node.col_offset : end].decode()
    return b"".join([first[node.col_offset :], *rest[:-1], rest[-1][:end]]).decode()


def _is_of_compiler(statement: ast.stmt) -> bool:
    """Returns whether a statement creates, awaits or deletes the compiler of kernels."""
    if isinstance(statement, ast.If):
        return True  # The code that benchmarks the module if it runs as a program.
    if isinstance(statement, ast.Delete | ast.Expr | ast.Assign):
        found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        return bool(found & {_COMPILER, "AsyncCompile"})
    return False


class _Stub:
    """Replaces a kernel of the wrapper. C++ kernels are called, and Triton kernels have ``run``."""

    def __init__(self, kernel: Kernel, on_kernel: OnKernel):
        self._kernel, self._on_kernel = kernel, on_kernel

    def __call__(self, *args: Any, **_: Any) -> None:
        self._on_kernel(self._kernel, args)

    run = __call__

    def __getitem__(self, _: Any) -> _Stub:
        return self  # kernel[grid](...)


def _replacements(names: dict[str, Any]) -> dict[str, Any]:
    """Returns replacements of the functions that a wrapper calls besides kernels and operators."""
    found: dict[str, Any] = {"reinterpret_tensor": private.reinterpreted}
    for name in names:
        if name.startswith("assert_") or name == "run_intermediate_hooks":
            found[name] = _nothing
        elif name.startswith("empty_strided_") and name != "empty_strided_p2p":
            # The type of the device follows: empty_strided_cuda, empty_strided_cpu_pinned.
            found[name] = _allocator(name.split("_")[2])
        elif name == "get_raw_stream":
            found[name] = _nothing
    return found


def _allocator(device: str) -> Callable[..., torch.Tensor]:
    def allocate(size: Any, stride: Any, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty_strided(size, stride, dtype=dtype, device=device)

    return allocate


def _nothing(*_: Any, **__: Any) -> None:
    return None
