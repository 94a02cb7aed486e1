"""The result of an estimate as data and as text: lines, plans and sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ckplan.torch.estimation import plan_calls
from ckplan.torch.estimation.devices import Range
from ckplan.torch.estimation.plan_calls import Peak
from ckplan.torch.report import size, table

_UNITS = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}
"""The units of tables; each table uses one."""


@dataclass(frozen=True)
class Line:
    """One item of the memory that training needs. ``most`` is None if no bound is known."""

    name: str
    bytes: int
    least: int
    most: int | None
    source: str
    kind: str = "formula"
    """How reliable it is: ``"exact"``, ``"formula"`` or ``"allowance"``."""

    @staticmethod
    def exact(name: str, size: int, source: str) -> Line:
        return Line(name, size, size, size, source, "exact")

    @staticmethod
    def ranged(name: str, found: Range) -> Line:
        return Line(name, found.bytes, found.least, found.most, found.source, found.kind)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "bytes": self.bytes,
            "least_bytes": self.least,
            "most_bytes": self.most,
            "kind": self.kind,
            "source": self.source,
        }


@dataclass(frozen=True)
class Need:
    """The memory that training needs with one plan, as lines that add up (docs/accounting.md)."""

    tensors: list[Line]
    outside: list[Line]

    @property
    def lines(self) -> list[Line]:
        return self.tensors + self.outside

    @property
    def tensor_bytes(self) -> int:
        return sum(line.bytes for line in self.tensors)

    @property
    def outside_bytes(self) -> int:
        return sum(line.bytes for line in self.outside)

    @property
    def bytes(self) -> int:
        return sum(line.bytes for line in self.lines)

    @property
    def least(self) -> int:
        return sum(line.least for line in self.lines)

    @property
    def most(self) -> int:
        """The upper bound, except for the lines without a known bound."""
        return sum(line.bytes if line.most is None else line.most for line in self.lines)

    def line(self, name: str) -> Line:
        """Returns the line of that name."""
        return next(line for line in self.lines if line.name == name)

    @property
    def unknown(self) -> list[str]:
        """Returns the names of lines without a bound."""
        return [line.name for line in self.lines if line.most is None]

    def verdict(self, memory_bytes: int) -> str:
        """Returns whether it fits, in words that are as certain as the lines."""
        if self.most <= memory_bytes:
            return "probably fits" if self.unknown else "fits"
        if self.least > memory_bytes:
            return "does not fit"
        return "probably fits" if self.bytes <= memory_bytes else "probably does not fit"

    def to_json(self, memory_bytes: int) -> dict[str, Any]:
        return {
            "verdict": self.verdict(memory_bytes),
            "bytes": self.bytes,
            "least_bytes": self.least,
            "most_bytes": self.most,
            "left_bytes": memory_bytes - self.bytes,
            "not_known": self.unknown,
            "tensor_bytes": self.tensor_bytes,
            "outside_bytes": self.outside_bytes,
            "lines": [line.to_json() for line in self.lines],
        }


@dataclass(frozen=True)
class CurvePoint:
    """A plan: its peak of activations, the memory of training with it, and its added time."""

    peak_bytes: int
    need_bytes: int
    added_share: float

    def to_json(self) -> dict[str, Any]:
        return {
            "peak_bytes": self.peak_bytes,
            "need_bytes": self.need_bytes,
            "added_share": self.added_share,
        }


@dataclass(frozen=True)
class Largest:
    """The largest size that fits, for keep-all or for plans with a limit on the added time."""

    size: str
    added_percent: int | None
    value: int | None
    need_bytes: int | None

    def to_json(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "added_percent": self.added_percent,
            "value": self.value,
            "need_bytes": self.need_bytes,
        }


@dataclass
class Estimate:
    """The memory that training a model needs, and the plan that fits if keep-all does not."""

    model: str
    sizes: dict[str, int]
    precision: str
    optimizer: str
    shard: str | None
    device: str
    memory_bytes: int
    parameters: int
    operations: int
    keep_all: Need
    backward_bytes: int
    """The peak of activations and gradients for keep-all."""
    optimizer_bytes: int
    """The peak of gradients and the optimizer's step."""
    peak: Peak
    curve: list[CurvePoint]
    plan: dict[str, Any] | None = None
    """The plan for the device, as docs/plan-format.md describes it."""
    planned: Need | None = None
    planned_bytes: int = 0
    """The peak of activations and gradients of the Inductor code that was found to fit."""
    compiler: str = "eager"
    added_share: float = 0.0
    largest: list[Largest] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    graph: bytes = b""
    """The planned joint graph, as a file."""
    constant_bytes: int = 0
    """Bytes of parameters, buffers and inputs of the whole model."""
    before_bytes: int = 0
    """Bytes of the previous step's results that the caller holds."""
    returns: str = "loss"
    eager_differs: list[str] = field(default_factory=list)
    """Known differences between eager PyTorch and the traced step."""

    @property
    def step(self) -> str:
        """The kind of the estimated step: ``"traced"``, or ``"compiled"`` by Inductor."""
        return "compiled" if self.compiler == "inductor" else "traced"

    @property
    def fits(self) -> bool:
        """Returns whether training probably fits if everything is kept."""
        return self.keep_all.bytes <= self.memory_bytes

    def arguments(self) -> str:
        """Returns arguments of ``ckplan.torch.compile`` that set the plan's peak as the limit.

        ``total`` counts gradients as they arrive, parameters and inputs. The plan excludes sharded
        gradients, and the previous step's results that the caller holds.
        """
        if self.compiler == "inductor":
            is_divided = self.shard is not None and self.shard.startswith("fsdp")
            limit = self.planned_bytes + (0 if is_divided else self.constant_bytes)
            return f'{"budget" if is_divided else "total"}={limit}, compiler="inductor"'
        assert self.plan is not None
        limit = int(self.plan["result"]["peak_bytes"]) - self.before_bytes
        if self.shard is not None and self.shard.startswith("fsdp"):
            return f'budget={limit}, returns="{self.returns}"'
        return f'total={self.constant_bytes + limit}, returns="{self.returns}"'

    def to_json(self) -> dict[str, Any]:
        """Returns the estimate as estimate.schema.json describes it."""
        planned = None
        if self.planned is not None:
            planned = self.planned.to_json(self.memory_bytes) | {"added_share": self.added_share}
        return {
            "schema_version": "1.0",
            "model": self.model,
            "sizes": self.sizes,
            "precision": self.precision,
            "optimizer": self.optimizer,
            "shard": self.shard,
            "returns": self.returns,
            "step": self.step,
            "eager_differs": self.eager_differs,
            "device": self.device,
            "memory_bytes": self.memory_bytes,
            "parameters": self.parameters,
            "operations": self.operations,
            "keep_all": self.keep_all.to_json(self.memory_bytes),
            "moments": {
                "backward_bytes": self.backward_bytes,
                "optimizer_bytes": self.optimizer_bytes,
            },
            "peak": self.peak.to_json(),
            "curve": [choice.to_json() for choice in self.curve],
            "planned": planned,
            "largest": [row.to_json() for row in self.largest],
            "notes": self.notes,
        }

    def report(self, path: Any) -> None:
        """Writes the HTML report of the plan, or of keep-all. Raises ckplan.PlanError."""
        plan_calls.write_report(self.graph, self.plan, path)

    def save(self, path: Any, keep_all: bool = False) -> list[Any]:
        """Writes PATH.plan.json and PATH.graph.json, and returns their paths.

        The plan is the one for the device, or keep-all if everything fits or ``keep_all`` is set.
        Raises ckplan.PlanError, OSError.
        """
        return list(plan_calls.save(self.graph, None if keep_all else self.plan, path))

    def __str__(self) -> str:
        return _text_of(self)


