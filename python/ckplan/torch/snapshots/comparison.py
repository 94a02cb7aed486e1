"""How a recorded step differs from its plan, as data and as text for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ckplan.torch.report import size, table

NOT_PLANNED, NOT_MADE = "not planned", "not made"
LATER, EARLIER = "freed later", "freed earlier"
CAUSES = (NOT_PLANNED, NOT_MADE, LATER, EARLIER)
_SIGNS = {NOT_PLANNED: 1, NOT_MADE: -1, LATER: 1, EARLIER: -1}


@dataclass(frozen=True)
class Moment:
    """A run of the plan, and the bytes of the step in memory there."""

    run: int
    operation: str
    module: str
    planned_bytes: int
    recorded_bytes: int

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Difference:
    """An allocation that differs between the history and the plan."""

    cause: str
    run: int
    """The first run at which it differs; -1 for before the first one."""
    until: int
    """The last run at which it differs."""
    operation: str
    module: str
    bytes: int
    place: str
    """The line of Python that allocated it, if it was recorded and is not planned."""
    is_at_peak: bool
    """Whether it is part of the difference at the recorded peak."""

    @property
    def difference(self) -> int:
        """The bytes that it adds to the recorded memory; negative if it is missing."""
        return _SIGNS[self.cause] * self.bytes

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Module:
    """The bytes of a module at the recorded peak."""

    name: str
    planned_bytes: int
    recorded_bytes: int

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Comparison:
    """How a recorded step differs from its plan."""

    plan: str
    device: int
    step: int
    steps: int
    planned: int
    """Allocations of the plan."""
    recorded: int
    """Allocations of the recorded step."""
    matched: int
    before_bytes: int
    """Bytes in memory when the step begins: parameters, the optimizer's state, and so on."""
    reserved_bytes: int
    """The most memory that the allocator holds from the driver during the step."""
    apart_bytes: int
    """Gradients of parameters, which count here but not in the plan's peak."""
    planned_peak: Moment
    recorded_peak: Moment
    modules: list[Module]
    partings: list[Difference]

    def at_peak(self, cause: str) -> tuple[int, int]:
        """Returns the bytes and number of allocations with this cause at the recorded peak."""
        rows = [row for row in self.partings if row.cause == cause and row.is_at_peak]
        return sum(row.difference for row in rows), len(rows)

    def to_json(self) -> dict[str, Any]:
        """Returns the comparison as its schema describes it."""
        written_apart = ("planned_peak", "recorded_peak", "modules", "partings")
        causes = {cause: self.at_peak(cause) for cause in CAUSES}
        return {
            "schema_version": "1.0",
            **{key: value for key, value in vars(self).items() if key not in written_apart},
            "planned_peak": self.planned_peak.to_json(),
            "recorded_peak": self.recorded_peak.to_json(),
            "causes": [
                {"cause": cause, "difference_bytes": size, "allocations": count}
                for cause, (size, count) in causes.items()
            ],
            "modules": [row.to_json() for row in self.modules],
            "partings": [row.to_json() for row in self.partings],
        }

    def __str__(self) -> str:
        return text_of(self)


_ROWS = 12


def text_of(found: Comparison) -> str:
    """Returns the matches, both peaks, and the differences by cause, module and step."""
    blocks = [_head(found), _causes(found), _modules(found), _steps(found)]
    return "\n\n".join(block for block in blocks if block)


def _head(found: Comparison) -> str:
    which = "its only step"
    if found.steps > 1:
        which = f"step {found.step} of {found.steps}, counted from 0"
    rows = [
        ["recorded", f"device {found.device}, {which}: {found.recorded} allocations"],
        ["matched", f"{found.matched} of {found.planned} planned allocations"],
        ["before", f"{size(found.before_bytes)} in memory when the step begins"],
        ["peak", _peak("recorded", found.recorded_peak, found.recorded_peak.recorded_bytes)],
        ["", _peak("planned", found.planned_peak, found.planned_peak.planned_bytes)],
        ["segments", f"{size(found.reserved_bytes)} at most"],
    ]
    if found.apart_bytes:
        rows.append(["gradients", f"{size(found.apart_bytes)}, which the plan counts separately"])
    return "\n".join([f"{printable(found.plan)} and the snapshot", *table(rows, right=())])


def _peak(side: str, moment: Moment, count: int) -> str:
    return f"{side} {size(count)}, at run {moment.run} ({_named(moment)})"


def _named(row: Moment | Difference) -> str:
    module = printable(row.module)
    return printable(row.operation) + (f" of {module}" if module else "")


def _causes(found: Comparison) -> str:
    rows = [["at the recorded peak", "difference", "allocations"]]
    for cause in CAUSES:
        count, allocations = found.at_peak(cause)
        if allocations:
            rows.append([cause, _signed(count), str(allocations)])
    peak = found.recorded_peak
    rows.append(["total", _signed(peak.recorded_bytes - peak.planned_bytes), ""])
    return "\n".join(table(rows, right=(1, 2)))


def _modules(found: Comparison) -> str:
    differing = [row for row in found.modules if row.planned_bytes != row.recorded_bytes]
    if not differing:
        return ""
    differing.sort(key=lambda row: -abs(row.recorded_bytes - row.planned_bytes))
    rows = [["by module at that peak", "planned", "recorded", "difference"]]
    for row in differing[:_ROWS]:
        name = printable(row.name) or "(outside of modules)"
        both = size(row.planned_bytes), size(row.recorded_bytes)
        rows.append([name, *both, _signed(row.recorded_bytes - row.planned_bytes)])
    return "\n".join([*table(rows, right=(1, 2, 3)), *_others_text(len(differing))])


def _steps(found: Comparison) -> str:
    if not found.partings:
        return "  no differences"
    largest = sorted(found.partings, key=lambda row: -row.bytes)[:_ROWS]
    rows = [["runs", "difference", "bytes", "at the peak", "operation"]]
    for row in sorted(largest, key=lambda row: (row.run, row.cause)):
        runs = f"{row.run}-{row.until}" if row.until != row.run else str(row.run)
        where = f" ({printable(row.place)})" if row.place else ""
        at_peak = "yes" if row.is_at_peak else ""
        rows.append([runs, row.cause, size(row.bytes), at_peak, _named(row) + where])
    return "\n".join([*table(rows, right=(2,)), *_others_text(len(found.partings))])


def _others_text(count: int) -> list[str]:
    return [f"  [{count - _ROWS} others]"] if count > _ROWS else []


def _signed(count: int) -> str:
    return ("-" if count < 0 else "+") + size(abs(count))


_WIDEST = 60


def printable(text: str) -> str:
    """Returns text from a file as one short line that cannot control a terminal."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return safe if len(safe) <= _WIDEST else f"{safe[: _WIDEST // 2]}...{safe[-_WIDEST // 2 :]}"
