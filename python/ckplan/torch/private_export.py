"""Private names of PyTorch's ONNX exporter, and the versions that have them.

The version in each docstring is the first one with that name.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from ckplan.torch import private


@contextlib.contextmanager
def quiet_exporter() -> Iterator[None]:
    """Silences PyTorch's log messages during an export; errors repeat what matters.

    The loggers are those of ``torch.onnx._internal.exporter._registration``, since 2.5,
    ``torch._subclasses.fake_tensor``, since 2.0, and ``torch.export._trace``, since 2.2.
    """
    modules = ("onnx._internal.exporter._registration", "_subclasses.fake_tensor", "export._trace")
    loggers = [logging.getLogger(f"torch.{module}") for module in modules]
    levels = {logger: logger.level for logger in loggers}
    for logger in levels:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Exporting a model while it is in training mode")
            warnings.filterwarnings("ignore", "# The axis name: .* will not be used")
            warnings.filterwarnings("ignore", "# ONNX model has different number of inputs")
            yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def is_tracing_failure(error: Exception) -> bool:
    """Returns whether tracing failed, rather than the translation to ONNX.

    The class is ``torch.onnx._internal.exporter._errors.TorchExportError``, since 2.5.
    """
    return type(error).__name__ == "TorchExportError"


def rename_dimensions(program: Any, names: dict[str, str]) -> None:
    """``torch.onnx.ONNXProgram.rename_axes``, which 2.8 does not have."""
    if not hasattr(program, "rename_axes"):
        raise RuntimeError(
            f"PyTorch {torch.__version__} cannot name dimensions if an argument is not a tensor; "
            "update it, or pass only tensors"
        )
    program.rename_axes(names)


def is_without_data(tensor: Any) -> bool:
    """Returns whether a tensor of the exporter has no contents.

    Its tensors are PyTorch's in ``torch.onnx._internal.exporter._core.TorchTensor``, since 2.5.
    """
    raw = getattr(tensor, "raw", None)
    return isinstance(raw, torch.Tensor) and (raw.is_meta or private.is_any_fake([raw]))


def result_paths(program: Any) -> list[str]:
    """Returns how each tensor is reached in what ``forward`` returned: "logits", "states.0".

    Uses ``torch.utils._pytree``, since 2.0, and ``tree_flatten_with_path`` in it, since 2.3.
    """
    from torch.utils import _pytree

    traced = program.exported_program
    if traced is None:
        return [str(position) for position in range(len(program.model.graph.outputs))]
    specs = [spec for spec in traced.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"]
    returned = _pytree.tree_unflatten([spec.arg for spec in specs], traced.call_spec.out_spec)
    leaves, _ = _pytree.tree_flatten_with_path(returned)
    paths = []
    for path, leaf in leaves:
        if type(leaf).__name__ != "TensorArgument":
            continue
        keys = [getattr(key, "key", getattr(key, "idx", getattr(key, "name", ""))) for key in path]
        paths.append(".".join(map(str, keys)) or "0")
    return paths
