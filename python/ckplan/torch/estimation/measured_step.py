"""The setup of training a model, and the memory that its captured step needs with a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ckplan.torch.bounds import Bounds
from ckplan.torch.capture import storage_bytes
from ckplan.torch.costs import device_named, set_costs
from ckplan.torch.estimation import devices, optimizers
from ckplan.torch.estimation.allocator_steps import simulate_steps
from ckplan.torch.estimation.answer import Line, Need
from ckplan.torch.estimation.events import Trace, peak, trace
from ckplan.torch.estimation.optimizers import OptimizerMemory
from ckplan.torch.estimation.sharding import Shard
from ckplan.torch.estimation.tracing import Precision, Step, trace_step
from ckplan.torch.estimation.workspaces import Workspaces, added_lines, workspaces_of
from ckplan.torch.graph import JointGraph

_BY_FAKE_TENSORS = "fake tensors"
_SINGLE_TENSORS = {"parameters", "buffers", "inputs", "optimizer state"}
"""The lines that the allocator is simulated with tensor by tensor."""
_BY_REPLAY = "the captured graph, replayed"


@dataclass(frozen=True)
class TrainingSetup:
    """How a model is trained, and on which device."""

    precision: Precision
    device: str
    memory: int | None
    reserve: int | None
    context: int | None
    shard: Shard | None
    optimizer: str | optimizers.Make
    master_weights: bool
    expandable: bool
    bounds: Bounds | None = None
    returns: str = "loss"

    @property
    def memory_bytes(self) -> int:
        """Returns the given memory, or else the device's nominal one."""
        return device_named(self.device).memory_bytes if self.memory is None else self.memory

    @property
    def is_divided(self) -> bool:
        """Returns whether parameters, gradients and the optimizer's state are sharded."""
        return self.shard is not None and self.shard.system == "fsdp"

    def step(
        self, make: Callable[[], nn.Module], inputs: Any, loss: Callable[[Any], Tensor] | None
    ) -> Step:
        """Returns a captured step."""
        return trace_step(make, inputs, self.precision, loss, self.bounds, self.returns)

    def graph(self, step: Step) -> JointGraph:
        """Returns the graph of a captured step, with the device's times as costs."""
        graph = step.graph(arriving=not self.is_divided)
        set_costs(graph, f"roofline:{self.device}", fuses=False)
        return graph

    def measured(self, step: Step) -> MeasuredStep:
        """Measures everything about a captured step that does not depend on its plan."""
        shard, graph = self.shard, self.graph(step)
        parameters = [_part(parameter, shard) for parameter in step.parameters()]
        trained = [part for part, p in zip(parameters, step.parameters()) if p.requires_grad]
        optimizer = optimizers.measure(self.optimizer, trained, self.master_weights)
        workspaces = workspaces_of(graph, self.device)
        return MeasuredStep(self, step, graph, parameters, trained, optimizer, workspaces)


