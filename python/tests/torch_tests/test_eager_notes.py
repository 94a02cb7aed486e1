"""Tests what ``ckplan.torch.export`` writes of the eager step, and what the program reads of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import ckplan.torch
from ckplan import invocation
from torch_tests.test_benchmarks import benchmark

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")


class Volume(nn.Module):
    """Writes in place what InstanceNorm returns, a view, and what a convolution returns."""

    def __init__(self):
        super().__init__()
        self.enter, self.norm = nn.Conv3d(1, 8, 3, padding=1), nn.InstanceNorm3d(8, affine=True)
        self.mix, self.leave = nn.Conv3d(8, 8, 3, padding=1), nn.Conv3d(8, 3, 1)
        self.act, self.elu = nn.LeakyReLU(inplace=True), nn.ELU(inplace=True)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        x = self.act(self.norm(self.enter(x)))
        return F.cross_entropy(self.leave(self.elu(self.mix(x))), classes)


class Pixels(nn.Module):
    """Gives three linear layers one transposed image, which each of them copies.

    The gradients of a wide layer are the peak, since no file says what Python's variables hold.
    """

    def __init__(self):
        super().__init__()
        self.enter, self.layers = (
            nn.Conv2d(3, 32, 1),
            nn.ModuleList(nn.Linear(32, 32) for _ in "qkv"),
        )
        self.wide, self.leave = nn.Linear(32, 512), nn.Linear(512, 3)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        rows = self.enter(x).flatten(2).transpose(1, 2)
        q, k, v = (layer(rows) for layer in self.layers)
        return F.mse_loss(self.leave(self.wide(q * k.sigmoid() + v)), y)


class Clipped(nn.Module):
    """Activations in place of which autograd saves a copy of the input, and dropout in place."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.norm, self.relu6 = nn.BatchNorm2d(16), nn.ReLU6(inplace=True)
        self.silu, self.drop = nn.SiLU(inplace=True), nn.Dropout(0.1, inplace=True)
        self.leave = nn.Conv2d(16, 3, 1)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        x = self.relu6(self.norm(self.first(x)))
        return F.cross_entropy(self.leave(self.drop(self.silu(self.second(x)))), classes)


NETWORKS = {
    "in place on a view": (Volume, (1, 1, 16, 16, 16), (1, 16, 16, 16)),
    "copies": (Pixels, (4, 3, 16, 16), None),
    "in place with a copy": (Clipped, (4, 3, 32, 32), (4, 32, 32)),
}


def inspected(path: Path, *flags: str) -> dict[str, Any]:
    found = invocation.run_program(
        "inspect", str(path), "--format=json", "--autograd=torch-cpu", *flags
    )
    assert found.exit_code == 0, found.messages
    return json.loads(found.output)


@pytest.mark.parametrize("name", NETWORKS)
def test_an_exported_network_needs_what_its_eager_step_does(name, tmp_path):
    make, data, classes = NETWORKS[name]
    torch.manual_seed(1)
    target = torch.randint(0, 3, classes) if classes else torch.randn(4, 256, 3)
    model, batch = make(), (torch.randn(data), target)
    path = ckplan.torch.export(model, batch, tmp_path / "model.onnx", batch=None, weights=True)
    onnx.checker.check_model(str(path))
    peak, saved = benchmark("eager_step").measure(model, batch)
    found = inspected(path)
    assert found["keep_all_peak_bytes"] == pytest.approx(peak, rel=0.02)
    assert found["saved_for_backward_bytes"] == pytest.approx(saved, rel=0.02)


def test_parameters_without_gradients_are_frozen(tmp_path):
    model = Clipped()
    model.first.requires_grad_(False)
    batch = (torch.randn(4, 3, 32, 32), torch.randint(0, 3, (4, 32, 32)))
    path = ckplan.torch.export(model, batch, tmp_path / "model.onnx", batch=None)
    trained = sum(p.numel() * 4 for p in model.parameters() if p.requires_grad)
    assert inspected(path)["constant_bytes"]["parameter_gradients"] == trained
    assert inspected(path, "--no-restore")["constant_bytes"]["parameter_gradients"] > trained


def test_what_is_out_of_place_has_no_note(tmp_path):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    path = ckplan.torch.export(model, torch.randn(4, 8), tmp_path / "model.onnx")
    graph = onnx.load(path, load_external_data=False).graph
    assert {p.key: p.value for p in graph.metadata_props}["ckplan.eager"] == "1"
    keys = {p.key for node in graph.node for p in node.metadata_props}
    assert not {key for key in keys if key.startswith("ckplan")}
