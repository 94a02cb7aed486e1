"""Finds what makes an open dimension of an exported model a constant, and says it in words."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn

from ckplan.torch import private
from ckplan.torch.dimensions import Input, OpenCall

_RESHAPES = (torch.ops.aten.view.default, torch.ops.aten.reshape.default)
_LONGEST_REASON = 400


def warnings_of(exported: torch.export.ExportedProgram, opened: OpenCall) -> list[str]:
    """Returns a sentence for each reshape of the batch to its size in this call.

    Such a graph is right for that size alone, although it can be computed for others:
    ``x.view(4, -1)`` of 8 rows makes 4 rows of double length.
    """
    batches = {name: entry.tensor.shape[0] for entry, dim, name in _leading(opened)}
    found = {}
    for node in exported.graph.nodes:
        size = _constant_rows(node)
        for name, batch in batches.items():
            # One row may be meant, for example where a convolution takes the batch as groups.
            if size == batch > 1:
                place = _place(node)
                found[place] = (
                    f'{place} makes the dimension "{name}" {size} rows, whatever its size is, so '
                    f"that plans are right for {name}={size} alone: write x.shape[0] instead of "
                    f"{size}"
                )
    return list(found.values())


def _leading(opened: OpenCall) -> Iterator[tuple[Input, int, str]]:
    return (row for row in opened.open_dimensions() if row[1] == 0)


def _constant_rows(node: fx.Node) -> int | None:
    """Returns the first size of a reshape if it is a number and that of the operand is open."""
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
    """Says that a model makes a dimension a number."""
    return (
        f"the model can only be exported for {name}={size}: its code makes that size a constant, "
        "as x.view(4, -1) or a loop over the rows does. Write x.shape[0] where the code needs the "
        "size, or fix the dimension by batch=None or dims"
    )


def reason(model: nn.Module, opened: OpenCall, error: Exception) -> str:
    """Says why PyTorch has not exported a model.

    If it traces the model with all dimensions fixed, an open one is the reason. Twice its size
    shows where the model's code fails.
    """
    cause = error.__cause__ or error
    sizes = opened.sizes()
    if sizes and private.is_tracing_failure(error):
        failure = _failure(model, opened.call.args, opened.call.kwargs)
        if failure is None:
            return _reason_of_open(model, opened, sizes, cause)
        cause = failure
    return f"PyTorch cannot export {type(model).__name__}: {_words(cause)}"


def _reason_of_open(
    model: nn.Module, opened: OpenCall, sizes: dict[str, int], cause: BaseException
) -> str:
    for name, size in sizes.items():
        failure = _failure(model, *opened.doubled(name))
        if failure is not None:
            return f"{only_for(name, size)}. With {name}={2 * size} {_words(failure)}"
    if len(sizes) == 1:
        ((name, size),) = sizes.items()
        return f"{only_for(name, size)}. PyTorch says: {_words(cause)}"
    names = ", ".join(sizes)
    return f"the model can only be exported if some of {names} are fixed: {_words(cause)}"


def _failure(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """Returns what is raised where the model is traced with all sizes fixed."""
    try:
        with private.quiet_exporter():
            torch.export.export(model, args, kwargs, strict=False)
    except Exception as failure:
        return failure
    return None


def _words(failure: BaseException) -> str:
    """Returns an error in one line, with the line of the model's code that raised it."""
    text = " ".join(str(failure).split()) or type(failure).__name__
    if len(text) > _LONGEST_REASON:
        text = text[:_LONGEST_REASON] + "..."
    own = [Path(torch.__file__).parent, Path(__file__).parent]
    frames = [
        frame
        for frame in traceback.extract_tb(failure.__traceback__)
        if not any(Path(frame.filename).is_relative_to(folder) for folder in own)
    ]
    if not frames or frames[-1].filename.startswith("<"):
        return text
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}, raises: {text}"
