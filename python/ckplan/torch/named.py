"""Implements the backend that ``torch.compile(model, backend="ckplan", options={...})`` names.

PyTorch finds it by an entry point of this package (pyproject.toml), and calls the one backend of
the process with each graph of each model. The graphs of one ``torch.compile`` have the same
dictionary of options, and share a planner.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from typing import Any

from torch import fx

from ckplan.torch import private
from ckplan.torch.api import Backend
from ckplan.torch.request import Request

OPTIONS = tuple(field.name for field in dataclasses.fields(Request))
"""The names of all options."""


class NamedBackend:
    """Passes each graph to the planner of its ``torch.compile``."""

    __name__ = "ckplan"

    def __init__(self) -> None:
        # Holding the dictionaries keeps their ids unique. Their first contents reveal changes.
        self._planners: list[tuple[Mapping[str, Any], dict[str, Any], Backend]] = []

    def __call__(
        self,
        module: fx.GraphModule,
        inputs: list[Any],
        *,
        options: Mapping[str, Any] | None = None,
        mode: str | None = None,
        name: str | None = None,
    ) -> Callable[..., Any]:
        """Compiles a graph."""
        try:
            if mode is not None:
                raise ValueError(
                    f'backend "ckplan" does not accept mode=; its options are {_list(OPTIONS)}'
                )
            return self._planner({} if options is None else options)(module, inputs)
        except Exception as error:
            failure = private.failure_of(self, error)
            if failure is error:
                raise
            raise failure from error

    def backends(self) -> list[Backend]:
        """Returns the planners in the order of their first graphs."""
        return [planner for _, _, planner in self._planners]

    def reset(self) -> None:
        """Forgets all planners, as ``torch._dynamo.reset()`` forgets all graphs."""
        self._planners.clear()

    def _planner(self, options: Mapping[str, Any]) -> Backend:
        for known, contents, planner in self._planners:
            if known is options and contents == options:
                return planner
        _check(options)
        planner = Backend(**options)
        self._planners.append((options, dict(options), planner))
        return planner


def _check(options: Mapping[str, Any]) -> None:
    """Raises ValueError for an option that does not exist."""
    for name in options:
        if name in OPTIONS:
            continue
        near = difflib.get_close_matches(str(name), OPTIONS, 1)
        meant = f'did you mean "{near[0]}"? ' if near else ""
        raise ValueError(
            f'backend "ckplan" has no option "{name}"; {meant}its options are {_list(OPTIONS)}'
        )


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)


named_backend = NamedBackend()


def backends() -> list[Backend]:
    """Returns the backends created by ``torch.compile(model, backend="ckplan")``.

    There is one for each dictionary of options, in the order of their first graphs.
    ``torch._dynamo.reset()`` removes them.
    """
    return named_backend.backends()
