"""Implements ``ckplan.torch.estimate``: whether training fits a device, and what helps if not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import ckplan
import torch
from torch import Tensor, nn

from ckplan.torch import private
from ckplan.torch.bounds import Bounds, checked
from ckplan.torch.capture import storage_bytes
from ckplan.torch.costs import default_device, device_named, set_costs
from ckplan.torch.estimation import compiled, devices, optimizers, planning, sizes
from ckplan.torch.estimation.answer import Choice, Estimate, Line, Need
from ckplan.torch.estimation.events import Trace, peak, trace
from ckplan.torch.estimation.holding import bytes_before
from ckplan.torch.estimation.optimizers import OptimizerMemory
from ckplan.torch.estimation.rehearsal import rehearse
from ckplan.torch.estimation.sharding import Shard
from ckplan.torch.estimation.tracing import (
    PRECISIONS,
    Precision,
    Step,
    sizes_of,
    trace_step,
)
from ckplan.torch.estimation.workspaces import Workspaces, added_lines, workspaces_of
from ckplan.torch.graph import JointGraph
from ckplan.torch.report import size
from ckplan.torch.request import Request

_ATTEMPTS = 6
"""How often a plan is sought for the device: what the allocator keeps depends on the plan."""

_FIRST_STEP = 64
"""The second attempt leaves the allocator this part of the device's memory, and each later one
twice as much as the one before."""

_FAKE = "fake tensors"
_NOT_APART = {"parameters", "buffers", "inputs", "optimizer state"}
"""The lines whose single tensors the allocator is rehearsed with."""
_TRACE = "the captured graph, replayed"


def estimate(
    make_model: Callable[[], nn.Module],
    example_inputs: Any,
    *,
    device: str | None = None,
    optimizer: str | optimizers.Make = "adamw",
    precision: str | None = None,
    shard: str | None = None,
    loss: Callable[[Any], Tensor] | None = None,
    master_weights: bool = False,
    memory: int | str | None = None,
    reserve: int | str | None = None,
    context: int | str | None = None,
    expandable_segments: bool = False,
    largest: str | Iterable[str] = (),
    added_times: Iterable[int | None] = sizes.ADDED,
    bounds: Bounds | None = None,
    returns: str = "loss",
    effort: str = "quick",
    compiler: str = "eager",
) -> Estimate:
    """Says whether training a model fits a device, without the device and without its weights.

    The training step is captured on fake tensors, as ``ckplan.torch.compile`` captures it, and the
    program plans it. ``print`` the result, or use ``to_json()`` and ``report("plan.html")``.

    make_model: a function that makes the model. It may convert the model, which then keeps its
        types, and move it, copy it, load a state into it or wrap it.
    example_inputs: the arguments of its ``forward``: a tensor, a tuple, or a dictionary of named
        ones; or a function that returns these, with sizes as parameters that have defaults, as
        ``def inputs(batch=1, sequence=4096)``. Values do not matter.
    device: one of ``ckplan devices``, whose memory and roofline count; by default the one that
        ``memory`` names, or that of ``ckplan plan``.
    optimizer: ``"sgd"``, ``"momentum"``, ``"adam"``, ``"adamw"`` or ``"adam8bit"``; with
        ``":fused"`` or ``":for-loop"`` if it does not run as by default; or a function from a list
        of parameters to an optimizer of PyTorch.
    precision: None for the types that the model has; ``"fp32"``, ``"bf16"`` or ``"fp16"`` for
        everything, or ``"bf16-mixed"`` or ``"fp16-mixed"`` for parameters of 32 bits under
        autocast. A model that ``make_model`` converts, as by ``.half()``, keeps its types.
    shard: ``"fsdp:8"`` or ``"ddp:8"`` for one of eight devices.
    loss: a function from the model's result to the loss, where the result has none.
    master_weights: the optimizer trains copies of 32 bits of parameters of 16.
    memory: what the device gives to programs, instead of its nominal memory less what is known of
        drivers: bytes, ``"32GiB"``, or the name of a device.
    reserve: what is left free, instead of everything that is counted outside of tensors: bytes, or
        ``"1GiB"``.
    context: what the CUDA context takes, where it was measured.
    expandable_segments: the allocator's setting of that name.
    largest: the names of sizes whose largest value is sought, such as ``"batch"``.
    added_times: by plans that add at most these times to a step, in percent; None stands for
        keeping everything.
    bounds: the most that sizes can be which depend on data, as in ``ckplan.torch.compile``.
    returns: ``"loss"`` for a training loop that uses the loss alone, ``"all"`` for one that holds
        all results of the model until the model has returned again, as
        ``outputs = model(**batch)`` does.
    effort: of the search for plans, as ``ckplan plan --effort``.
    compiler: ``"inductor"`` estimates a step that Inductor compiles, by a replay of the code that
        it makes for fake tensors; nothing is compiled. Not with ``largest``.

    Raises ValueError for an argument that cannot be understood, TypeError for one of another kind,
    EstimateError if the model cannot be captured as one graph, UnboundedSizeError for a size that
    depends on data and has no bound, MissingKernelError for an operator of whose results nobody
    knows the sizes, and ckplan.PlanError.
    """
    if compiler not in ("eager", "inductor"):
        raise ValueError(f'compiler is "eager" or "inductor", not {compiler!r}')
    private.check_version(compiler)
    device, memory = _device_and_memory(device, memory)
    case = Case(
        Precision.named(precision),
        _gpu(device),
        _bytes_of("memory", memory),
        _bytes_of("reserve", reserve),
        _bytes_of("context", context),
        Shard.named(shard),
        optimizer,
        master_weights,
        expandable_segments,
        checked(bounds),
        returns,
    )
    if returns not in ("all", "loss"):
        raise ValueError(f'returns is "all" or "loss", not {returns!r}')
    optimizers.check(optimizer)
    wanted = sizes.wanted(largest, sizes_of(example_inputs))
    added = sizes.check_added(added_times)
    if compiler == "inductor" and wanted:
        raise ValueError('largest needs compiler="eager": Inductor\'s code has no open sizes')
    if compiler == "inductor" and returns != "loss":
        raise ValueError('returns="all" needs compiler="eager"')
    step = case.step(make_model, example_inputs, loss)
    measured = case.measured(step)
    if compiler == "inductor":
        source = compiled.Source(make_model, example_inputs, loss)
        found = compiled.answer(measured, _answer(measured, effort), source, effort)
    else:
        found = _answer(measured, effort)
    found.eager_differs = step.traced.differences
    if precision is not None:
        found.notes += _types_of_its_own(step, case.precision)
    if step.are_values_assumed:
        found.notes.append(
            "the model's constructor has a condition on values of a tensor: it was taken as false"
        )
    found.precision, found.shard, found.returns = precision or _own_type(step), shard, returns
    found.sizes = sizes_of(example_inputs)
    for name in wanted:
        search = sizes.Search(make_model, example_inputs, loss, case, measured, effort)
        found.largest += search.rows(name, added)
    return found


@dataclass(frozen=True)
class Case:
    """How a model is trained, and on what."""

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
        """Returns the device's memory: the nominal one, unless it was given."""
        return device_named(self.device).memory_bytes if self.memory is None else self.memory

    @property
    def is_divided(self) -> bool:
        """Returns whether devices divide parameters, gradients and the optimizer's state."""
        return self.shard is not None and self.shard.system == "fsdp"

    def step(
        self, make: Callable[[], nn.Module], inputs: Any, loss: Callable[[Any], Tensor] | None
    ) -> Step:
        """Returns a captured step."""
        return trace_step(make, inputs, self.precision, loss, self.bounds, self.returns)

    def graph(self, step: Step) -> JointGraph:
        """Returns the graph of a captured step, with the times of the device."""
        graph = step.graph(arriving=not self.is_divided)
        set_costs(graph, f"roofline:{self.device}", fuses=False)
        return graph

    def measured(self, step: Step) -> Measured:
        """Returns what a captured step has in memory besides its plan."""
        shard, graph = self.shard, self.graph(step)
        parameters = [_part(parameter, shard) for parameter in step.parameters()]
        trained = [part for part, p in zip(parameters, step.parameters()) if p.requires_grad]
        optimizer = optimizers.measure(self.optimizer, trained, self.master_weights)
        workspaces = workspaces_of(graph, self.device)
        return Measured(self, step, graph, parameters, trained, optimizer, workspaces)


