"""Compares plans of exported models with the memory of PyTorch's eager training step on a CPU.

    python python/benchmarks/eager_step.py [NAME...] [--files ckplan,dynamo] [--flags "--autograd torch-cpu"]

The measured peak counts every storage that one eager step of a network makes
(``model(*batch).backward()``, training mode, with the loss) to the byte, without inputs and without
the final gradients of parameters. The same step's saved tensors are those that autograd packs,
without parameters and buffers. For each kind of file there is a column with ckplan's keep-all peak
and its saved bytes, as ratios to the measured ones:

* ``ckplan``: of ``ckplan.torch.export``;
* ``dynamo``: of ``torch.onnx.export(dynamo=True, optimize=False)``; ``optimized`` without the last;
* ``torchscript``: of the older exporter, ``dynamo=False``;
* ``onnxsim``, ``onnxruntime``: the file ``dynamo``, written again by these programs, if installed.

Networks are those of eager_networks.py.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ckplan.torch
import torch
from ckplan.torch import private
from ckplan.torch.tracker import Tracker
from torch import Tensor, nn

from eager_networks import FULL, NETWORKS, Batch, rows


def measure(model: nn.Module, batch: Batch) -> tuple[int, int]:
    """Returns the peak bytes and the saved bytes of one eager step."""
    constants = {private.storage_key(t) for t in [*model.parameters(), *model.buffers()]}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        if private.storage_key(tensor) not in constants:
            saved[private.storage_key(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(*batch).backward()
    tracker = _tracked(model, batch)
    tracker.leave_out([p.grad for p in model.parameters() if p.grad is not None])
    return tracker.peak_bytes(), sum(saved.values())


def measure_with_gradients(model: nn.Module, batch: Batch) -> int:
    """Returns the peak bytes of one eager step that begins without gradients of parameters."""
    return _tracked(model, batch).peak_bytes()


def _tracked(model: nn.Module, batch: Batch) -> Tracker:
    """Runs a step that begins without gradients of parameters."""
    model.zero_grad(set_to_none=True)
    tracker = Tracker()
    inputs = [*model.parameters(), *model.buffers(), *batch]
    tracker.run(lambda _: model(*batch).backward(), inputs)
    return tracker


def _save_ckplan(model: nn.Module, batch: Batch, path: Path) -> None:
    ckplan.torch.export(model, batch, path, batch=None)


def _save_dynamo(model: nn.Module, batch: Batch, path: Path, optimize: bool = False) -> None:
    program = torch.onnx.export(model, batch, dynamo=True, optimize=optimize, verbose=False)
    program.save(str(path))


def _save_optimized(model: nn.Module, batch: Batch, path: Path) -> None:
    _save_dynamo(model, batch, path, optimize=True)


def _save_torchscript(model: nn.Module, batch: Batch, path: Path) -> None:
    torch.onnx.export(
        model,
        batch,
        str(path),
        dynamo=False,
        training=torch.onnx.TrainingMode.TRAINING,
        do_constant_folding=False,
    )


def _dynamo_beside(model: nn.Module, batch: Batch, path: Path) -> Path:
    """Returns the network's plain ``dynamo`` export beside ``path``, writing it first if missing."""
    plain = path.with_name(path.name.split(".")[0] + ".dynamo.onnx")
    if not plain.exists():
        _save_dynamo(model, batch, plain)
    return plain


def _save_onnxsim(model: nn.Module, batch: Batch, path: Path) -> None:
    import onnx
    import onnxsim

    simplified, is_equal = onnxsim.simplify(onnx.load(_dynamo_beside(model, batch, path)))
    if not is_equal:
        raise RuntimeError("onnxsim's model computes something else")
    onnx.save(simplified, path)


def _save_onnxruntime(model: nn.Module, batch: Batch, path: Path) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    plain = _dynamo_beside(model, batch, path)
    onnxruntime.InferenceSession(plain, options, providers=["CPUExecutionProvider"])


FILES: dict[str, Callable[[nn.Module, Batch, Path], None]] = {
    "ckplan": _save_ckplan,
    "dynamo": _save_dynamo,
    "optimized": _save_optimized,
    "torchscript": _save_torchscript,
    "onnxsim": _save_onnxsim,
    "onnxruntime": _save_onnxruntime,
}


def save(kind: str, model: nn.Module, batch: Batch, path: Path) -> None:
    """Writes the network as a file of that kind, and suppresses what exporters print."""
    logging.disable(logging.CRITICAL)
    with _without_output():
        FILES[kind](model, batch, path)


@contextlib.contextmanager
def _without_output() -> Iterator[None]:
    """Suppresses standard output, also that of C++ libraries."""
    sys.stdout.flush()
    ours = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(ours, 1)
        os.close(ours)


def inspect(path: Path, flags: list[str]) -> dict[str, Any]:
    """Returns the output of ``ckplan inspect`` for the model."""
    program = os.environ.get("CKPLAN_PROGRAM") or shutil.which("ckplan") or "ckplan"
    command = [program, "inspect", str(path), "--format", "json", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def main() -> None:
    """Prints a table in Markdown, and the reasons for missing cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(NETWORKS | FULL))
    parser.add_argument("--files", default="ckplan,dynamo", help=", ".join(FILES))
    parser.add_argument("--flags", default="--autograd torch-cpu", help="of ckplan inspect")
    parser.add_argument("--keep", type=Path, help="folder that caches models and figures")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    kinds = asked.files.split(",")
    for kind in kinds:
        if kind in ("onnxsim", "onnxruntime") and importlib.util.find_spec(kind) is None:
            parser.error(f"{kind} is not installed")
    heads = ["network", "peak, MB", "saved, MB", *kinds]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads), flush=True)
    with tempfile.TemporaryDirectory() as made:
        folder = asked.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        for name, model, batch in rows(asked.names):
            print(_row(name, model, batch, folder, kinds, shlex.split(asked.flags)), flush=True)


def _row(
    name: str, model: nn.Module, batch: Batch, folder: Path, kinds: list[str], flags: list[str]
) -> str:
    figures = folder / f"{name}.json"
    if not figures.exists():
        figures.write_text(json.dumps(measure(model, batch)))
    peak, saved = json.loads(figures.read_text())
    cells = [name, f"{peak / 1e6:.2f}", f"{saved / 1e6:.2f}"]
    for kind in kinds:
        path = folder / f"{name}.{kind}.onnx"
        try:
            if not path.exists():
                save(kind, model, batch, path)
            found = inspect(path, flags)
        except Exception as refusal:  # Of an exporter, of an optimizer, or of ckplan.
            reason = (str(refusal).strip().splitlines() or [type(refusal).__name__])[-1]
            print(f"{name}, {kind}: {reason}", file=sys.stderr, flush=True)
            cells.append("-")
            continue
        ratios = found["keep_all_peak_bytes"] / peak, found["saved_for_backward_bytes"] / saved
        cells.append(" / ".join(f"{ratio:.3f}" for ratio in ratios))
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
