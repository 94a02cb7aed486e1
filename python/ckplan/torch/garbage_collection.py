"""Pauses Python's cyclic garbage collector while graphs are built."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def paused(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Decorates a function so that the cyclic collector is off during its calls.

    It is for functions that build FX graphs. The collector would traverse all nodes of the growing
    graph again and again, although none is garbage, so time would grow faster than the graph:
    ``python/benchmarks/building.py`` measures it.
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
