"""Data-dependent sizes, and the bounds that the user gives for them.

PyTorch represents such a size by a symbol, ``u0``, ``u1`` and so on, in the order of the graph.
Plans assume that each size equals its bound. A step uses the actual sizes, and raises an error if
one is above its bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx

from ckplan.torch import operators, private
from ckplan.torch.errors import SizeAboveBoundError, UnboundedSizeError

Bounds = Mapping[str, int]

_SHOWN = 6


@dataclass(frozen=True)
class Origin:
    """The first node with a symbol, and the line of the model's code that made it."""

    symbol: str
    node: fx.Node
    dim: int | None
    """The dimension of the node's tensor that is the symbol; None where the node is a number."""
    module: str
    place: str
    code: str
    most: int | None
    """An upper bound that PyTorch knows, such as the number of elements of a mask."""

    def bound(self, bounds: Bounds) -> int | None:
        """Finds the bound by the symbol's name, or by text in its line of code."""
        if self.symbol in bounds:
            return bounds[self.symbol]
        found = [name for name in bounds if len(name) > 2 and name in self.code]
        return bounds[max(found, key=len)] if found else None

    def words(self) -> str:
        """Returns where the symbol comes from, for people."""
        where = f" of {self.module}" if self.module else ""
        return f"{self.place}{where}"


@dataclass(frozen=True)
class Check:
    """A size to compare with its bound as soon as it is known in a step."""

    node: fx.Node
    dim: int | None
    bound: int
    words: str


def validated_bounds(bounds: Any) -> dict[str, int] | None:
    """Checks the bounds that a caller passed, and copies them. Raises TypeError or ValueError."""
    if bounds is None:
        return None
    if not isinstance(bounds, Mapping):
        raise TypeError(f'bounds must be a dictionary such as {{"u0": 4096}}, not {bounds!r}')
    for name, bound in bounds.items():
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"bounds: {name!r} is neither a symbol nor a line of code")
        if not isinstance(bound, int) or isinstance(bound, bool) or bound < 1:
            raise ValueError(
                f"bounds: {name!r} must have a whole number of at least 1, not {bound!r}"
            )
    return dict(bounds)


def are_by_code(bounds: Bounds | None) -> bool:
    """Returns whether all bounds are given by code, none by a symbol such as ``u0``.

    Symbols are numbered differently if only some of the equal layers are traced.
    """
    return bounds is not None and not any(re.fullmatch(r"u\d+", name) for name in bounds)


def apply_bounds(joint: fx.GraphModule, bounds: Bounds | None) -> list[Check]:
    """Sets the bounds of data-dependent sizes, and returns the checks for a step.

    Raises UnboundedSizeError if a size has no bound.
    """
    found = list(_origins(joint.graph.nodes))
    missing = [origin for origin in found if origin.bound(bounds or {}) is None]
    if missing:
        raise UnboundedSizeError(_request(missing))
    checks = []
    for origin in found:
        bound = origin.bound(bounds or {})
        assert bound is not None
        private.set_bound(_size(origin), bound)
        checks.append(Check(origin.node, origin.dim, bound, f"{origin.symbol} ({origin.words()})"))
    return checks


def check(value: Any, dim: int | None, bound: int, words: str) -> None:
    """Raises SizeAboveBoundError for a size above its bound. The generated modules call it."""
    size = value if dim is None else value.shape[dim]
    if size > bound:
        raise SizeAboveBoundError(
            f"size {words} is {size} in this step, above its bound of {bound}: the step was "
            f"planned for at most that; raise the bound to {size} or above"
        )


def _size(origin: Origin) -> Any:
    value = origin.node.meta["val"]
    return value if origin.dim is None else value.shape[origin.dim]


def _origins(nodes: Iterable[fx.Node]) -> Iterator[Origin]:
    seen: set[str] = set()
    for node in nodes:
        value = node.meta.get("val")
        sizes = enumerate(value.shape) if isinstance(value, torch.Tensor) else [(None, value)]
        for dim, size in sizes:
            if not isinstance(size, torch.SymInt):
                continue
            symbol = private.data_symbol(size)
            if symbol is not None and symbol not in seen:
                seen.add(symbol)
                place, code = line_of(node)
                module, most = operators.module_path(node), private.upper_bound(size)
                yield Origin(symbol, node, dim, module, place, code, most)


def line_of(node: fx.Node) -> tuple[str, str]:
    """Returns the file and line of the model's code, and the code there."""
    trace = node.stack_trace or ""
    calls = re.findall(r'File "(.+)", line (\d+), in .+\n\s*(.+)', trace)
    if not calls:
        return f"the operation {node.name}", ""
    path, line, code = calls[-1]
    return f"{Path(path).name}, line {line}, `{code.strip()}`", code.strip()


def _request(missing: list[Origin]) -> str:
    """Returns an error message that lists the sizes without a bound, and what to type."""
    places: dict[str, list[Origin]] = {}
    for origin in missing:
        places.setdefault(origin.place, []).append(origin)
    rows, typed = [], {}
    for place, origins in places.items():
        names = ", ".join(origin.symbol for origin in origins[:_SHOWN])
        more = f" and {len(origins) - _SHOWN} more" if len(origins) > _SHOWN else ""
        modules = list(dict.fromkeys(origin.module for origin in origins if origin.module))
        of = f" of {modules[0]}" if modules else ""
        left = len(modules) - 1
        others = f" and {left} other module{'s' if left > 1 else ''}" if left > 0 else ""
        most = max((origin.most or 0 for origin in origins), default=0)
        known = f", at most {most:,}" if most and all(o.most for o in origins) else ""
        rows.append(f"{names}{more} at {place}{of}{others}{known}")
        code = origins[0].code
        typed[code if code and len(origins) > 1 else origins[0].symbol] = most or 4096
    return (
        "data-dependent sizes without a bound: "
        + "; ".join(rows)
        + f"; give an upper bound for each: bounds={typed!r}"
    )
