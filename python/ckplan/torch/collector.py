"""Python's collector of cyclic garbage, and when it is in the way."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def paused(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The function, during whose calls no cyclic garbage is looked for.

    It is for functions that write FX graphs. None of their nodes is garbage yet, but the collector
    walks all of them again and again as they grow, so that the time to write a graph grew faster
    than the graph. ``python/benchmarks/building.py`` measures it.
    """

    @functools.wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if was_enabled:
                gc.enable()

    return call
