"""What can go wrong between a PyTorch model and its plan."""

from __future__ import annotations


class UnsupportedGraphError(Exception):
    """A graph that cannot be planned. The text says which operation, and why.

    The graph trains as PyTorch would train it, and a PlanWarning says so.
    """


class ReplayError(RuntimeError):
    """The modules built from a plan need other memory than the plan says. They are not used."""
