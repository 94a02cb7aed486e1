"""Tests the documented export of a model, and the documented commands that follow it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch_tests.networks import ResNet

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")

ROOT = Path(__file__).parents[3]
PAGES = ["README.md", "docs/python.md"]
PAGES_WITH_PACKAGE = ["docs/answers.md", "docs/python.md"]
# The exported batch is the README's; the other pages make their own.
IMAGES = torch.zeros(4, 3, 64, 64)


def blocks_of(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for named, block in blocks if named == language]


def export_of(page: str, call: str = "torch.onnx.export(") -> str:
    """Returns the first block of a page that exports a model by PyTorch alone, or by another call."""
    return next(code for code in blocks_of(page, "python") if call in code)


def operators() -> list[tuple[str, str]]:
    """Returns the names and operators of the exported model's nodes."""
    model = onnx.load("model.onnx", load_external_data=False)
    return [(node.name, node.op_type) for node in model.graph.node]


def documented_commands() -> dict[str, list[str]]:
    """Returns the commands of docs/answers.md that only need that model, by what they do."""
    commands = {}
    for block in blocks_of("docs/answers.md", ""):
        words = shlex.split(block)
        if words[:2] == ["ckplan", "model.onnx"] and {"--memory", "-o"} <= set(words):
            commands["plan"] = words[1:]
        elif words[:3] in (["ckplan", "fit", "model.onnx"], ["ckplan", "pareto", "model.onnx"]):
            commands[words[1]] = words[1:]
    return commands


def network() -> nn.Module:
    return ResNet(depths=(1, 1), width=8).eval()


def ckplan(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ckplan", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(params=PAGES)
def page(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return request.param


def run_the_documented_commands() -> None:
    commands = documented_commands()
    assert sorted(commands) == ["fit", "pareto", "plan"]
    for words in commands.values():
        run = ckplan(words)
        assert run.returncode == 0, run.stderr
        assert "warning" not in run.stderr


def test_the_documented_export_serves_the_documented_commands(page):
    exec(export_of(page), {"torch": torch, "model": network(), "images": IMAGES})
    run_the_documented_commands()


@pytest.mark.parametrize("page", PAGES_WITH_PACKAGE, indirect=True)
def test_the_documented_call_of_ckplan_makes_the_same_graph_and_serves_the_same_commands(page):
    model = network()
    exec(export_of(page, "ckplan.torch.export("), {"model": model})
    run_the_documented_commands()
    found = operators()
    exec(export_of("docs/python.md"), {"model": model})
    assert found == operators()


def test_nothing_is_folded_away_by_the_documented_export(page):
    model = network()
    exec(export_of(page), {"torch": torch, "model": model, "images": IMAGES})
    run = ckplan(["inspect", "model.onnx", "-D", "N=64", "--format", "json"])
    assert run.returncode == 0, run.stderr
    normalisations = [part for part in model.modules() if isinstance(part, nn.BatchNorm2d)]
    operators = json.loads(run.stdout)["operators"]
    counts = {row["op"]: row["count"] for row in operators}
    assert counts["BatchNormalization"] == len(normalisations)


def test_a_warning_reports_what_the_exporter_folds_away(page):
    code = export_of(page).replace("optimize=False, ", "")
    assert "optimize" not in code
    exec(code, {"torch": torch, "model": network(), "images": IMAGES})
    run = ckplan(["model.onnx", "-D", "N=64"])
    assert run.returncode == 0, run.stderr
    assert "normalisations were folded into other nodes" in run.stderr
    assert "optimize=False" in run.stderr
