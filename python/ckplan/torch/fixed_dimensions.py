"""Explains why a symbolic dimension of an exported model became a constant."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn

from ckplan.torch import private_export
from ckplan.torch.dimensions import Input, OpenCall

_RESHAPES = (torch.ops.aten.view.default, torch.ops.aten.reshape.default)
_LONGEST_REASON = 400


def warnings_of(exported: torch.export.ExportedProgram, opened: OpenCall) -> list[str]:
    """Returns a warning for each reshape of the batch to its size in this call.

    Such a graph runs at other sizes, but computes something else: ``x.view(4, -1)`` of 8 rows makes
    4 rows of double length.
    """
    batches = {name: entry.tensor.shape[0] for entry, dim, name in _first_dimensions(opened)}
    found = {}
    for node in exported.graph.nodes:
        size = _constant_rows(node)
        for name, batch in batches.items():
            # A size of 1 may be intended, for example for a convolution with the batch as groups.
            if size == batch > 1:
                place = _place(node)
                found[place] = (
                    f'{place} fixes the dimension "{name}" at {size}, so plans are right only for '
                    f"{name}={size}: write x.shape[0] instead of {size}"
                )
    return list(found.values())


def _first_dimensions(opened: OpenCall) -> Iterator[tuple[Input, int, str]]:
    return (row for row in opened.open_dimensions() if row[1] == 0)


def _constant_rows(node: fx.Node) -> int | None:
    """Returns the first size of a reshape if it is a number, but the operand's is symbolic."""
    if node.target not in _RESHAPES:
        return None
    source, shape = node.args[0], node.args[1]
    value = source.meta.get("val") if isinstance(source, fx.Node) else None
    if not isinstance(value, torch.Tensor) or not value.ndim or not isinstance(shape, list):
        return None
    is_open = isinstance(value.shape[0], torch.SymInt)
    return shape[0] if is_open and shape and isinstance(shape[0], int) else None


def _place(node: fx.Node) -> str:
    """Returns where the model's code calls an operation."""
    calls = re.findall(r'File "(.+)", line (\d+), in .+\n\s*(.+)', node.stack_trace or "")
    if not calls:
        return f"the operation {node.name}"
    path, line, code = calls[-1]
    return f"{Path(path).name}, line {line}, `{code.strip()}`"


def only_for(name: str, size: int) -> str:
    """Returns the message that a model can be exported for one size only."""
    return (
        f"the model can only be exported for {name}={size}: its code makes that size a constant, "
        "as x.view(4, -1) or a loop over the rows does; write x.shape[0] instead, or fix the "
        "dimension by batch=None or dims"
    )


def reason(model: nn.Module, opened: OpenCall, error: Exception) -> str:
    """Returns why PyTorch could not export a model.

    If tracing works with all dimensions fixed, a symbolic one is the reason; a call with twice its
    size then shows where the model's code fails.
    """
    cause = error.__cause__ or error
    sizes = opened.sizes()
    if sizes and private_export.is_tracing_failure(error):
        failure = _trace_failure(model, opened.call.args, opened.call.kwargs)
        if failure is None:
            return _explain_open_dimension(model, opened, sizes, cause)
        cause = failure
    return f"PyTorch cannot export {type(model).__name__}: {_error_text(cause)}"


def _explain_open_dimension(
    model: nn.Module, opened: OpenCall, sizes: dict[str, int], cause: BaseException
) -> str:
    for name, size in sizes.items():
        failure = _trace_failure(model, *opened.doubled(name))
        if failure is not None:
            return f"{only_for(name, size)}. With {name}={2 * size} {_error_text(failure)}"
    if len(sizes) == 1:
        ((name, size),) = sizes.items()
        return f"{only_for(name, size)}. PyTorch says: {_error_text(cause)}"
    names = ", ".join(sizes)
    return f"the model can only be exported with some of {names} fixed: {_error_text(cause)}"


def _trace_failure(
    model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception | None:
    """Traces the model with all sizes fixed, and returns the exception, if any."""
    try:
        with private_export.quiet_exporter():
            torch.export.export(model, args, kwargs, strict=False)
    except Exception as failure:
        return failure
    return None


def _error_text(failure: BaseException) -> str:
    """Returns an error as one line, with the line of the model's code that raised it."""
    text = " ".join(str(failure).split()) or type(failure).__name__
    if len(text) > _LONGEST_REASON:
        text = text[:_LONGEST_REASON] + "..."
    internal_folders = [Path(torch.__file__).parent, Path(__file__).parent]
    frames = [
        frame
        for frame in traceback.extract_tb(failure.__traceback__)
        if not any(Path(frame.filename).is_relative_to(folder) for folder in internal_folders)
    ]
    if not frames or frames[-1].filename.startswith("<"):
        return text
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}, raises: {text}"
