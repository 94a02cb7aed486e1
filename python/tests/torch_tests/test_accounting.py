"""Tests that an estimate has the lines of the program, to the byte where both know them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from ckplan.answer import ask
from torch import nn

import ckplan.torch
from ckplan.torch.estimation import optimizers
from ckplan.torch.estimation.estimating import estimate

pytest.importorskip("onnxscript")

SHARED = ("parameters", "buffers", "inputs", "optimizer state", "cuBLAS", "context", "driver")
ORDER = ["parameters", "buffers", "inputs", "optimizer state", "step"]
OUTSIDE = ["workspaces", "allocator", "cuBLAS", "context", "driver"]


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, stride=2),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16 * 16, 10),
    )


NETWORKS = {
    "perceptron": (perceptron, lambda: torch.zeros(32, 64)),
    "images": (images, lambda: torch.zeros(8, 3, 32, 32)),
}


def loss(result: Any) -> torch.Tensor:
    return result.square().mean()


class WithLoss(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return loss(self.model(x))


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adamw", "adam8bit"])
@pytest.mark.parametrize("name", NETWORKS)
def test_an_estimate_has_the_lines_of_a_plan(name: str, optimizer: str, tmp_path: Path):
    make, batch = NETWORKS[name]
    found = estimate(make, batch, optimizer=optimizer, loss=loss, memory="rtx3060-8g")
    need = found.keep_all
    assert [line.name for line in need.tensors] == ORDER
    assert [line.name for line in need.outside] == OUTSIDE

    path = tmp_path / "model.onnx"
    ckplan.torch.export(WithLoss(make()), (batch(),), path)
    asked = [f"--optimizer={optimizer}", "--memory=rtx3060-8g", "--gradients=arriving"]
    asked.append(f"-DN={len(batch())}")
    answer = ask("inspect", str(path), *asked, "--format=json", "--no-config")
    assert answer.exit_code == 0
    accounting = json.loads(answer.output)["accounting"]
    rows = {row["name"]: row for row in accounting["tensors"] + accounting["outside"]}
    assert list(rows) == ORDER + OUTSIDE
    for shared in SHARED:
        line = need.line(shared)
        assert (shared, line.bytes, line.kind) == (shared, rows[shared]["bytes"], rows[shared]["kind"])
    assert accounting["fits"] == found.fits


@pytest.mark.parametrize("master_weights", [False, True])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw", "adam8bit"])
def test_the_program_knows_what_the_optimizers_step_makes(optimizer: str, master_weights: bool):
    """The program has it by formula, and an estimate runs PyTorch's own step."""
    sizes = [((10, 3), torch.bfloat16), ((7,), torch.bfloat16), ((64, 64), torch.float32)]
    tensors = [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in sizes]
    measured = optimizers.measure(optimizer, tensors, master_weights)
    gradients = sum(tensor.nbytes for tensor in tensors)
    graph = {
        "schema_version": "1.0",
        "kind": "joint",
        "name": "step",
        "optimized_tensors": [[7, 2, 1], [30, 2, 1], [4096, 4, 1]],
        "values": [{"id": 0, "bytes": gradients, "kind": "parameter_gradient"}],
        "ops": [{"id": 0, "cost": 0, "reads": [], "writes": [0]}],
        "results": [0],
    }
    flags = [f"--optimizer={optimizer}", "--memory=1GiB"] + ["--master-weights"] * master_weights
    answer = ask("inspect", "-", *flags, "--format=json", "--no-config", stdin=json.dumps(graph).encode())
    rows = {row["name"]: row["bytes"] for row in json.loads(answer.output)["accounting"]["tensors"]}
    assert rows["step"] == gradients + measured.step_bytes
    assert rows["optimizer state"] == measured.state_bytes
