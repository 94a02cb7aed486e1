"""Determines which dimensions of an exported model are symbolic, and their names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ckplan.torch import private

Dims = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True)
class Input:
    """A tensor in the arguments, which becomes an input of the graph."""

    where: str
    """The name of the argument that contains it."""
    tensor: Tensor
    names: dict[int, str]
    """The names of its symbolic dimensions."""


@dataclass(frozen=True)
class OpenCall:
    """A call of a model, with the dimensions that become symbolic."""

    call: inspect.BoundArguments
    inputs: list[Input]
    """In the order of the graph's inputs."""
    shapes: dict[str, Any]
    """The symbolic dimensions, as ``dynamic_shapes`` of ``torch.export``."""

    def sizes(self) -> dict[str, int]:
        """Returns the sizes of symbolic dimensions in this call, by name."""
        rows = [(name, entry.tensor.shape[dim]) for entry, dim, name in self.open_dimensions()]
        return dict(rows)

    def open_dimensions(self) -> Iterator[tuple[Input, int, str]]:
        """Yields (input, dimension, name) for each symbolic dimension."""
        for entry in self.inputs:
            for dim, name in entry.names.items():
                yield entry, dim, name

    def doubled(self, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns arguments in which the dimension ``name`` is twice as large."""
        larger = {
            id(entry.tensor): entry.tensor.detach().repeat(
                [2 if entry.names.get(dim) == name else 1 for dim in range(entry.tensor.ndim)]
            )
            for entry in self.inputs
            if name in entry.names.values()
        }
        leaves, rebuild = private.flatten((self.call.args, self.call.kwargs))
        call: tuple[tuple[Any, ...], dict[str, Any]]
        call = rebuild([larger.get(id(leaf), leaf) for leaf in leaves])
        return call


def open_call(call: inspect.BoundArguments, batch: str | None, dims: Dims | None) -> OpenCall:
    """Determines the symbolic dimensions: those in ``dims``; for other arguments, the first one.

    Raises TypeError or ValueError if ``dims`` or ``batch`` do not match the arguments.
    """
    dims = dims or {}
    _check_names(call, batch, dims)
    inputs: list[Input] = []
    shapes: dict[str, Any] = {}
    for parameter, name, value in _arguments(call):
        requested = dims[name] if name in dims else {} if batch is None else {0: batch}
        found, shape = _open(name, value, requested)
        inputs += found
        if parameter == name:
            shapes[name] = shape
        else:
            shapes.setdefault(parameter, {})[name] = shape
        missing = [d for d in dims.get(name, {}) if all(d >= i.tensor.ndim for i in found)]
        if missing:
            raise ValueError(f"dims: no tensor in {name} has a dimension {missing[0]}")
    opened = OpenCall(call, inputs, shapes)
    if not inputs:
        raise ValueError("no argument of forward contains a tensor")
    if batch is not None and not dims and not opened.sizes():
        raise ValueError(
            "no argument of forward has a dimension for the batch; batch=None fixes all"
        )
    _check_sizes(opened)
    return opened


def _arguments(call: inspect.BoundArguments) -> Iterator[tuple[str, str, Any]]:
    """Yields (parameter, name, value) for each argument."""
    for parameter, value in call.arguments.items():
        kind = call.signature.parameters[parameter].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            for name, item in value.items():
                yield parameter, name, item
        else:
            yield parameter, parameter, value


def _open(where: str, value: Any, asked: Mapping[int, str]) -> tuple[list[Input], Any]:
    """Returns the tensors in an argument, and its symbolic dimensions in the same structure."""
    leaves, rebuild = private.flatten(value)
    inputs: list[Input] = []
    shapes: list[dict[int, str] | None] = []
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            inputs.append(Input(where, leaf, {d: n for d, n in asked.items() if d < leaf.ndim}))
            shapes.append(inputs[-1].names)
        else:
            shapes.append(None)
    return inputs, rebuild(shapes)


def _check_names(call: inspect.BoundArguments, batch: str | None, dims: Dims) -> None:
    known = [name for _, name, _ in _arguments(call)]
    for argument, names in dims.items():
        if argument not in known:
            raise ValueError(
                f"dims: unknown argument {argument!r}; this call has {', '.join(known)}"
            )
        if not isinstance(names, Mapping) or not all(_is_dimension(d) for d in names):
            raise TypeError(
                f'dims: {argument} takes names by dimension, as {{0: "N", 1: "L"}}, not {names!r}'
            )
    requested = [name for names in dims.values() for name in names.values()]
    for name in requested if batch is None else [batch, *requested]:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f'{name!r} is not a valid name of a dimension; write "N" or "seq_len"')


def _is_dimension(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_sizes(opened: OpenCall) -> None:
    first: dict[str, tuple[str, int]] = {}
    for entry, dim, name in opened.open_dimensions():
        size = entry.tensor.shape[dim]
        where, expected = first.setdefault(name, (entry.where, size))
        if size != expected:
            raise ValueError(
                f'dimension "{name}" is {expected} in {where} and {size} in {entry.where}: pass '
                f'dims={{"{entry.where}": {{}}}} if {entry.where} has no open dimension, or '
                f'dims={{"{entry.where}": {{{dim}: "M"}}}} to give it a name of its own'
            )
