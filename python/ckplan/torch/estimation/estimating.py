"""Implements ``ckplan.torch.estimate``: does training fit on a device, and what helps if not?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

import ckplan
from ckplan.torch import private
from ckplan.torch.bounds import Bounds, validated_bounds
from ckplan.torch.costs import default_device, device_named
from ckplan.torch.estimation import inductor_estimate, optimizers, plan_calls, sizes
from ckplan.torch.estimation.answer import CurvePoint, Estimate, Need
from ckplan.torch.estimation.example_inputs import sizes_of
from ckplan.torch.estimation.held_results import bytes_before
from ckplan.torch.estimation.measured_step import MeasuredStep, TrainingSetup
from ckplan.torch.estimation.sharding import Shard
from ckplan.torch.estimation.tracing import PRECISIONS, Precision, Step
from ckplan.torch.report import size
from ckplan.torch.request import Request

_ATTEMPTS = 6
"""How many plans are tried for the device: the allocator's overhead depends on the plan."""

_FIRST_STEP = 64
"""The second attempt reserves this fraction (1/64) of the device's memory for the allocator, and
each later one twice as much as the one before."""


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
    """Estimates whether training a model fits on a device, without the device or the weights.

    The training step is captured on fake tensors, as ``ckplan.torch.compile`` captures it, and the
    program plans it. ``print`` the result, or use ``to_json()`` and ``report("plan.html")``.

    make_model: a function that returns the model. It may convert the model, which then keeps its
        types, move it, copy it, load a state into it or wrap it.
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
    loss: a function from the model's result to the loss, if the result contains none.
    master_weights: the optimizer trains 32-bit copies of 16-bit parameters.
    memory: the device memory that programs can use: bytes, ``"32GiB"``, or the name of a device. By
        default, the nominal memory less the driver's share.
    reserve: memory to leave free, bytes or ``"1GiB"``, instead of counting what is not tensors.
    context: the measured size of the CUDA context.
    expandable_segments: assume the allocator's setting of that name.
    largest: names of sizes, such as ``"batch"``, whose largest value to find.
    added_times: for ``largest``, allow plans that slow a step by at most these percentages; None
        keeps everything.
    bounds: upper bounds of data-dependent sizes, as in ``ckplan.torch.compile``.
    returns: ``"loss"`` for a training loop that uses the loss alone, ``"all"`` for one that holds
        all results of the model until the model has returned again, as
        ``outputs = model(**batch)`` does.
    effort: how hard to search for plans, as ``ckplan plan --effort``.
    compiler: ``"inductor"`` estimates a step that Inductor compiles, by replaying its code on fake
        tensors, without compiling kernels. Not with ``largest``.

    Raises ValueError or TypeError for an invalid argument, EstimateError if the model cannot be
    captured as one graph, UnboundedSizeError for a data-dependent size without a bound,
    MissingKernelError for an operator without a fake kernel, and ckplan.PlanError.
    """
    if compiler not in ("eager", "inductor"):
        raise ValueError(f'compiler must be "eager" or "inductor", not {compiler!r}')
    private.check_version(compiler)
    device, memory = _device_and_memory(device, memory)
    case = TrainingSetup(
        Precision.named(precision),
        _gpu(device),
        _bytes_of("memory", memory),
        _bytes_of("reserve", reserve),
        _bytes_of("context", context),
        Shard.named(shard),
        optimizer,
        master_weights,
        expandable_segments,
        validated_bounds(bounds),
        returns,
    )
    if returns not in ("all", "loss"):
        raise ValueError(f'returns must be "all" or "loss", not {returns!r}')
    optimizers.check(optimizer)
    size_names = sizes.wanted(largest, sizes_of(example_inputs))
    added = sizes.check_added(added_times)
    if compiler == "inductor" and size_names:
        raise ValueError('largest needs compiler="eager": Inductor\'s code has no open sizes')
    if compiler == "inductor" and returns != "loss":
        raise ValueError('returns="all" needs compiler="eager"')
    step = case.step(make_model, example_inputs, loss)
    measured = case.measured(step)
    if compiler == "inductor":
        source = inductor_estimate.ModelSource(make_model, example_inputs, loss)
        found = inductor_estimate.estimate_compiled(
            measured, _answer(measured, effort), source, effort
        )
    else:
        found = _answer(measured, effort)
    found.eager_differs = step.traced.differences
    if precision is not None:
        found.notes += _conversion_note(step, case.precision)
    if step.are_values_assumed:
        found.notes.append(
            "the model's constructor has a condition on a tensor's values: it was assumed to be false"
        )
    found.precision = precision or _model_precision(step)
    found.shard, found.returns = shard, returns
    found.sizes = sizes_of(example_inputs)
    for name in size_names:
        search = sizes.Search(make_model, example_inputs, loss, case, measured, effort)
        found.largest += search.rows(name, added)
    return found


def _conversion_note(step: Step, precision: Precision) -> list[str]:
    """Returns a note if the constructor converts the model, which overrides ``precision``."""
    found = {row.dtype for row in step.parameters() if row.is_floating_point()}
    if found <= {precision.parameters}:
        return []
    names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in found))
    return [f"the model's constructor converts it: its parameters are {names}"]


