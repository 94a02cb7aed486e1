"""Errors that can occur between a PyTorch model and its plan."""

from __future__ import annotations


class UnsupportedGraphError(Exception):
    """A graph cannot be planned. The text says which operation is the reason, and why.

    The graph trains as PyTorch would train it, and a PlanWarning says so.
    """


class ReplayError(RuntimeError):
    """The modules built from a plan need other memory than planned. They are not used."""


class ExportError(RuntimeError):
    """PyTorch cannot export a model, or only for one size of a dimension that should be open."""


class EstimateError(RuntimeError):
    """The memory of a model's training cannot be estimated. The text says why, and what helps."""


class SnapshotError(ValueError):
    """A recording of PyTorch's allocator cannot be read, or not compared. The text says why."""
