"""Code of a user, which test_types.py checks by mypy --strict, and no test runs.

Each ``type: ignore`` stands where mypy must find that fault: one that it does not find is reported.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import assert_type

import ckplan
import ckplan.torch

planner = ckplan.torch.Backend("60%", keep=["encoder", "!encoder.0"], recompute="op:gelu")
assert_type(planner.summary(), str)
assert_type(planner.report, ckplan.torch.Report)
assert_type(planner.report.graphs, list[ckplan.torch.GraphReport])
assert_type(planner.report.graphs[0].plan, ckplan.torch.Plan | None)
assert_type(planner.report.graphs[0].measured_peak_bytes, int | None)
assert_type(planner.report.write("plans"), list[Path])
assert_type(planner.report.figures(), dict[str, int | float])
assert_type(ckplan.torch.backends(), list[ckplan.torch.Backend])
ckplan.torch.Backend(budget=0.6)  # type: ignore[arg-type]
ckplan.torch.Backend(bugdet="60%")  # type: ignore[call-arg]

model = nn.Linear(4, 4)
model.compile(backend=planner, dynamic=False)
torch.compile(model, backend=planner, dynamic=False)
torch.compile(model, backend="ckplan", options={"budget": "60%"})

planned = ckplan.torch.compile(model, "60%", effort="normal", fullgraph=True)
assert_type(planned, ckplan.torch.PlannedModule)
assert_type(planned.ckplan, ckplan.torch.Report)
torch.optim.SGD(planned.parameters())
ckplan.torch.compile(model, bugdet="60%")  # type: ignore[call-overload]
ckplan.torch.compile(model, budget=0.6)  # type: ignore[call-overload]
options: ckplan.torch.Options = {"total": 1 << 30, "keep": ("a", "b")}
ckplan.torch.compile(model, **options)
wrong: ckplan.torch.Options = {"effort": 3}  # type: ignore[typeddict-item]


def loss_of(rows: Tensor, scale: float = 1.0) -> Tensor:
    return rows.square().mean() * scale


function = ckplan.torch.compile(loss_of, total="16GiB", optimizer="adamw")
assert_type(function(torch.zeros(4), scale=2.0), Tensor)
assert_type(function.ckplan.summary(), str)
function("rows")  # type: ignore[arg-type]

found = ckplan.torch.estimate(lambda: nn.Linear(4, 4), (torch.zeros(2, 4),), largest="batch")
assert_type(found, ckplan.torch.Estimate)
assert_type(found.fits, bool)
assert_type(ckplan.torch.export(model, (torch.zeros(2, 4),), "model.onnx"), Path)

plan = ckplan.plan("model.onnx", budget="60%", dim={"N": 4})
assert_type(plan, dict[str, Any])
try:
    ckplan.plan(b"", budget=1)
except ckplan.InfeasibleError as error:
    assert_type(error.least_bytes, int | None)
    assert_type(error.remedy, dict[str, Any] | None)