def _model_precision(step: Step) -> str:
    """Returns the precision of the model's own types; "own" if they differ or have no name."""
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
            f'memory must be a number of bytes, a size such as "32GiB", or a device, not {memory!r}: '
            f"{error}"
        ) from None
    if device is not None and device_named(device).name != named:
        raise ValueError(f"memory names the device {named}, but device is {device}: pass only one")
    return named, None


def _gpu(device: str) -> str:
    """Returns the full name of a device. Raises ValueError."""
    name = device_named(device).name
    if name == "cpu":
        raise ValueError(
            "device must be a GPU of `ckplan devices`: a CPU has another allocator, and no context"
        )
    return name


def _bytes_of(name: str, amount: int | str | None) -> int | None:
    """Returns a number of bytes; the program parses sizes with a unit. Raises ValueError."""
    if amount is None or isinstance(amount, int):
        return amount
    if amount.isdigit():
        return int(amount)
    refusal = f'{name} must be a number of bytes or a size such as "32GiB", not {amount!r}'
    if amount == "min":
        raise ValueError(refusal)
    try:
        return Request(total=amount).limit_bytes
    except ValueError:
        raise ValueError(refusal) from None


def _answer(measured: MeasuredStep, effort: str) -> Estimate:
    graph, case = measured.graph, measured.case
    content = graph.to_bytes()
    everything = plan_calls.keep_all(content)
    needed = measured.need(measured.own_order())
    free = plan_calls.best_plan(content, effort)
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
        peak=plan_calls.peak_of(everything, content),
        curve=_curve(measured, needed, everything, free),
        graph=content,
        constant_bytes=graph.constant_bytes(),
        before_bytes=bytes_before(graph),
    )
    if not found.fits:
        _plan_for_device(measured, found, effort)
    return found


def _curve(
    measured: MeasuredStep, needed: Need, everything: dict[str, Any], free: dict[str, Any]
) -> list[CurvePoint]:
    """Returns the plans found by a search without a budget, and keep-all.

    Their memory excludes the allocator's overhead.
    """
    cost = plan_calls.step_cost(free) or 1
    whole = everything["result"]["peak_bytes"]
    others = sum(line.bytes for line in needed.lines if line.name != "allocator")
    others -= max(whole, measured.optimizer_bytes())
    curve = free["result"].get("curve", [])
    rows = {row["peak_bytes"]: row["overhead_cost"] / cost for row in curve}
    if whole not in rows:
        rows[whole] = 0.0
    return [
        CurvePoint(size, others + max(size, measured.optimizer_bytes()), added)
        for size, added in sorted(rows.items())
        if size <= whole
    ]


def _plan_for_device(measured: MeasuredStep, found: Estimate, effort: str) -> None:
    """Finds the fastest plan with which training fits on the device."""
    if _least_need(measured, found) > found.memory_bytes:
        found.notes.append(_no_plan_note(measured, found))
        return
    fixed = sum(line.bytes for line in (*measured.fixed(), *measured.outside()))
    if measured.case.reserve is None:
        fixed += found.keep_all.line("workspaces").bytes
    limit = min(found.memory_bytes - fixed, found.backward_bytes - 1)
    less = found.memory_bytes // _FIRST_STEP
    for _ in range(_ATTEMPTS):
        try:
            plan, is_least = plan_calls.best_plan(found.graph, effort, budget=max(limit, 1)), False
        except ckplan.InfeasibleError as error:
            if error.least_bytes is None:
                break
            plan = plan_calls.best_plan(found.graph, effort, budget=error.least_bytes)
            is_least = True
        found.plan, found.planned = plan, measured.need(plan_calls.steps_of(plan))
        found.added_share = plan["result"]["overhead_cost"] / (plan_calls.step_cost(plan) or 1)
        if is_least or found.planned.bytes <= found.memory_bytes:
            break
        limit, less = min(limit, plan["result"]["peak_bytes"]) - less, 2 * less
    if found.plan is None or found.planned is None:
        found.notes.append("no plan was found")
    elif found.planned.bytes > found.memory_bytes:
        found.notes.append("no plan was found that fits; the last one tried is shown")
        _try_expandable(measured, found, plan_calls.steps_of(found.plan))


def _try_expandable(measured: MeasuredStep, found: Estimate, steps: list[int]) -> None:
    """Adds a note if the plan fits with expandable segments."""
    if measured.case.expandable:
        return
    case = dataclasses.replace(measured.case, expandable=True)
    need = dataclasses.replace(measured, case=case).need(steps)
    if need.bytes <= found.memory_bytes:
        found.notes.append(
            f"with PYTORCH_ALLOC_CONF=expandable_segments:True this plan fits, in {size(need.bytes)}: "
            "estimate with expandable_segments=True"
        )


def _least_need(measured: MeasuredStep, found: Estimate) -> int:
    """Returns the bytes that training needs with any plan, during the optimizer's step."""
    fixed = [*measured.fixed(), *measured.outside()]
    return sum(line.bytes for line in fixed) + measured.optimizer_bytes()


def _no_plan_note(measured: MeasuredStep, found: Estimate) -> str:
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
