"""Trains PyTorch models within a memory budget, estimates and exports them. See docs/pytorch.md.

import ckplan.torch
planner = ckplan.torch.Backend(budget="60%")
model.compile(backend=planner, dynamic=False)               # trains within the budget, in place
model = ckplan.torch.compile(model, budget="60%")           # the same, as a new module
ckplan.torch.export(model, (torch.zeros(8, 64),), "model.onnx")   # a file for the program ckplan
print(ckplan.torch.estimate(make_model, (torch.zeros(8, 64),)))   # whether it fits, without a GPU
print(ckplan.torch.policy(model.ckplan, "sac"))             # settings for another runtime
"""

from typing import TYPE_CHECKING, Any

from ckplan.invocation import InfeasibleError, PlanError
from ckplan.planning import PlanWarning
from ckplan.torch import private
from ckplan.torch.api import Backend, PlannedFunction, compile
from ckplan.torch.errors import (
    EstimateError,
    ExportError,
    MissingKernelError,
    OffloadError,
    ReplayError,
    SizeAboveBoundError,
    UnboundedSizeError,
)
from ckplan.torch.estimation.answer import Estimate
from ckplan.torch.estimation.estimating import estimate
from ckplan.torch.exporting import export
from ckplan.torch.named import backends
from ckplan.torch.operators import may_run_again
from ckplan.torch.policies import Policy, policy
from ckplan.torch.report import GraphReport, Report
from ckplan.torch.request import Options, Plan

if TYPE_CHECKING:
    from ckplan.torch.api import PlannedModule

__all__ = [
    "Backend",
    "Estimate",
    "EstimateError",
    "ExportError",
    "GraphReport",
    "InfeasibleError",
    "MissingKernelError",
    "OffloadError",
    "Options",
    "Plan",
    "PlanError",
    "PlanWarning",
    "PlannedFunction",
    "PlannedModule",
    "Policy",
    "ReplayError",
    "Report",
    "SizeAboveBoundError",
    "UnboundedSizeError",
    "backends",
    "compile",
    "estimate",
    "export",
    "may_run_again",
    "policy",
]


def __getattr__(name: str) -> Any:
    """Imports PyTorch's class of compiled modules only when it is needed."""
    if name == "PlannedModule":
        return private.optimized_module()
    raise AttributeError(f"module 'ckplan.torch' has no attribute {name!r}")
