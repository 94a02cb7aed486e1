"""Trains PyTorch models by plans within a memory budget. See docs/pytorch.md.

import ckplan.torch
model = ckplan.torch.compile(model, budget="60%")
"""

from ckplan.answer import InfeasibleError, PlanError
from ckplan.planning import PlanWarning
from ckplan.torch.api import Backend, compile
from ckplan.torch.errors import ReplayError
from ckplan.torch.report import GraphReport, Report

__all__ = [
    "Backend",
    "GraphReport",
    "InfeasibleError",
    "PlanError",
    "PlanWarning",
    "ReplayError",
    "Report",
    "compile",
]