@dataclass
class Measured:
    """A captured step, with everything that no plan changes."""

    case: Case
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
        """Returns the lines of what is there throughout a step, whatever the plan."""
        step, case = self.step, self.case
        lines = [
            Line.exact("parameters", _sum(self.parameters), _FAKE),
            Line.exact("buffers", _sum(step.buffers()), _FAKE),
            Line.exact("inputs", self.input_bytes, _FAKE),
            Line.exact("optimizer state", self.optimizer.state_bytes, self.optimizer.source),
        ]
        if case.shard is not None:
            if case.is_divided:
                lines.append(Line.exact("gradients", _sum(self.trained), _FAKE))
            found = case.shard.at_a_time(step.model, case.precision.autocast)
            lines += [Line.ranged(name, row) for name, row in found.items() if row.most]
            lines.append(_not_known("NCCL's buffers", "not known without the library"))
        return lines

    def outside(self) -> list[Line]:
        """Returns the lines of what is there throughout, but is no tensor."""
        case = self.case
        if case.reserve is not None:
            return [Line("reserve", *3 * (case.reserve,), "reserve", "allowance")]
        known = devices.outside(case.device)
        lines = {name: Line.ranged(name, found) for name, found in known.items()}
        if case.context is not None:
            lines["context"] = Line.exact("context", case.context, "context")
        if case.memory is not None:
            lines["driver"] = Line.exact("driver", 0, "the memory is what programs get")
        return list(lines.values())

    def optimizer_bytes(self) -> int:
        """Returns what gradients and the optimizer's step have at their most."""
        gradients = 0 if self.case.is_divided else _sum(self.trained)
        return gradients + self.optimizer.step_bytes

    def own_order(self) -> list[int]:
        """Returns the plan that keeps everything."""
        return list(range(len(self.graph.operations)))

    def need(self, steps: list[int]) -> Need:
        """Returns what training needs by a plan."""
        known = [one for one in self.workspaces if one.is_known]
        ran = trace(self.graph, steps)
        added = added_lines(self.graph, steps, known, self.optimizer_bytes())
        likely = {id: amount.bytes for one in known for id, amount in one.amounts.items()}
        rehearsed = trace(self.graph, steps, likely) if likely else ran
        return self._need_of(ran, _TRACE, rehearsed, added)

    def need_of(self, ran: Trace, source: str) -> Need:
        """Returns what training needs with what a step has allocated; ``source`` knows that."""
        return self._need_of(ran, source, ran, [])

    def _need_of(self, ran: Trace, source: str, rehearsed: Trace, added: list[Line]) -> Need:
        """Returns all lines. ``rehearsed`` has the workspaces, too, whose lines are ``added``."""
        fixed, outside = self.fixed(), self.outside()
        tensors = [*fixed, self._moment(ran, source)]
        if self.case.reserve is not None:
            return Need(tensors, outside)
        workspace = outside[0].bytes
        constants = [tensor.nbytes for tensor in (*self.parameters, *self.step.buffers())]
        constants.append(self.input_bytes)
        constants += [line.bytes for line in fixed if line.name not in _NOT_APART]
        capacity = self.case.memory_bytes - sum(line.bytes for line in outside) + workspace
        held = rehearse(
            [*constants, workspace], rehearsed, self.optimizer, capacity, self.case.expandable
        )
        kept = held.kept_bytes
        least = min(held.rounding_bytes, kept)
        allocator = Line("allocator", kept, least, kept, "replay of CUDACachingAllocator.cpp")
        return Need(tensors, [self._workspaces_line(added), allocator, *outside])

    def _workspaces_line(self, added: list[Line]) -> Line:
        """Returns one line for the workspaces of all libraries; its bound may not be known."""
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

    def _moment(self, ran: Trace, source: str) -> Line:
        """Returns the line of the moment of a step that needs most."""
        backward = peak(ran.events)[0]
        if backward >= self.optimizer_bytes():
            return Line.exact("step", backward, f"activations with gradients: {source}")
        made = f"gradients, and what the optimizer's step makes: {self.optimizer.source}"
        return Line.exact("step", self.optimizer_bytes(), made)


