"""Sizes that depend on data, and the bounds that the user names for them.

PyTorch calls such a size a symbol: ``u0``, ``u1`` and so on, in the order in which a graph makes
them. Memory is planned as if each had its bound. A step computes with the sizes that it has, and
stops with an error where one is above its bound.
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
    """Where a symbol arises: the first node with it, and the line of the model's code."""

    symbol: str
    node: fx.Node
    dim: int | None
    """The dimension of the node's tensor that is the symbol; None where the node is a number."""
    module: str
    place: str
    code: str
    most: int | None
    """The most that PyTorch knows it can be, such as the elements of a mask."""

    def bound(self, bounds: Bounds) -> int | None:
        """Returns the bound by the symbol's name, or by text that the line of code has in it."""
        if self.symbol in bounds:
            return bounds[self.symbol]
        found = [name for name in bounds if len(name) > 2 and name in self.code]
        return bounds[max(found, key=len)] if found else None

    def words(self) -> str:
        """Returns where the symbol arises."""
        where = f" of {self.module}" if self.module else ""
        return f"{self.place}{where}"


@dataclass(frozen=True)
class Check:
    """A size that a step compares with its bound as soon as it is known."""

    node: fx.Node
    dim: int | None
    bound: int
    words: str


def checked(bounds: Any) -> dict[str, int] | None:
    """Returns the bounds of a caller. Raises TypeError or ValueError."""
    if bounds is None:
        return None
    if not isinstance(bounds, Mapping):
        raise TypeError(f'bounds are a dictionary, as {{"u0": 4096}}, not {bounds!r}')
    for name, bound in bounds.items():
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"bounds: {name!r} is no name of a size, and no line of code")
        if not isinstance(bound, int) or isinstance(bound, bool) or bound < 1:
            raise ValueError(f"bounds: {name!r} has a whole number from 1, not {bound!r}")
    return dict(bounds)


def are_by_code(bounds: Bounds | None) -> bool:
    """Returns whether there are bounds, and none is for a symbol by its number.

    Where few of the equal layers are traced, symbols have other numbers.
    """
    return bounds is not None and not any(re.fullmatch(r"u\d+", name) for name in bounds)


def bounded(joint: fx.GraphModule, bounds: Bounds | None) -> list[Check]:
    """Gives each size that depends on data its bound, and returns what a step has to check.

    Raises UnboundedSizeError if any has none.
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
    """Raises SizeAboveBoundError for a size above its bound. Planned modules call this."""
    size = value if dim is None else value.shape[dim]
    if size > bound:
        raise SizeAboveBoundError(
            f"size {words} is {size} in this step, above its bound of {bound}: the step was "
            f"planned for no more; raise the bound to {size} or above"
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
                module, most = operators.module_path(node), private.most(size)
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
    """Says which sizes have no bound, and what to type."""
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
        "sizes depend on data, and have no bounds: "
        + "; ".join(rows)
        + f". Name the most that each can be: bounds={typed!r}"
    )
