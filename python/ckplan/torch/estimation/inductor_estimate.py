"""Estimates a step that Inductor compiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ckplan.torch.estimation.answer import CurvePoint, Estimate
from ckplan.torch.estimation.lowering import Lowered, Lowering, trace_of
from ckplan.torch.estimation.measured_step import MeasuredStep
from ckplan.torch.estimation.tracing import call_backend
from ckplan.torch.inductor.candidate_search import Candidate
from ckplan.torch.report import size

_SOURCE = "Inductor's code for a CPU, replayed"


@dataclass(frozen=True)
class ModelSource:
    """The arguments of ``estimate`` that create the model and its step."""

    make_model: Callable[[], nn.Module]
    example_inputs: Any
    loss: Callable[[Any], Tensor] | None


def estimate_compiled(
    measured: MeasuredStep, eager: Estimate, source: ModelSource, effort: str
) -> Estimate:
    """Returns the eager estimate, with its memory replaced by that of Inductor's code.

    Raises EstimateError.
    """
    lowered = _lower(measured, source, effort)
    found, case = eager, measured.case
    found.keep_all = measured.need_of(trace_of(lowered.plain.changes), _SOURCE)
    found.backward_bytes = lowered.plain.peak_bytes
    found.curve = [_choice(measured, row, lowered.plain) for row in _by_peak(lowered.tried)]
    found.plan = found.planned = None
    found.compiler = "inductor"
    found.notes = ["keep-all is plain Inductor's memory here; the peak shown is eager mode's"]
    if found.fits:
        return found
    best = lowered.best
    found.planned = measured.need_of(trace_of(best.changes), _SOURCE)
    found.planned_bytes = best.peak_bytes
    found.added_share = best.cost / max(1, lowered.plain.cost) - 1
    if found.planned.bytes > case.memory_bytes:
        found.notes.append(
            f"none of the {len(lowered.tried)} ways to divide the graph fits; the smallest is shown, "
            f"with {size(best.peak_bytes)} of activations and gradients"
        )
    return found


def _lower(measured: MeasuredStep, source: ModelSource, effort: str) -> Lowered:
    case = measured.case

    def most(plain: Candidate) -> int:
        need = measured.need_of(trace_of(plain.changes), _SOURCE)
        return plain.peak_bytes - max(0, need.bytes - case.memory_bytes)

    lowering = Lowering(case.device, effort, not case.is_divided, case.bounds, most)
    call_backend(
        source.make_model,
        source.example_inputs,
        case.precision,
        source.loss,
        lowering.backend,
        lambda: lowering.found is not None,
    )
    assert lowering.found is not None
    return lowering.found


def _by_peak(tried: list[Candidate]) -> list[Candidate]:
    return sorted(tried, key=lambda row: (row.peak_bytes, row.cost))


def _choice(measured: MeasuredStep, row: Candidate, plain: Candidate) -> CurvePoint:
    need = measured.need_of(trace_of(row.changes), _SOURCE)
    others = sum(line.bytes for line in need.lines if line.name != "allocator")
    return CurvePoint(row.peak_bytes, others, row.cost / max(1, plain.cost) - 1)
