"""The report ``model.ckplan``: the model's graphs, their plans, and the memory that they need."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ckplan.planning import PlanWarning
from ckplan.torch.graph import JointGraph
from ckplan.torch.inductor.promise import Promise
from ckplan.torch.request import Plan, Request

Figures = dict[str, int | float]
"""Figures for logs, by names that begin with ``ckplan_``."""


@dataclass
class GraphReport:
    """One graph of a model. A model without graph breaks has one for each batch size."""

    part: int
    """The part of the model, from 0. Graph breaks divide a model into parts."""
    operations: int = 0
    plan: Plan | None = None
    refusal: str = ""
    """Why the graph is not planned; empty if it is."""
    note: str = ""
    """A remark about its plan."""
    share_bytes: int | None = None
    """The graph's share of a limit for several graphs, in bytes."""
    saved_bytes: int = 0
    """Bytes in memory between the forward and the backward pass."""
    saved_host_bytes: int = 0
    """Bytes on the host between the forward and the backward pass."""
    retained_peak_bytes: int = 0
    """The planned peak if the graph was retained for another backward pass, otherwise 0. The plan's
    ``peak_bytes`` and ``keep_all_peak_bytes`` then include the tensors that stay."""
    measured_peak_bytes: int | None = None
    """The peak of the first step, with all calls of the graph; None if not measured (yet)."""
    measured_host_peak_bytes: int | None = None
    """The same for copies on the host."""
    calls: int = 1
    """How many calls of the graph waited for backward at the same time."""
    compilations: int = 1
    """How often PyTorch compiled the graph."""
    is_compiled: bool = False
    """Whether a compiler runs the modules, so their memory cannot be tracked."""
    promise: Promise | None = None
    """The promised memory of a graph that Inductor compiles."""
    not_promised: str = ""
    """Why a compiled graph has no promise."""
    recomputed: Counter[str] = field(default_factory=Counter)
    """By module (or operation without one): how many operations run again."""

    def line(self) -> str:
        """Returns the graph's figures in one line."""
        if self.promise is not None:
            return self._promise_line(self.promise)
        if self.plan is None:
            return f"graph {self.part}: {self.operations} operations, not planned: {self.refusal}"
        plan = self.plan
        share = percent(plan.peak_bytes, plan.keep_all_peak_bytes)
        return (
            f"graph {self.part}: {self.operations} operations, "
            f"planned peak at most {size(plan.peak_bytes)}, {share} of keep-all's "
            f"{size(plan.keep_all_peak_bytes)}, "
            + (f"{size(self.step_peak_bytes)} of {self.calls} calls, " if self.calls > 1 else "")
            + ("its graph retained, " if self.retained_peak_bytes else "")
            + f"{self._measured_text()}, "
            f"{100 * plan.added_share:+.1f}% time, {sum(self.recomputed.values())} runs again"
            + self._offload_text(plan)
            + (f", its share {size(self.share_bytes)}" if self.share_bytes else "")
            + (f"; {self.note}" if self.note else "")
        )

    def _promise_line(self, promise: Promise) -> str:
        return (
            f"graph {self.part}: {self.operations} operations, "
            f"promised peak at most {size(promise.bytes)} "
            f"({size(promise.replayed_bytes)} replayed, {size(promise.in_operators_bytes)} in "
            f"operators), {percent(promise.bytes, promise.plain_bytes)} of plain Inductor's "
            f"{size(promise.plain_bytes)}, {self._measured_text()}, "
            f"{100 * promise.added_share:+.1f}% time predicted, {promise.way}, "
            f"{promise.rounds} round{'s' if promise.rounds > 1 else ''} in "
            f"{promise.seconds:.1f} s" + (f"; {self.note}" if self.note else "")
        )

    def note_measured(self, peak_bytes: int, retains_graph: bool) -> None:
        """Records the peak of the first step of compiled code, and warns if it is too high."""
        self.measured_peak_bytes = peak_bytes
        if self.is_above_plan and not retains_graph:
            warnings.warn(
                f"the first step of graph {self.part} needed {peak_bytes} bytes, promised "
                f"{self.step_peak_bytes}: this is a bug in ckplan.torch, please report it",
                PlanWarning,
                stacklevel=2,
            )

    @property
    def step_peak_bytes(self) -> int:
        """Returns the planned peak of a step: earlier calls wait while the last one runs."""
        if self.promise is not None:
            return self.promise.bytes
        assert self.plan is not None
        return self.plan.peak_bytes + (self.calls - 1) * self.saved_bytes

    @property
    def unplanned_bytes(self) -> int:
        """Returns what a step needs without a plan: keeping everything, or as plain Inductor."""
        if self.promise is not None:
            return self.promise.plain_bytes
        assert self.plan is not None
        return self.plan.keep_all_peak_bytes

    @property
    def added_share(self) -> float:
        """Returns the added time as a share of a step without a plan."""
        if self.promise is not None:
            return self.promise.added_share
        assert self.plan is not None
        return self.plan.added_share

    @property
    def step_host_peak_bytes(self) -> int:
        """Returns the planned peak of copies on the host in a step."""
        assert self.plan is not None
        return self.plan.host_peak_bytes + (self.calls - 1) * self.saved_host_bytes

    @property
    def is_above_plan(self) -> bool:
        """Returns whether the first step needed more memory than planned."""
        measured, on_host = self.measured_peak_bytes, self.measured_host_peak_bytes
        if (self.plan is None and self.promise is None) or measured is None:
            return False
        is_above = measured > self.step_peak_bytes
        return is_above or (on_host is not None and on_host > self.step_host_peak_bytes)

    def _offload_text(self, plan: Plan) -> str:
        """Returns what the plan moves to the host and back."""
        if not plan.transfer_bytes:
            return ""
        measured = self.measured_host_peak_bytes
        return (
            f", {size(plan.transfer_bytes)} moved, on the host at most "
            f"{size(self.step_host_peak_bytes)}"
            + (f", measured {size(measured)}" if measured is not None else "")
            + f", {percent(plan.stall_cost, plan.step_cost)} time waiting"
        )

    def _measured_text(self) -> str:
        if self.measured_peak_bytes is not None:
            name = "PLAN" if self.promise is None else "PROMISE"
            above = f", ABOVE THE {name}" if self.is_above_plan else ""
            return f"measured {size(self.measured_peak_bytes)}{above}"
        if self.not_promised:
            return f"not promised and not measured: {self.not_promised}"
        return "measured after the first step"


