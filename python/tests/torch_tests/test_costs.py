"""Costs are those of the devices that the program knows."""

from __future__ import annotations

import json
import subprocess

import ckplan
import pytest
import torch
from torch import nn
from torch_tests.test_modules import captured_of

from ckplan.torch import costs


@pytest.fixture(scope="module")
def listed():
    """What ``ckplan devices`` prints."""
    command = [ckplan.find_program(), "devices", "--format", "json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def test_a_device_is_the_row_of_the_program(listed):
    (row,) = [row for row in listed["devices"] if row["name"] == "h100-80g"]
    device = costs.device_named("h100-80g")
    assert device.matrix_flops_per_second == row["matrix_flops_per_second"] == 494.7e12
    assert device.launch_ns == row["launch_ns"]


def test_a_name_is_understood_by_the_program():
    assert costs.device_named("h100").name == "h100-80g"
    with pytest.raises(ValueError, match='several device presets are named "a100"'):
        costs.device_named("a100")
    with pytest.raises(ValueError, match="the presets are a100-40g"):
        costs.device_named("abacus")


@pytest.mark.parametrize(
    ("title", "gigabytes", "name"),
    [
        ("NVIDIA A100-SXM4-40GB", 42, "a100-40g"),
        ("NVIDIA A100-SXM4-80GB", 85, "a100-80g"),
        ("NVIDIA H100 80GB HBM3", 84, "h100-80g"),
        ("NVIDIA GeForce RTX 4090", 25, "rtx4090-24g"),
        ("Tesla V100-SXM2-16GB", 17, "v100-16g"),
        ("NVIDIA L4", 24, "l4-24g"),
        ("NVIDIA L40S", 47, "l40s-48g"),
        ("NVIDIA GeForce GTX TITAN X", 12, "titan-x-12g"),
    ],
)
def test_a_device_is_known_by_what_its_driver_calls_it(title, gigabytes, name):
    assert costs.known_as(title, gigabytes * 10**9).name == name


def test_a_device_that_nobody_knows_costs_as_the_default(listed):
    assert costs.known_as("NVIDIA L40", 48 * 10**9).name == listed["default"]


def test_the_program_is_asked_once_about_a_device(monkeypatch):
    costs.device_named("h100")
    monkeypatch.setattr(costs, "run_program", lambda *_: pytest.fail("asked again"))
    costs.device_named("h100")


def test_an_operation_costs_what_its_device_needs(monkeypatch):
    """A product of two matrices of 512 x 512 floats, by hand."""
    graph = captured_of(monkeypatch, nn.Linear(512, 512, bias=False), torch.randn(512, 512))
    (product,) = [o for o in graph.operations if not o.is_backward and "mm" in o.name]
    seconds = {
        "v100-16g": 2 * 512**3 / 15.7e12,  # It has no TF32.
        "cpu": 2 * 512**3 / 768e9,
        "a100-40g": 2 * 512**3 / 19.5e12,  # By default PyTorch computes products in full precision.
    }
    for name, work in seconds.items():
        device = costs.device_named(name)
        assert costs.roofline_ns(product.call, device) == round(work * 1e9 + device.launch_ns)
