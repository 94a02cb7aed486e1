"""The answer of an estimate: its lines, its plans and its sizes, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ckplan.torch.estimation.devices import Range


@dataclass(frozen=True)
class Line:
    """One part of what training needs. ``most`` is None where no bound is known."""

    name: str
    bytes: int
    least: int
    most: int | None
    source: str
    kind: str = "formula"
    """How far it can be trusted: ``"exact"``, ``"formula"`` or ``"allowance"``."""

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
    """What training needs with one plan, as lines that add up (docs/accounting.md)."""

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
        """The most, without the lines for which no bound is known."""
        return sum(line.bytes if line.most is None else line.most for line in self.lines)

    def line(self, name: str) -> Line:
        """Returns the line of that name."""
        return next(line for line in self.lines if line.name == name)

    @property
    def unknown(self) -> list[str]:
        """Returns the names of lines without a bound."""
        return [line.name for line in self.lines if line.most is None]

    def verdict(self, memory_bytes: int) -> str:
        """Says whether it fits, as surely as the lines allow."""
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
class Choice:
    """A plan: its peak of activations, what training then needs, and the time that it adds."""

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
class Peak:
    """Where keeping everything needs most: the operation, and the bytes there by module."""

    operation: str
    modules: list[tuple[str, int]]

    def to_json(self) -> dict[str, Any]:
        modules = [{"module": name, "bytes": size} for name, size in self.modules]
        return {"operation": self.operation, "modules": modules}


@dataclass(frozen=True)
class Largest:
    """The largest size that fits, keeping everything or by plans that add at most some time."""

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
    """What training a model needs, and what can be done where it does not fit."""

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
    """The peak of activations and gradients, keeping everything."""
    optimizer_bytes: int
    """What gradients and the optimizer's step have at their most."""
    peak: Peak
    curve: list[Choice]
    plan: dict[str, Any] | None = None
    """The plan for the device, as docs/plan-format.md describes it."""
    planned: Need | None = None
    planned_bytes: int = 0
    """The peak of activations and gradients with which Inductor's code was found to fit."""
    compiler: str = "eager"
    added_share: float = 0.0
    largest: list[Largest] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    graph: bytes = b""
    """The joint graph's file, which the plan is of."""
    constant_bytes: int = 0
    """Parameters, buffers and inputs of the whole model."""
    before_bytes: int = 0
    """What the caller holds of the step before."""
    returns: str = "loss"
    eager_differs: list[str] = field(default_factory=list)
    """What eager PyTorch is known to do otherwise than the step that was traced."""

    @property
    def step(self) -> str:
        """Which step the figures are of: ``"traced"``, or ``"compiled"`` by Inductor."""
        return "compiled" if self.compiler == "inductor" else "traced"

    @property
    def fits(self) -> bool:
        """Returns whether training fits when everything is kept, by the likely figures."""
        return self.keep_all.bytes <= self.memory_bytes

    def arguments(self) -> str:
        """Returns the arguments of ``ckplan.torch.compile`` by which the plan's peak is a limit.

        Gradients that arrive count in ``total``, beside parameters and inputs. Divided ones are
        not in the plan, and neither is what the caller holds of the step before.
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
        """Returns the answer as estimate.schema.json describes it."""
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
        """Writes the HTML report of the plan, or of keeping everything. Raises ckplan.PlanError."""
        from ckplan.torch.estimation.planning import write_report

        write_report(self.graph, self.plan, path)

    def save(self, path: Any, keep_all: bool = False) -> list[Any]:
        """Writes PATH.plan.json and PATH.graph.json, and returns their paths.

        The plan is the one for the device; where everything fits, or with ``keep_all``, it is that
        of keeping everything. Raises ckplan.PlanError, OSError.
        """
        from ckplan.torch.estimation.planning import save

        return list(save(self.graph, None if keep_all else self.plan, path))

    def __str__(self) -> str:
        from ckplan.torch.estimation.text import text_of

        return text_of(self)
