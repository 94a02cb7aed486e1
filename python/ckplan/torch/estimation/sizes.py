"""Finds the largest size with which training fits, from captures at a few sizes.

The bytes and costs of a step's operations at other sizes follow from captures at three sizes: they
are polynomials of the size, of degree one if it only lengthens tensors, and of degree two for
square matrices of attention. The size that is found is captured too, to verify its bytes. A model
whose graph changes with the size, for example by a loop over a sequence, has no such polynomials.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from ckplan.torch.errors import EstimateError
from ckplan.torch.estimation import plan_calls
from ckplan.torch.estimation.answer import Largest
from ckplan.torch.estimation.example_inputs import inputs_at, sizes_of
from ckplan.torch.estimation.measured_step import MeasuredStep, TrainingSetup
from ckplan.torch.estimation.workspaces import Workspaces, workspaces_of

ADDED: tuple[int | None, ...] = (None, 10, 30)
"""The limits on the added time of plans, in percent; None keeps everything."""

_MOST = 1 << 20

_ATTEMPTS = 8
"""How often the search for a size is repeated."""


def wanted(largest: str | Iterable[str], known: dict[str, int]) -> list[str]:
    """Returns the names in ``largest``. Raises ValueError for one that the inputs lack."""
    names = [largest] if isinstance(largest, str) else list(largest)
    for name in names:
        if name not in known:
            has = ", ".join(known) or "none"
            raise ValueError(f"largest: the inputs have no size {name!r}; they have {has}")
    return names


def check_added(added_times: Iterable[int | None]) -> tuple[int | None, ...]:
    """Returns the added times in ascending order. Raises ValueError for an invalid one."""
    known = tuple(added_times)
    for added in known:
        if added is not None and (type(added) is not int or added <= 0):
            raise ValueError(f"added_times must be percentages above 0, or None, not {added!r}")
    return tuple(sorted(known, key=lambda added: added or 0))


class Search:
    """The search for the largest value of one size of a model's inputs."""

    def __init__(
        self,
        make_model: Callable[[], Any],
        example_inputs: Any,
        loss: Callable[[Any], Any] | None,
        case: TrainingSetup,
        first: MeasuredStep,
        effort: str,
    ):
        self._make = make_model
        self._inputs = example_inputs
        self._loss = loss
        self._case = case
        self._first = first
        self._effort = effort
        self._sizes = sizes_of(example_inputs)

    def rows(self, name: str, added_times: Iterable[int | None]) -> list[Largest]:
        """Returns the largest value for each added time. Raises EstimateError."""
        base = self._sizes[name]
        # PyTorch traces other operations for a size of 1, such as fewer copies.
        first = max(base, 2)
        points = [(first, self._first)] if first == base else [(first, self._capture(name, first))]
        points += [(value, self._capture(name, value)) for value in (2 * first, 3 * first)]
        curve = _Polynomials(name, points)
        rows: list[Largest] = []
        known = None
        for added in added_times:
            known, row = self._search(name, curve, added, known)
            if rows and rows[-1].value == row.value and row.value is not None:
                # The plan of the row before is also within this limit, and is known to fit.
                row = min(rows[-1], row, key=lambda one: one.need_bytes or 0)
                row = dataclasses.replace(row, added_percent=added)
            rows.append(row)
        return rows

    def _search(
        self, name: str, curve: _Polynomials, added: int | None, known: int | None
    ) -> tuple[int | None, Largest]:
        """Returns the largest value and its row.

        Workspaces are not polynomials. If training does not fit with the workspaces captured at the
        size found, the search is repeated with them. The size ``known`` is known to fit.
        """
        for _ in range(_ATTEMPTS):
            found = _largest(functools.partial(self._fits, curve, added), self._sizes[name], known)
            row = self._verified_row(name, curve, added, found)
            has_room = row.need_bytes is None or row.need_bytes <= self._case.memory_bytes
            if has_room or found == known:
                break
            known = None
        return found, row

    def _fits(self, curve: _Polynomials, added: int | None, size: int) -> bool:
        return self._need(curve.at(size), added) <= self._case.memory_bytes

    def _verified_row(
        self, name: str, curve: _Polynomials, added: int | None, value: int | None
    ) -> Largest:
        if value is None:
            return Largest(name, added, None, None)
        if value == self._sizes[name]:
            return Largest(name, added, value, self._need(self._first, added))
        predicted, captured = curve.at(value), self._capture(name, value)
        same = captured.graph.values == predicted.graph.values
        if not same or captured.input_bytes != predicted.input_bytes:
            raise EstimateError(
                f"{name}={value} needs other bytes than predicted from sizes "
                f"{', '.join(map(str, curve.sizes))}, so the largest {name} is unknown: estimate "
                "single sizes instead"
            )
        # The bytes are equal, so the plan for the prediction also holds for the capture.
        curve.learn(value, captured.workspaces)
        return Largest(name, added, value, self._need(curve.at(value), added))

    def _capture(self, name: str, value: int) -> MeasuredStep:
        inputs = inputs_at(self._inputs, {**self._sizes, name: value})
        step = self._case.step(self._make, inputs, self._loss)
        graph = self._case.graph(step)
        workspaces = workspaces_of(graph, self._case.device)
        return dataclasses.replace(self._first, step=step, graph=graph, workspaces=workspaces)

    def _need(self, measured: MeasuredStep, added: int | None) -> int:
        if added is None:
            return measured.need(measured.own_order()).bytes
        content = measured.graph.to_bytes()
        plan = plan_calls.best_plan(content, self._effort, added_time=f"{added}%")
        return measured.need(plan_calls.steps_of(plan)).bytes


