"""Tests what scripts/test-gpu runs of PyTorch beside ckexec, on the CPU."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ckplan.torch import private

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# Bytes of the gradients of all parameters of testdata/models, by `ckplan inspect MODEL -D N=1`. Two
# scalars of each language model are not parameters in PyTorch.
GRADIENT_BYTES = {
    "resnet50": 102228128,
    "bert_base_512": 438057200 - 8,
    "gpt2_small": 497759240 - 8,
}


@pytest.fixture(scope="module")
def networks() -> Any:
    """Returns the module of the networks, which is not part of the package."""
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("gpu_campaign.networks")
    sys.path.remove(str(BENCHMARKS))


def run(network: str, precision: str, way: str) -> dict[str, Any]:
    program = BENCHMARKS / "gpu_campaign/pytorch_side.py"
    done = subprocess.run(
        [sys.executable, "-B", program, "--network", network, "--batch", "2", "--precision"]
        + [precision, "--way", way, "--steps", "1", "--rehearse"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", list(GRADIENT_BYTES))
def test_the_networks_have_the_parameters_of_the_models(networks: Any, name: str) -> None:
    make, _ = networks.NETWORKS[name]
    with torch.device("meta"):
        network = make()
    assert 4 * sum(part.numel() for part in network.parameters()) == GRADIENT_BYTES[name]


@pytest.mark.skipif(private.version() < private.INDUCTOR_SINCE, reason="PyTorch is too old")
@pytest.mark.parametrize(
    ("network", "precision", "way"),
    [
        ("resnet50", "default", "eager"),
        ("bert_base_512", "bf16", "checkpoint"),
        ("gpt2_small", "fp32", "knob"),
    ],
)
def test_each_way_of_pytorch_is_timed(network: str, precision: str, way: str) -> None:
    result = run(network, precision, way)
    assert result["torch"] == torch.__version__
    assert result["seconds"] > 0


def test_checkpoints_compute_the_same_gradients(networks: Any) -> None:
    sys.path.insert(0, str(BENCHMARKS / "gpu_campaign"))
    side = importlib.import_module("pytorch_side")
    gradients = []
    for wrap in (lambda network: network, side.checkpoint_units):
        torch.manual_seed(0)
        make, sample = networks.SMALL["gpt2_small"]
        network = make().train()
        batch = sample(2)
        wrapped = wrap(network)
        torch.manual_seed(1)
        wrapped(batch).square().sum().backward()
        gradients.append([part.grad for part in network.parameters()])
    assert any(isinstance(part, side.Checkpointed) for part in network.modules())
    for first, second in zip(*gradients):
        assert torch.equal(first, second)
