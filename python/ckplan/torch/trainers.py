"""Shared code of the trainers' callbacks: compiling a model in place, and figures to log."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from ckplan.torch import obstacles, private
from ckplan.torch.api import Backend
from ckplan.torch.report import Figures


class TrainerCompiler:
    """Compiles the modules of a trainer with one backend, and reports changed figures."""

    def __init__(self, planner: Backend):
        if not isinstance(planner, Backend):
            raise TypeError(
                "pass a backend, as in PlanCallback(ckplan.torch.Backend("
                f'budget="60%")), not {planner!r}'
            )
        self._planner = planner
        self._logged: Figures = {}

    def begin(self, modules: Iterable[nn.Module]) -> None:
        """Compiles modules that are not compiled yet, and warns of obstacles to a plan."""
        for module in modules:
            for note in obstacles.warnings_before_first_call(module):
                self._planner.report.say(note)
            if not private.is_compiled_in_place(module):
                module.compile(backend=self._planner, dynamic=False)

    def changed_figures(self) -> Figures:
        """Returns the figures if they have changed since the last call; otherwise none."""
        report = self._planner.report
        if not (report.graphs or report.notes):
            report.say(obstacles.no_graph(()))
        figures = report.figures()
        if figures == self._logged:
            return {}
        self._logged = figures
        return dict(figures)
