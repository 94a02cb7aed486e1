"""What ``model.ckplan`` says: which graphs there are, how each is planned, and what it takes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ckplan.torch.graph import JointGraph
from ckplan.torch.request import Plan, Request


@dataclass
class GraphReport:
    """One graph of a model: a model without graph breaks has one for each batch size."""

    frame: int
    """Which part of the model; the first is 0. The parts are divided by graph breaks."""
    operations: int = 0
    plan: Plan | None = None
    refusal: str = ""
    """Why the graph is not planned, if it is not."""
    note: str = ""
    """What else is to be said of its plan."""
    saved_bytes: int = 0
    """What is in memory between the forward and the backward pass."""
    measured_peak_bytes: int | None = None
    """Of the first step; None before its end, and where it is not measured."""
    is_compiled: bool = False
    """Whether a compiler has the modules, so that nobody sees what they allocate."""
    recomputed: Counter[str] = field(default_factory=Counter)
    """How often the operations of a module, or of none, run again."""

    def line(self) -> str:
        """The graph in one line."""
        if self.plan is None:
            return f"graph {self.frame}: {self.operations} operations, not planned: {self.refusal}"
        plan = self.plan
        share = percent(plan.peak_bytes, plan.keep_all_peak_bytes)
        return (
            f"graph {self.frame}: {self.operations} operations, "
            f"planned peak {size(plan.peak_bytes)}, {share} of keep-all's "
            f"{size(plan.keep_all_peak_bytes)}, "
            f"{self._measured()}, "
            f"{100 * plan.added_share:+.1f}% time, {sum(self.recomputed.values())} runs again"
            + (f"; {self.note}" if self.note else "")
        )

    def _measured(self) -> str:
        if self.measured_peak_bytes is not None:
            return f"measured {size(self.measured_peak_bytes)}"
        return "not measured: compiled" if self.is_compiled else "measured after the first step"


@dataclass
class Report:
    """All graphs of a model so far, in the order in which they were compiled."""

    request: Request
    graphs: list[GraphReport] = field(default_factory=list)

    def summary(self) -> str:
        """What was asked, a line for each graph, and what is recomputed most."""
        if not self.graphs:
            return f"ckplan: {self.request.words()}; no step was trained yet"
        lines = [f"ckplan: {self.request.words()}, {self.request.algo}, costs {self.request.costs}"]
        lines += [graph.line() for graph in self.graphs]
        frames = {graph.frame for graph in self.graphs}
        if len(frames) > 1:
            lines.append(_shares(self.request, len(frames)))
        again: Counter[str] = Counter()
        for graph in self.graphs:
            again.update(graph.recomputed)
        if again:
            parts = [f"{name} x{count}" for name, count in again.most_common(12)]
            lines.append("recomputed: " + ", ".join(parts) + (", ..." if len(again) > 12 else ""))
        return "\n".join(lines)


def recomputed_modules(graph: JointGraph, plan: Plan) -> Counter[str]:
    """How often operations run beyond their first time, by module."""
    again: Counter[str] = Counter()
    for step, runs in Counter(plan.steps).items():
        operation = graph.operations[step]
        if runs > 1:
            again[operation.module or operation.name] += runs - 1
    return again


def size(count: int) -> str:
    """Bytes for people: 1.50 MiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} B" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1024
    return f"{value:.2f} TiB"


def percent(part: int, whole: int) -> str:
    """A share for people: 61%."""
    return f"{100 * part / whole:.0f}%" if whole else "100%"


def _shares(request: Request, parts: int) -> str:
    if isinstance(request.budget, str) and request.budget.endswith("%"):
        own = f"each within {request.budget} of its own"
        return f"{parts} graphs, since the model has graph breaks: {own}"
    return (
        f"{parts} graphs, since the model has graph breaks: each has what those before it leave"
        " between the passes"
    )