@dataclass
class Report:
    """All graphs of a model so far, in the order in which they were compiled."""

    request: Request
    graphs: list[GraphReport] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Remarks about the whole model, such as why it cannot be planned."""

    def say(self, note: str) -> None:
        """Warns once, and keeps the warning for the summary."""
        if note not in self.notes:
            self.notes.append(note)
            warnings.warn(note, PlanWarning, stacklevel=3)

    def summary(self) -> str:
        """Returns what was requested, a line for each graph, and the modules recomputed most."""
        if not self.graphs:
            state = "nothing is planned" if self.notes else "no step was trained yet"
            return "\n".join([f"ckplan: {self.request.words()}; {state}", *self.notes])
        request = self.request
        head = f"ckplan: {request.words()}, {request.algo}, costs {request.costs}"
        lines = [head + request.constraint_words()]
        lines += [graph.line() for graph in self.graphs]
        parts = {graph.part for graph in self.graphs}
        if len(parts) > 1:
            has_shares = any(graph.share_bytes for graph in self.graphs)
            lines.append(_shares_text(self.request, len(parts), has_shares))
        reruns: Counter[str] = Counter()
        for graph in self.graphs:
            reruns.update(graph.recomputed)
        if reruns:
            most = [f"{name} x{count}" for name, count in reruns.most_common(12)]
            lines.append("recomputed: " + ", ".join(most) + (", ..." if len(reruns) > 12 else ""))
        lines += self.notes
        return "\n".join(lines)

    def figures(self) -> Figures:
        """Returns figures for logs, of the graph whose step has the highest planned peak.

        They are empty until the first step is measured; compiled graphs are not measured.
        """
        known = [
            graph
            for graph in self.graphs
            if graph.promise is not None
            or (graph.plan is not None and (graph.measured_peak_bytes or graph.is_compiled))
        ]
        if not known:
            return {}
        largest = max(known, key=lambda graph: graph.step_peak_bytes)
        figures: Figures = {
            "ckplan_planned_peak_bytes": largest.step_peak_bytes,
            "ckplan_keep_all_peak_bytes": largest.unplanned_bytes,
            "ckplan_added_time_percent": 100 * largest.added_share,
        }
        if largest.measured_peak_bytes is not None:
            figures["ckplan_measured_peak_bytes"] = largest.measured_peak_bytes
        if largest.plan is not None and largest.plan.transfer_bytes:
            figures["ckplan_planned_host_peak_bytes"] = largest.step_host_peak_bytes
        return figures

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes the plans into a folder, for the program ``ckplan``, and returns their paths.

        ``0.plan.json`` is the plan of the first graph, and ``0.graph.json`` its graph. ``ckplan
        explain``, ``report`` and ``check`` take both.
        """
        place, written = Path(folder), []
        place.mkdir(parents=True, exist_ok=True)
        for number, graph in enumerate(self.graphs):
            if graph.plan is None:
                continue
            (place / f"{number}.graph.json").write_bytes(graph.plan.graph)
            written.append(place / f"{number}.plan.json")
            written[-1].write_text(json.dumps(graph.plan.document) + "\n", encoding="utf-8")
        return written


def recomputed_modules(graph: JointGraph, plan: Plan) -> Counter[str]:
    """Counts the runs of each module's operations beyond the first one."""
    reruns: Counter[str] = Counter()
    for step, runs in Counter(plan.steps).items():
        operation = graph.operations[step]
        if runs > 1:
            reruns[operation.module or operation.name] += runs - 1
    return reruns


def size(count: int) -> str:
    """Returns bytes as text for people: 1.50 MiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} B" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1024
    return f"{value:.2f} TiB"


def percent(part: int, whole: int) -> str:
    """Returns a share as text for people: 61%."""
    return f"{100 * part / whole:.0f}%" if whole else "100%"


def _shares_text(request: Request, parts: int, has_shares: bool) -> str:
    if request.is_relative:
        rule = f"each within {request.limit} of its own"
    elif has_shares:
        rule = "each has a share of the limit, in proportion to its keep-all peak"
    else:
        rule = "each uses little memory in the first call, and has its share from the next one on"
    return f"{parts} graphs, because the model has graph breaks: {rule}"


def table(rows: list[list[str]], right: Iterable[int]) -> list[str]:
    """Returns the rows in columns; those in ``right`` are aligned to the right."""
    aligned = set(right)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if column in aligned else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines
