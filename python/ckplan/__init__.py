"""Plans which activations a training step keeps and which it recomputes.

The planner is the program ``ckplan``; this package finds it and runs it. See docs/python.md.
"""

from ckplan.invocation import InfeasibleError, PlanError
from ckplan.planning import PlanWarning, plan
from ckplan.program import ProgramNotFoundError, find_program

__version__ = "0.1.0"

__all__ = [
    "InfeasibleError",
    "PlanError",
    "PlanWarning",
    "ProgramNotFoundError",
    "__version__",
    "find_program",
    "plan",
]
