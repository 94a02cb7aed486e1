"""What the callbacks of trainers share: compiling a model in place, and the figures to log."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from ckplan.torch import obstacles, private
from ckplan.torch.api import Backend
from ckplan.torch.report import Figures


class Watch:
    """Compiles the modules of a trainer by one backend, and returns its figures when they change."""

    def __init__(self, planner: Backend):
        if not isinstance(planner, Backend):
            raise TypeError(
                "the callback takes a backend, as in PlanCallback(ckplan.torch.Backend("
                f'budget="60%")), not {planner!r}'
            )
        self._planner = planner
        self._logged: Figures = {}

    def begin(self, modules: Iterable[nn.Module]) -> None:
        """Compiles modules that are not compiled yet, and warns of what keeps one from a plan."""
        for module in modules:
            for note in obstacles.before_the_first_call(module):
                self._planner.report.say(note)
            if not private.is_compiled_in_place(module):
                module.compile(backend=self._planner, dynamic=False)

    def news(self) -> Figures:
        """Returns the figures after a step, if they differ from those returned before."""
        report = self._planner.report
        if not (report.graphs or report.notes):
            report.say(obstacles.no_graph(()))
        figures = report.figures()
        if figures == self._logged:
            return {}
        self._logged = figures
        return dict(figures)
