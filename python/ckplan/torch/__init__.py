"""Trains PyTorch models by plans within a memory budget, and exports them. See docs/pytorch.md.

import ckplan.torch
planner = ckplan.torch.Backend(budget="60%")
model.compile(backend=planner, dynamic=False)               # trains within the budget, in place
model = ckplan.torch.compile(model, budget="60%")           # the same, by another module
ckplan.torch.export(model, (torch.zeros(8, 64),), "model.onnx")   # a file for the program ckplan
print(ckplan.torch.estimate(make_model, (torch.zeros(8, 64),)))   # whether it fits, without a GPU
"""

from ckplan.answer import InfeasibleError, PlanError
from ckplan.planning import PlanWarning
from ckplan.torch.api import Backend, compile
from ckplan.torch.errors import EstimateError, ExportError, ReplayError
from ckplan.torch.estimation.answer import Estimate
from ckplan.torch.estimation.estimating import estimate
from ckplan.torch.exporting import export
from ckplan.torch.named import backends
from ckplan.torch.report import GraphReport, Report

__all__ = [
    "Backend",
    "Estimate",
    "EstimateError",
    "ExportError",
    "GraphReport",
    "InfeasibleError",
    "PlanError",
    "PlanWarning",
    "ReplayError",
    "Report",
    "backends",
    "compile",
    "estimate",
    "export",
]
