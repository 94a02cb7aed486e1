"""A comparison as text for people."""

from __future__ import annotations

from ckplan.torch.estimation.text import table
from ckplan.torch.report import size
from ckplan.torch.snapshots.comparing import CAUSES, Comparison, Moment, Parting
from ckplan.torch.snapshots.printable import printable

_ROWS = 12


def text_of(found: Comparison) -> str:
    """Returns what matches, both peaks, and where they part: by cause, module and step."""
    blocks = [_head(found), _causes(found), _modules(found), _steps(found)]
    return "\n\n".join(block for block in blocks if block)


def _head(found: Comparison) -> str:
    which = f"step {found.step} of {found.steps}, from 0" if found.steps > 1 else "its only step"
    rows = [
        ["recorded", f"device {found.device}, {which}: {found.recorded} allocations"],
        ["matched", f"{found.matched} of the {found.planned} planned ones"],
        ["before", f"{size(found.before_bytes)} are in memory when the step begins"],
        ["peak", _peak("recorded", found.recorded_peak, found.recorded_peak.recorded_bytes)],
        ["", _peak("planned", found.planned_peak, found.planned_peak.planned_bytes)],
        ["segments", f"{size(found.reserved_bytes)} at most"],
    ]
    if found.apart_bytes:
        rows.append(["gradients", f"{size(found.apart_bytes)}, which the plan counts apart"])
    return "\n".join([f"{printable(found.plan)} beside a snapshot", *table(rows, right=())])


def _peak(side: str, moment: Moment, count: int) -> str:
    return f"{side} {size(count)}, at run {moment.run} ({_named(moment)})"


def _named(row: Moment | Parting) -> str:
    module = printable(row.module)
    return printable(row.operation) + (f" of {module}" if module else "")


def _causes(found: Comparison) -> str:
    rows = [["at the recorded peak", "difference", "allocations"]]
    for cause in CAUSES:
        count, allocations = found.at_peak(cause)
        if allocations:
            rows.append([cause, _signed(count), str(allocations)])
    peak = found.recorded_peak
    rows.append(["all of it", _signed(peak.recorded_bytes - peak.planned_bytes), ""])
    return "\n".join(table(rows, right=(1, 2)))


def _modules(found: Comparison) -> str:
    differing = [row for row in found.modules if row.planned_bytes != row.recorded_bytes]
    if not differing:
        return ""
    differing.sort(key=lambda row: -abs(row.recorded_bytes - row.planned_bytes))
    rows = [["by module, there", "planned", "recorded", "difference"]]
    for row in differing[:_ROWS]:
        name = printable(row.name) or "(outside of modules)"
        both = size(row.planned_bytes), size(row.recorded_bytes)
        rows.append([name, *both, _signed(row.recorded_bytes - row.planned_bytes)])
    return "\n".join([*table(rows, right=(1, 2, 3)), *_rest(len(differing))])


def _steps(found: Comparison) -> str:
    if not found.partings:
        return "  they part nowhere"
    largest = sorted(found.partings, key=lambda row: -row.bytes)[:_ROWS]
    rows = [["runs", "they part by", "bytes", "at the peak", "operation"]]
    for row in sorted(largest, key=lambda row: (row.run, row.cause)):
        runs = f"{row.run}-{row.until}" if row.until != row.run else str(row.run)
        where = f" ({printable(row.place)})" if row.place else ""
        at_peak = "yes" if row.is_at_peak else ""
        rows.append([runs, row.cause, size(row.bytes), at_peak, _named(row) + where])
    return "\n".join([*table(rows, right=(2,)), *_rest(len(found.partings))])


def _rest(count: int) -> list[str]:
    return [f"  [{count - _ROWS} others]"] if count > _ROWS else []


def _signed(count: int) -> str:
    return ("-" if count < 0 else "+") + size(abs(count))
