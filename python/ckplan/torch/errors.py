"""The exceptions of ckplan.torch."""

from __future__ import annotations


class UnsupportedGraphError(Exception):
    """A graph cannot be planned. The text names the operation and the reason.

    The graph then trains as in eager PyTorch, with a PlanWarning.
    """


class UnboundedSizeError(UnsupportedGraphError, ValueError):
    """A data-dependent size has no bound. The text says where it comes from."""


class SizeAboveBoundError(RuntimeError):
    """A data-dependent size is above its bound."""


class MissingKernelError(RuntimeError):
    """An operator has no fake kernel. The text says what to register."""


class ReplayError(RuntimeError):
    """The modules built from a plan need more or less memory than planned, and are not used."""


class OffloadError(RuntimeError):
    """Values of a graph cannot be moved to the host. The text says why."""


class ExportError(RuntimeError):
    """PyTorch cannot export a model, or only for one size of a dimension that should be open."""


class EstimateError(RuntimeError):
    """The memory of training a model cannot be estimated. The text says why, and what to do."""


class SnapshotError(ValueError):
    """A memory snapshot cannot be read or compared. The text says why."""