def _types_of_its_own(step: Step, precision: Precision) -> list[str]:
    """Returns a note if the constructor converts the model, so that ``precision`` does not hold."""
    found = {row.dtype for row in step.parameters() if row.is_floating_point()}
    if found <= {precision.parameters}:
        return []
    names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in found))
    return [f"the model's constructor converts it: its parameters are {names}"]


def _own_type(step: Step) -> str:
    """Returns the precision that a model has by itself; "own" if its types differ or have no name."""
    found = {row.dtype for row in step.parameters() if row.is_floating_point()}
    names = [name for name, (dtype, autocast) in PRECISIONS.items() if autocast is None]
    return next((name for name in names if found == {PRECISIONS[name][0]}), "own")


def _device_and_memory(
    device: str | None, memory: int | str | None
) -> tuple[str, int | str | None]:
    """Returns a device's name, and its memory if that is not the nominal one. Raises ValueError."""
    if not isinstance(memory, str) or not memory[:1].isalpha():
        return device or default_device(), memory
    try:
        named = device_named(memory).name
    except ValueError as error:
        raise ValueError(
            f'memory is a number of bytes, a size such as "32GiB" or a device, not {memory!r}: {error}'
        ) from None
    if device is not None and device_named(device).name != named:
        raise ValueError(f"memory is that of {named}, and the device is {device}: name one of them")
    return named, None