@dataclass
class MeasuredStep:
    """A captured step, with everything that no plan changes."""

    case: TrainingSetup
    step: Step
    graph: JointGraph
    parameters: list[Tensor]
    """On one device, as tensors without memory."""
    trained: list[Tensor]
    optimizer: OptimizerMemory
    workspaces: list[Workspaces]

    def __post_init__(self) -> None:
        self.input_bytes = sum(storage_bytes(tensor) for tensor in self.step.inputs)

    def fixed(self) -> list[Line]:
        """Returns the lines of tensors that stay for the whole step, with any plan."""
        step, case = self.step, self.case
        lines = [
            Line.exact("parameters", _sum(self.parameters), _BY_FAKE_TENSORS),
            Line.exact("buffers", _sum(step.buffers()), _BY_FAKE_TENSORS),
            Line.exact("inputs", self.input_bytes, _BY_FAKE_TENSORS),
            Line.exact("optimizer state", self.optimizer.state_bytes, self.optimizer.source),
        ]
        if case.shard is not None:
            if case.is_divided:
                lines.append(Line.exact("gradients", _sum(self.trained), _BY_FAKE_TENSORS))
            found = case.shard.at_a_time(step.model, case.precision.autocast)
            lines += [Line.ranged(name, row) for name, row in found.items() if row.most]
            lines.append(_unknown_line("NCCL's buffers", "not known without the library"))
        return lines

    def outside(self) -> list[Line]:
        """Returns the lines of memory that stays and is not tensors."""
        case = self.case
        if case.reserve is not None:
            return [Line("reserve", *3 * (case.reserve,), "reserve", "allowance")]
        known = devices.outside(case.device)
        lines = {name: Line.ranged(name, found) for name, found in known.items()}
        if case.context is not None:
            lines["context"] = Line.exact("context", case.context, "context")
        if case.memory is not None:
            lines["driver"] = Line.exact("driver", 0, "memory is what programs can use")
        return list(lines.values())

    def optimizer_bytes(self) -> int:
        """Returns the peak of gradients and the optimizer's step."""
        gradients = 0 if self.case.is_divided else _sum(self.trained)
        return gradients + self.optimizer.step_bytes

    def own_order(self) -> list[int]:
        """Returns the schedule that keeps everything."""
        return list(range(len(self.graph.operations)))

    def need(self, steps: list[int]) -> Need:
        """Returns the memory that training needs with a schedule."""
        known = [one for one in self.workspaces if one.is_known]
        ran = trace(self.graph, steps)
        added = added_lines(self.graph, steps, known, self.optimizer_bytes())
        likely = {id: amount.bytes for one in known for id, amount in one.amounts.items()}
        simulated = trace(self.graph, steps, likely) if likely else ran
        return self._need_of(ran, _BY_REPLAY, simulated, added)

    def need_of(self, ran: Trace, source: str) -> Need:
        """Returns the memory that training needs with a step's allocations, found by ``source``."""
        return self._need_of(ran, source, ran, [])

    def _need_of(self, ran: Trace, source: str, simulated: Trace, added: list[Line]) -> Need:
        """Returns all lines. ``simulated`` includes the workspaces, whose lines are ``added``."""
        fixed, outside = self.fixed(), self.outside()
        tensors = [*fixed, self._step_line(ran, source)]
        if self.case.reserve is not None:
            return Need(tensors, outside)
        workspace = outside[0].bytes
        constants = [tensor.nbytes for tensor in (*self.parameters, *self.step.buffers())]
        constants.append(self.input_bytes)
        constants += [line.bytes for line in fixed if line.name not in _SINGLE_TENSORS]
        capacity = self.case.memory_bytes - sum(line.bytes for line in outside) + workspace
        held = simulate_steps(
            [*constants, workspace], simulated, self.optimizer, capacity, self.case.expandable
        )
        kept = held.kept_bytes
        least = min(held.rounding_bytes, kept)
        allocator = Line("allocator", kept, least, kept, "replay of CUDACachingAllocator.cpp")
        return Need(tensors, [self._workspaces_line(added), allocator, *outside])

    def _workspaces_line(self, added: list[Line]) -> Line:
        """Returns one line for the workspaces of all libraries; its bound may be unknown."""
        counted = {line.name for line in added}
        unknown = [one for one in self.workspaces if one.name not in counted]
        known: list[Line | Workspaces] = [*added, *unknown]
        if not known:
            return Line("workspaces", 0, 0, 0, "no operation is known to have one")
        sources = [f"{line.name}: {line.source}" for line in known]
        most = None if unknown else sum(line.most or 0 for line in added)
        return Line(
            "workspaces",
            sum(line.bytes for line in added),
            sum(line.least for line in added),
            most,
            known[0].source if len(known) == 1 else "; ".join(sources),
        )

    def _step_line(self, ran: Trace, source: str) -> Line:
        """Returns the line of the larger peak: the backward pass's or the optimizer step's."""
        backward = peak(ran.events)[0]
        if backward >= self.optimizer_bytes():
            return Line.exact("step", backward, f"activations with gradients: {source}")
        made = f"gradients, and temporaries of the optimizer's step: {self.optimizer.source}"
        return Line.exact("step", self.optimizer_bytes(), made)


def _part(parameter: Tensor, shard: Shard | None) -> Tensor:
    shape = parameter.shape if shard is None else shard.part(parameter)
    return torch.empty(shape, dtype=parameter.dtype, device="meta")


def _sum(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def _unknown_line(name: str, why: str) -> Line:
    return Line(name, 0, 0, None, why)
