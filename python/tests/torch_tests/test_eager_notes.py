"""Tests what ``ckplan.torch.export`` writes of the eager step, and what the program reads of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
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


class Parts(nn.Module):
    """Saves parts of tensors, which hold the whole: half of a gate, values of one product, a row."""

    def __init__(self):
        super().__init__()
        self.enter, self.product = nn.Linear(64, 128), nn.Linear(64, 192)
        self.mix, self.leave = nn.Linear(64, 64), nn.Linear(64, 3)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        half, other = self.enter(x).chunk(2, -1)
        heads = self.product(half.sigmoid() * other).unflatten(-1, (3, 4, 16)).transpose(1, 3)
        q, k, v = heads.unbind(2)
        mixed = F.scaled_dot_product_attention(q.sigmoid(), k.tanh(), v)
        return F.cross_entropy(self.leave(self.mix(mixed.transpose(1, 2).flatten(2))[:, 0]), classes)


class Composed(nn.Module):
    """Applies operations whose gradient PyTorch composes of others."""

    PICKED = torch.randint(0, 32, (24,))

    def __init__(self, operation: Callable[[Tensor, Tensor], Tensor]):
        super().__init__()
        self.operation = operation
        self.first, self.second = nn.Linear(16, 64), nn.Linear(64, 64)
        self.leave = nn.LazyLinear(3)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        first = self.first(x)
        result = self.operation(first, self.second(first))
        return F.cross_entropy(self.leave(result.flatten(1)), classes)


def rows_of(tensor: Tensor) -> Tensor:
    """Returns the order of the rows by each column."""
    return tensor.detach().argsort(1)


COMPOSED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "maximum": torch.maximum,
    "minimum of rows": lambda a, b: torch.minimum(a, b.mean(1, keepdim=True)),
    "max": lambda a, b: a.max(1)[0] * b.min(1)[0],
    "amax": lambda a, b: a.amax(1) * b.amin(1),
    "normalize": lambda a, b: F.normalize(a, dim=-1) + b,
    "cosine_similarity": lambda a, b: F.cosine_similarity(a, b, dim=-1),
    "gather": lambda a, b: a.gather(1, rows_of(b)),
    "index_select": lambda a, b: a.index_select(1, Composed.PICKED) + b.mean(1, keepdim=True),
    "index": lambda a, b: a[:, Composed.PICKED] + b.mean(1, keepdim=True),
    "topk": lambda a, b: a.topk(4, dim=1)[0] + b.mean(1, keepdim=True),
    "logsumexp": lambda a, b: a.logsumexp(-1) + b.logsumexp(-1),
    "detached": lambda a, b: a * b.sigmoid().detach() + b,
    "variance": lambda a, b: a.var(-1) + b.var(1, unbiased=False).mean(1, keepdim=True),
    "deviation": lambda a, b: a * b.std(-1, keepdim=True),
    "rsqrt": lambda a, b: a * torch.rsqrt(b * b + 1),
    "roots and waves": lambda a, b: a.exp().sqrt() + b.sin() * b.cos(),
}


class Scored(nn.Module):
    """A loss of the results of one layer."""

    def __init__(self, loss: Callable[[Tensor, Tensor], Tensor]):
        super().__init__()
        self.loss, self.layer = loss, nn.Linear(16, 64)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.loss(self.layer(x), y)


WEIGHTS = torch.linspace(0.5, 2, 64)
LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse_loss": F.mse_loss,
    "mse_loss, summed": partial(F.mse_loss, reduction="sum"),
    "huber_loss": F.huber_loss,
    "huber_loss, delta": partial(F.huber_loss, delta=0.5),
    "huber_loss, elements": lambda x, y: F.huber_loss(x, y, reduction="none").mean(),
    "smooth_l1_loss": F.smooth_l1_loss,
    "smooth_l1_loss, beta": partial(F.smooth_l1_loss, beta=0.1, reduction="sum"),
    "soft_margin_loss": F.soft_margin_loss,
    "binary_cross_entropy": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y),
    "binary_cross_entropy, weight": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y, WEIGHTS),
    "of logits": F.binary_cross_entropy_with_logits,
    "of logits, weight": partial(F.binary_cross_entropy_with_logits, weight=WEIGHTS),
    "of logits, pos_weight": partial(F.binary_cross_entropy_with_logits, pos_weight=WEIGHTS),
    "module": nn.HuberLoss(),
}

KEPT = ("binary_cross_entropy", "binary_cross_entropy, weight")
"""Their result still keeps the memory of all losses in the backward of the sigmoid: docs/loader.md."""

NETWORKS = {
    "in place on a view": (Volume, (1, 1, 16, 16, 16), (1, 16, 16, 16)),
    "copies": (Pixels, (4, 3, 16, 16), None),
    "in place with a copy": (Clipped, (4, 3, 32, 32), (4, 32, 32)),
    "parts": (Parts, (4, 24, 64), (4,)),
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


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_needs_what_pytorchs_one_operation_does(name, tmp_path):
    torch.manual_seed(1)
    model, batch = Scored(LOSSES[name]), (torch.randn(256, 16), torch.rand(256, 64))
    path = ckplan.torch.export(model, batch, tmp_path / "model.onnx", batch=None)
    peak, saved = benchmark("eager_step").measure(model, batch)
    found = inspected(path)
    assert found["saved_for_backward_bytes"] == pytest.approx(saved, rel=0.02)
    if name in KEPT:
        peak -= 256 * 64 * 4
    assert found["keep_all_peak_bytes"] == pytest.approx(peak, rel=0.02)


@pytest.mark.parametrize("name", COMPOSED)
def test_a_composed_gradient_needs_what_pytorch_makes_in_between(name, tmp_path):
    torch.manual_seed(1)
    model = Composed(COMPOSED[name])
    batch = (torch.randn(8, 32, 16), torch.randint(0, 3, (8,)))
    model(*batch)
    path = ckplan.torch.export(model, batch, tmp_path / "model.onnx", batch=None)
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