def _gpu(device: str) -> str:
    """Returns the full name of a device. Raises ValueError."""
    name = device_named(device).name
    if name == "cpu":
        raise ValueError(
            "device is a GPU of `ckplan devices`: a CPU has another allocator, and no context"
        )
    return name


def _bytes_of(name: str, amount: int | str | None) -> int | None:
    """Returns a number of bytes, which the program reads if it has a unit. Raises ValueError."""
    if amount is None or isinstance(amount, int):
        return amount
    if amount.isdigit():
        return int(amount)
    refusal = f'{name} is a number of bytes or a size such as "32GiB", not {amount!r}'
    if amount == "min":
        raise ValueError(refusal)
    try:
        return Request(total=amount).limit_bytes
    except ValueError:
        raise ValueError(refusal) from None


def _answer(measured: Measured, effort: str) -> Estimate:
    graph, case = measured.graph, measured.case
    content = graph.to_bytes()
    everything = planning.keep_all(content)
    needed = measured.need(measured.own_order())
    free = planning.plan_of(content, effort)
    found = Estimate(
        model=measured.step.name,
        sizes={},
        precision="",
        optimizer=measured.optimizer.name,
        shard=None,
        device=case.device,
        memory_bytes=case.memory_bytes,
        parameters=sum(parameter.numel() for parameter in measured.step.parameters()),
        operations=len(graph.operations),
        keep_all=needed,
        backward_bytes=everything["result"]["peak_bytes"],
        optimizer_bytes=measured.optimizer_bytes(),
        peak=planning.peak_of(everything, content),
        curve=_curve(measured, needed, everything, free),
        graph=content,
        constant_bytes=graph.constant_bytes(),
        before_bytes=bytes_before(graph),
    )
    if not found.fits:
        _plan_for_device(measured, found, effort)
    return found


