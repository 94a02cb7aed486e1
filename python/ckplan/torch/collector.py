"""Pauses Python's garbage collector for cycles while it only costs time."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def paused(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Returns the function, during whose calls the collector does not look for cycles.

    This serves functions that build FX graphs. None of a graph's nodes is garbage yet, but the
    collector would traverse all of them again and again, so that the time would grow faster than
    the graph. ``python/benchmarks/building.py`` measures it.
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
