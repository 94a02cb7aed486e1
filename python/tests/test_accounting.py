"""Tests that all commands account for the memory of training in the same way, to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ckplan.invocation import run_program

MODELS = Path(__file__).parents[2] / "testdata" / "models"
# A small memory for each model, so that the largest size is found quickly.
NETWORKS = {
    "tiny_mlp": ("N", "500MiB"),
    "alexnet": ("N", "2GiB"),
    "resnet18": ("N", "1GiB"),
    "squeezenet1_1": ("N", "1GiB"),
    "small_gpt2": ("N", "600MiB"),
}
TENSORS = ["parameters", "buffers", "inputs", "optimizer state", "step"]
OUTSIDE = ["workspaces", "allocator", "cuBLAS", "context", "driver"]
WAYS = [
    ["--optimizer=sgd"],
    ["--optimizer=adamw"],
    ["--optimizer=sgd", "--gradients=constant"],
    ["--optimizer=adam", "--gradients=arriving"],
]


def run(*arguments: str) -> dict[str, Any]:
    answer = run_program(*arguments, "--no-config")
    assert answer.exit_code == 0, answer
    return json.loads(answer.output)


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
@pytest.mark.parametrize("name", NETWORKS)
def test_commands_agree_to_the_byte(name: str, way: list[str], tmp_path: Path):
    path = MODELS / f"{name}.onnx"
    dim, memory = NETWORKS[name]
    asked = [*way, f"--memory={memory}"]

    fitted = run("fit", str(path), *asked, "-f", "json", "--added-time=10", "-D", dim)
    keep_all = fitted["rows"][0]
    size = keep_all["size"]
    assert size > 0
    sized = [*asked, "-D", f"{dim}={size}"]
    expected = keep_all["accounting"]
    assert [line["name"] for line in expected["tensors"]] == TENSORS
    assert [line["name"] for line in expected["outside"]] == OUTSIDE
    assert expected["need_bytes"] == keep_all["need_bytes"] <= expected["memory_bytes"]
    lines = expected["tensors"] + expected["outside"]
    assert expected["need_bytes"] == sum(line["bytes"] for line in lines)

    inspected = run("inspect", str(path), *sized, "-f", "json")
    assert inspected["accounting"] == expected

    plan, accounting = tmp_path / "plan.json", tmp_path / "accounting.json"
    whole = ["--algo=keep-all", f"--emit=accounting={accounting}", "-o", str(plan), "-q"]
    assert run_program("plan", str(path), *sized, *whole, "--no-config").exit_code == 0
    planned = json.loads(accounting.read_text())
    del planned["schema_version"]
    assert planned == expected

    checked = run("check", str(plan), str(path), f"--memory={memory}", "-f", "json")
    assert checked["ok"] and checked["accounting"] == expected

    # The next size does not fit as it is.
    larger = [*asked, "-D", f"{dim}={size + 1}", "-f", "json"]
    answer = run_program("inspect", str(path), *larger, "--no-config")
    assert answer.exit_code == 1
    assert json.loads(answer.output)["accounting"]["need_bytes"] > expected["memory_bytes"]


@pytest.mark.parametrize("name", ["resnet18", "small_gpt2"])
def test_a_plan_that_fits_is_within_the_memory_by_its_check(name: str, tmp_path: Path):
    path = MODELS / f"{name}.onnx"
    dim, memory = NETWORKS[name]
    asked = ["--optimizer=adam", f"--memory={memory}"]
    fitted = run("fit", str(path), *asked, "-f", "json", "--added-time=20", "-D", dim)
    row = fitted["rows"][-1]
    assert row["size"] > fitted["rows"][0]["size"]
    plan, accounting = tmp_path / "plan.json", tmp_path / "accounting.json"
    written = [f"--emit=accounting={accounting}", "-o", str(plan), "-q", "--effort=quick"]
    sized = [*asked, "-D", f"{dim}={row['size']}"]
    assert run_program("plan", str(path), *sized, *written, "--no-config").exit_code == 0
    planned = json.loads(accounting.read_text())
    assert planned["fits"] and planned["need_bytes"] <= planned["memory_bytes"]
    del planned["schema_version"]
    checked = run("check", str(plan), str(path), f"--memory={memory}", "-f", "json")
    assert checked["ok"] and checked["accounting"] == planned
    # Lines that no plan changes equal those of the row.
    for name in (
        "parameters",
        "buffers",
        "inputs",
        "optimizer state",
        "cuBLAS",
        "context",
        "driver",
    ):
        assert line(planned, name) == line(row["accounting"], name)


def test_a_preset_leaves_the_driver_its_part():
    listed = json.loads(run_program("devices", "-f", "json").output)
    known = {row["name"]: row for row in listed["devices"]}
    device = known["rtx4060-8g"]
    path = str(MODELS / "resnet18.onnx")
    found = run("inspect", path, "-D", "N=4", "--memory=rtx4060", "-f", "json")["accounting"]
    assert found["outside"][2:] == device["outside"]
    assert found["memory_bytes"] == device["memory_bytes"]


def line(accounting: dict[str, Any], name: str) -> dict[str, Any]:
    rows = accounting["tensors"] + accounting["outside"]
    return next(row for row in rows if row["name"] == name)
