"""An estimate as text for people."""

from __future__ import annotations

from ckplan.torch.estimation.answer import Estimate, Line, Need
from ckplan.torch.report import size, table

_UNITS = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}
"""The units of tables, which have one each."""


def text_of(found: Estimate) -> str:
    """Returns the answer: whether it fits, its lines, the peak, plans and sizes."""
    blocks = [_head(found), _lines(found), _step(found), _peak(found), _curve(found), _plan(found)]
    blocks += [_largest(found), "\n".join(f"note: {note}" for note in found.notes)]
    return "\n\n".join(block for block in blocks if block)


def _head(found: Estimate) -> str:
    sizes = ", ".join(f"{name} {value}" for name, value in found.sizes.items())
    count = f"{found.parameters / 1e9:.2f} billion parameters"
    if found.parameters < 10**8:
        count = f"{found.parameters / 1e6:.2f} million parameters"
    asked = [found.model, count, sizes, found.precision, found.optimizer, found.shard or ""]
    asked.append("all results held" if found.returns == "all" else "")
    left = found.memory_bytes - found.keep_all.bytes
    room = f"{size(left)} are left" if left >= 0 else f"{size(-left)} are missing"
    verdict = found.keep_all.verdict(found.memory_bytes)
    return "\n".join(
        [
            "   ".join(part for part in asked if part),
            f"  device     {found.device}, {size(found.memory_bytes)}",
            f"  keep all   {verdict}: it needs {_range(found.keep_all)}, and {room}",
        ]
    )


def _range(need: Need) -> str:
    return f"{size(need.bytes)} ({size(need.least)} to {size(need.most)})"


def _unit_of(count: int) -> tuple[str, int]:
    """Returns the largest unit that is not above this count, or the smallest one."""
    fitting = [(name, unit) for name, unit in _UNITS.items() if unit <= count]
    return fitting[0] if fitting else ("KiB", _UNITS["KiB"])


def _lines(found: Estimate) -> str:
    need = found.keep_all
    name, unit = _unit_of(need.bytes)
    rows = [["keep all", name, "kind", "error", "source"]]
    for title, lines in (("tensors", need.tensors), ("outside", need.outside)):
        for line in lines:
            rows.append(
                [line.name, _amount(line, unit), line.kind, _error(line, unit), line.source]
            )
        rows.append([title, f"{sum(line.bytes for line in lines) / unit:.2f}", "", "", ""])
    rows.append(["need", f"{need.bytes / unit:.2f}", "", "", ""])
    moments = (
        f"  the backward pass has {size(found.backward_bytes)} of activations and gradients at "
        f"most, the optimizer's step {size(found.optimizer_bytes)}"
    )
    return "\n".join([*table(rows, right=(1,)), moments])


def _step(found: Estimate) -> str:
    """Says which step the figures are of, and what eager PyTorch does otherwise."""
    how = "PyTorch traces it" if found.step == "traced" else "Inductor compiles it"
    if not found.eager_differs:
        return f"  step       as {how}; no difference from eager PyTorch is known"
    head = f"  step       as {how}; eager PyTorch may need other memory:"
    return "\n".join([head, *(f"             - {row}" for row in found.eager_differs)])


def _amount(line: Line, unit: int) -> str:
    return "?" if line.most is None else f"{line.bytes / unit:.2f}"


def _error(line: Line, unit: int) -> str:
    if line.most is None:
        return "not known"
    below, above = line.bytes - line.least, line.most - line.bytes
    if not below and not above:
        return ""
    return f"-{below / unit:.2f} +{above / unit:.2f}"


def _peak(found: Estimate) -> str:
    unit_name, unit = _unit_of(found.backward_bytes)
    rows = [["by module", unit_name]]
    rows += [[name, f"{count / unit:.2f}"] for name, count in found.peak.modules]
    head = f"  peak at    {found.peak.operation}, {size(found.backward_bytes)}"
    return "\n".join([head, *table(rows, right=(1,))])


def _curve(found: Estimate) -> str:
    rows = [["with a plan of", "all but the allocator", "time"]]
    for choice in found.curve:
        time = f"+{100 * choice.added_share:.1f}%"
        rows.append([size(choice.peak_bytes), size(choice.need_bytes), time])
    return "\n".join(table(rows, right=(0, 1, 2)))


def _plan(found: Estimate) -> str:
    if found.planned is None:
        return ""
    verdict = found.planned.verdict(found.memory_bytes)
    return (
        f"  plan       {verdict}: it needs {_range(found.planned)}, and adds "
        f"{100 * found.added_share:.1f}% to a step\n"
        f"  train      ckplan.torch.compile(model, {found.arguments()})"
    )


def _largest(found: Estimate) -> str:
    if not found.largest:
        return ""
    rows = [["largest", "plan", "size", "it needs"]]
    for row in found.largest:
        plan = "keep all" if row.added_percent is None else f"+{row.added_percent}%"
        value = "none fits" if row.value is None else str(row.value)
        need = "" if row.need_bytes is None else size(row.need_bytes)
        rows.append([row.size, plan, value, need])
    return "\n".join(table(rows, right=(2, 3)))