def _text_of(found: Estimate) -> str:
    """Returns the human-readable answer: whether it fits, its lines, the peak, plans and sizes."""
    blocks = [_head(found), _lines(found), _step(found), _peak(found), _curve(found), _plan(found)]
    blocks += [_largest(found), "\n".join(f"note: {note}" for note in found.notes)]
    return "\n\n".join(block for block in blocks if block)


def _head(found: Estimate) -> str:
    sizes = ", ".join(f"{name} {value}" for name, value in found.sizes.items())
    count = f"{found.parameters / 1e9:.2f} billion parameters"
    if found.parameters < 10**8:
        count = f"{found.parameters / 1e6:.2f} million parameters"
    facts = [found.model, count, sizes, found.precision, found.optimizer, found.shard or ""]
    facts.append("all results held" if found.returns == "all" else "")
    left = found.memory_bytes - found.keep_all.bytes
    room = f"{size(left)} to spare" if left >= 0 else f"{size(-left)} too much"
    verdict = found.keep_all.verdict(found.memory_bytes)
    return "\n".join(
        [
            "   ".join(part for part in facts if part),
            f"  device     {found.device}, {size(found.memory_bytes)}",
            f"  keep all   {verdict}: it needs {_range(found.keep_all)}, {room}",
        ]
    )


def _range(need: Need) -> str:
    return f"{size(need.bytes)} ({size(need.least)} to {size(need.most)})"


def _unit_of(count: int) -> tuple[str, int]:
    """Returns the largest unit that is at most this count, or the smallest unit."""
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
    """Returns which step was estimated, and how eager PyTorch differs from it."""
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