def _curve(
    measured: Measured, needed: Need, everything: dict[str, Any], free: dict[str, Any]
) -> list[Choice]:
    """Returns the plans that a search without a budget has found, and keeping everything.

    What training needs with them does not count what the allocator keeps.
    """
    cost = planning.step_cost(free) or 1
    whole = everything["result"]["peak_bytes"]
    others = sum(line.bytes for line in needed.lines if line.name != "allocator")
    others -= max(whole, measured.optimizer_bytes())
    curve = free["result"].get("curve", [])
    rows = {row["peak_bytes"]: row["overhead_cost"] / cost for row in curve}
    if whole not in rows:
        rows[whole] = 0.0
    return [
        Choice(size, others + max(size, measured.optimizer_bytes()), added)
        for size, added in sorted(rows.items())
        if size <= whole
    ]


def _plan_for_device(measured: Measured, found: Estimate, effort: str) -> None:
    """Seeks the plan of the least added time with which training fits the device."""
    if _least_need(measured, found) > found.memory_bytes:
        found.notes.append(_no_plan_helps(measured, found))
        return
    fixed = sum(line.bytes for line in (*measured.fixed(), *measured.outside()))
    if measured.case.reserve is None:
        fixed += found.keep_all.line("workspaces").bytes
    limit = min(found.memory_bytes - fixed, found.backward_bytes - 1)
    less = found.memory_bytes // _FIRST_STEP
    for _ in range(_ATTEMPTS):
        try:
            plan, is_least = planning.plan_of(found.graph, effort, budget=max(limit, 1)), False
        except ckplan.InfeasibleError as error:
            if error.least_bytes is None:
                break
            plan = planning.plan_of(found.graph, effort, budget=error.least_bytes)
            is_least = True
        found.plan, found.planned = plan, measured.need(planning.steps_of(plan))
        found.added_share = plan["result"]["overhead_cost"] / (planning.step_cost(plan) or 1)
        if is_least or found.planned.bytes <= found.memory_bytes:
            break
        limit, less = min(limit, plan["result"]["peak_bytes"]) - less, 2 * less
    if found.plan is None or found.planned is None:
        found.notes.append("no plan was found")
    elif found.planned.bytes > found.memory_bytes:
        found.notes.append("no plan was found with which it fits; the last one tried is shown")
        _try_expandable(measured, found, planning.steps_of(found.plan))


def _try_expandable(measured: Measured, found: Estimate, steps: list[int]) -> None:
    """Says whether the plan fits with another setting of the allocator."""
    if measured.case.expandable:
        return
    case = dataclasses.replace(measured.case, expandable=True)
    need = dataclasses.replace(measured, case=case).need(steps)
    if need.bytes <= found.memory_bytes:
        found.notes.append(
            f"with PYTORCH_ALLOC_CONF=expandable_segments:True this plan needs {size(need.bytes)}, "
            "which fits: estimate with expandable_segments=True"
        )


def _least_need(measured: Measured, found: Estimate) -> int:
    """Returns what no plan changes, at the moment of the optimizer's step."""
    fixed = [*measured.fixed(), *measured.outside()]
    return sum(line.bytes for line in fixed) + measured.optimizer_bytes()


def _no_plan_helps(measured: Measured, found: Estimate) -> str:
    hints = []
    if measured.optimizer.step_bytes and not callable(measured.case.optimizer):
        hints.append('optimizer="adamw:fused", whose step needs no copies')
    if "8bit" not in measured.optimizer.name:
        hints.append('optimizer="adam8bit"')
    if measured.case.shard is None:
        hints.append('shard="fsdp:8"')
    return (
        "no plan helps: the optimizer's step alone needs more than the device has; try "
        + ", ".join(hints or ["a device with more memory, or more devices"])
    )


def _part(parameter: Tensor, shard: Shard | None) -> Tensor:
    shape = parameter.shape if shard is None else shard.part(parameter)
    return torch.empty(shape, dtype=parameter.dtype, device="meta")


def _sum(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def _not_known(name: str, why: str) -> Line:
    return Line(name, 0, 0, None, why)