class _Polynomials:
    """A step as a function of a size, interpolated between captures."""

    def __init__(self, name: str, points: Sequence[tuple[int, MeasuredStep]]):
        self.sizes = [size for size, _ in points]
        self._points = [measured for _, measured in points]
        self._workspaces = {size: measured.workspaces for size, measured in points}
        first = self._points[0].graph
        for measured in self._points[1:]:
            graph = measured.graph
            is_same = [_form(o) for o in graph.operations] == [_form(o) for o in first.operations]
            if not is_same or len(graph.values) != len(first.values):
                raise EstimateError(
                    f"the graph changes with the size {name}, so its largest value cannot be "
                    "computed from a few captures: estimate single sizes instead"
                )

    def learn(self, size: int, workspaces: list[Workspaces]) -> None:
        """Adds the workspaces at one more size."""
        self._workspaces[size] = workspaces

    def at(self, size: int) -> MeasuredStep:
        """Returns the step at another size."""
        found = copy.copy(self._points[0])
        graphs = [measured.graph for measured in self._points]
        graph = copy.copy(graphs[0])
        graph.values = [copy.copy(value) for value in graph.values]
        graph.operations = [copy.copy(operation) for operation in graph.operations]
        for position, value in enumerate(graph.values):
            value.bytes = self._interpolate([g.values[position].bytes for g in graphs], size)
        for position, operation in enumerate(graph.operations):
            operation.cost = self._interpolate([g.operations[position].cost for g in graphs], size)
        found.graph = graph
        found.workspaces = self._workspaces_at(size)
        found.input_bytes = self._interpolate([m.input_bytes for m in self._points], size)
        return found

    def _workspaces_at(self, size: int) -> list[Workspaces]:
        """Returns the workspaces of the nearest captured size, scaled in proportion."""
        nearest = min(self._workspaces, key=lambda known: (abs(known - size), known))
        return [one.scaled(size, nearest) for one in self._workspaces[nearest]]

    def _interpolate(self, known: Sequence[int], size: int) -> int:
        """Evaluates the polynomial through the known values at a size; at least 0."""
        if len(set(known)) == 1:
            return known[0]
        total = Fraction(0)
        for point, value in zip(self.sizes, known):
            term = Fraction(value)
            for other in self.sizes:
                if other != point:
                    term *= Fraction(size - other, point - other)
            total += term
        return max(0, round(total))


def _form(operation: Any) -> tuple[Any, ...]:
    """Returns the properties of an operation that must be equal at all sizes."""
    target = None if operation.node is None else str(operation.node.target)
    return target, operation.reads, operation.writes, operation.repeats


def _largest(fits: Callable[[int], bool], base: int, known: int | None) -> int | None:
    """Returns the largest size that fits, if memory grows with it; None if 1 does not fit.

    ``known`` is a size that fits, for example by plans with a stricter limit.
    """
    low = known if known is not None else base
    if known is None and not fits(base):
        if not fits(1):
            return None
        low = 1
    high = 2 * low
    while high <= _MOST and fits(high):
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
