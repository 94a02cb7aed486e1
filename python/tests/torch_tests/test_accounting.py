"""Tests that an estimate has the lines of the program, to the byte where both know them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from ckplan.invocation import run_program
from torch import nn
from torch_tests import answers
from torch_tests.networks import Gpt, Vit, with_low_rank
from torch_tests.test_benchmarks import benchmark

import ckplan.torch
from ckplan.torch.estimation import optimizers, tracing
from ckplan.torch.estimation.allocator import Event
from ckplan.torch.estimation.allocator_steps import simulate_steps
from ckplan.torch.estimation.estimating import estimate

pytest.importorskip("onnxscript")

MODELS = Path(__file__).parents[3] / "testdata/models"
ORDER = ["parameters", "buffers", "inputs", "optimizer state", "step"]
OUTSIDE = ["workspaces", "allocator", "cuBLAS", "context", "driver"]


def perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8)
    )


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
    first = result[0] if isinstance(result, tuple) else result
    return first.square().mean()


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
    asked = [f"--optimizer={optimizer}", "--memory=rtx3060-8g", *answers.CAPTURED]
    asked.append(f"-DN={len(batch())}")
    answer = run_program("inspect", str(path), *asked, "--format=json", "--no-config")
    assert answer.exit_code == 0
    accounting = json.loads(answer.output)["accounting"]
    rows = {row["name"]: row for row in accounting["tensors"] + accounting["outside"]}
    assert list(rows) == ORDER + OUTSIDE
    for shared in answers.SHARED:
        line = need.line(shared)
        assert (shared, line.bytes, line.kind) == (
            shared,
            rows[shared]["bytes"],
            rows[shared]["kind"],
        )
    assert accounting["fits"] == found.fits


def tied() -> nn.Module:
    """Most of its parameters are the embedding, which is the last layer as well."""
    return Gpt(2, 32, 4, 2000, 32, dropout=0.0)


def frozen_below() -> nn.Module:
    model = images()
    for part in list(model)[:4]:
        part.requires_grad_(False)
    return model


def low_rank() -> nn.Module:
    return with_low_rank(Gpt(2, 64, 4, 500, 32, dropout=0.0))


STEPS = {
    "parameters are most": (perceptron, torch.zeros(32, 64), 0.25),
    "the head's gradient is most": (images, torch.zeros(4, 3, 32, 32), 0.0),
    "frozen layers": (frozen_below, torch.zeros(4, 3, 32, 32), 0.0),
    "tied weights": (tied, torch.zeros(2, 32, dtype=torch.long), 0.99),
    "low rank": (low_rank, torch.zeros(2, 32, dtype=torch.long), 0.99),
    "vision": (lambda: Vit(2, 64, 4, 32, 8), torch.zeros(2, 3, 32, 32), 0.6),
}
"""Networks with their batches, and the least share of gradients that arrive after the peak."""


@pytest.mark.parametrize("name", STEPS)
def test_the_step_is_what_pytorch_needs_with_gradients_as_they_arrive(name: str, tmp_path: Path):
    make, batch, absent = STEPS[name]
    model = WithLoss(make())
    measured = benchmark("eager_step").measure_with_gradients(model, (batch,))
    path = tmp_path / "model.onnx"
    ckplan.torch.export(model, (batch,), path, batch=None)
    needed = {}
    for gradients in ("auto", "constant"):
        asked = [
            "--memory=1TiB",
            "--optimizer=sgd",
            "--autograd=torch-cpu",
            f"--gradients={gradients}",
        ]
        answer = run_program("inspect", str(path), *asked, "--format=json", "--no-config")
        accounting = json.loads(answer.output)["accounting"]
        needed[gradients] = line_of(accounting, "step") + line_of(accounting, "workspaces")
    assert needed["auto"] == pytest.approx(measured, rel=0.002)
    trained = sum(p.nbytes for p in model.parameters() if p.requires_grad)
    assert needed["constant"] >= needed["auto"] + absent * trained


@pytest.mark.parametrize("master_weights", [False, True])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw", "adam8bit"])
def test_the_program_knows_what_the_optimizers_step_makes(optimizer: str, master_weights: bool):
    """The program uses a formula, and an estimate runs PyTorch's own step."""
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
    answer = run_program(
        "inspect", "-", *flags, "--format=json", "--no-config", stdin=json.dumps(graph).encode()
    )
    rows = {row["name"]: row["bytes"] for row in json.loads(answer.output)["accounting"]["tensors"]}
    assert rows["step"] == gradients + measured.step_bytes
    assert rows["optimizer state"] == measured.state_bytes


@pytest.mark.parametrize("arriving", [False, True])
def test_a_file_of_a_step_says_what_is_trained(arriving: bool):
    """Gradients that arrive are ordinary results, so only the list identifies them."""
    step = tracing.trace_step(
        perceptron, torch.zeros(32, 64), tracing.Precision.named("fp32"), loss
    )
    trained = sum(parameter.nbytes for parameter in step.parameters())
    content = step.graph(arriving).to_bytes()
    flags = ("--optimizer=adamw", "--format=json", "--no-config")
    answer = run_program("inspect", "-", *flags, "--memory=1GiB", stdin=content)
    rows = {row["name"]: row["bytes"] for row in json.loads(answer.output)["accounting"]["tensors"]}
    assert rows["optimizer state"] == 2 * trained
    # The gradients, and a square root of each element.
    assert rows["step"] >= 2 * trained
    without = json.loads(content)
    del without["optimized_tensors"]
    refused = run_program(
        "inspect", "-", *flags, "--memory=1GiB", stdin=json.dumps(without).encode()
    )
    assert refused.exit_code == (2 if arriving else 0)


def words() -> nn.Module:
    return Gpt(2, 32, 4, 64, 32, dropout=0.0)


CASES = {
    "images": (images, lambda: (torch.zeros(128, 3, 32, 32),)),
    "words": (words, lambda: (torch.zeros(64, 32, dtype=torch.long),)),
}


@pytest.mark.parametrize(("name", "position"), [("images", 0), ("words", 1), ("images", 2)])
def test_all_commands_have_one_answer(name: str, position: int, tmp_path: Path):
    """python/benchmarks/one_answer.py asks about twelve networks."""
    make, batch = CASES[name]
    asked = answers.Asked.exported(WithLoss(make()), batch(), tmp_path)
    found = answers.answers(asked, answers.memories(asked)[position])
    assert found.differences() == []
    assert found.is_one(), found.verdicts
    expected = (answers.AS_IT_IS, answers.WITH_A_PLAN, answers.NOT)[position]
    assert found.verdicts["estimate"] == found.verdicts["plan"] == expected


@pytest.mark.parametrize(
    ("name", "size"),
    [("bert_base_512", 4), ("gpt2_small", 2), ("lstm_4x1024x64_op", 8), ("unet_572", 1)],
)
def test_all_commands_that_read_a_file_have_one_answer(name: str, size: int):
    asked = answers.Asked(MODELS / f"{name}.onnx", size)
    memory = answers.memories(asked)[1]
    found = answers.answers(asked, memory)
    assert found.differences() == []
    assert found.is_one(), found.verdicts
    assert found.verdicts["plan"] == answers.WITH_A_PLAN
    assert 0 < sum(size for size, _ in found.planned.values()) <= memory


def traces() -> list[dict[str, Any]]:
    """Steps that allocate tensors of all sizes that the allocator distinguishes."""
    rng = random.Random(5)
    sizes = [513, 70_000, 1 << 20, (1 << 20) + 1, 3 << 20, 9 << 20, 10 << 20, 11 << 20, 37 << 20]
    graphs = []
    for count in (6, 20, 60):
        values = [{"id": i, "bytes": rng.choice(sizes), "kind": "value"} for i in range(count)]
        ops = []
        for i in range(count):
            reads = sorted({rng.randrange(i) for _ in range(2)}) if i else []
            ops.append({"id": i, "cost": 1, "reads": reads, "writes": [i]})
        graph = {"schema_version": "1.0", "kind": "joint", "name": "trace"}
        graphs.append(graph | {"values": values, "ops": ops, "results": [count - 1]})
    return graphs


@pytest.mark.parametrize("spare", [None, 0, 1, 8, 30])
def test_both_replays_of_the_allocator_agree(spare: int | None):
    """The program and an estimate replay the same rules, each by code of its own."""
    for graph in traces():
        whole = accounting_of(graph, 1 << 40)
        others = whole["need_bytes"] - line_of(whole, "allocator")
        memory = 1 << 40 if spare is None else others + (spare << 20)
        found = line_of(accounting_of(graph, memory), "allocator")
        outside = others - line_of(whole, "step")
        workspace = line_of(whole, "cuBLAS")
        events, left = events_of(graph)
        step = SimpleNamespace(events=events, num_buffers=len(graph["values"]), left=left)
        none = SimpleNamespace(state=[], step=[])
        held = simulate_steps([workspace], step, none, memory - outside + workspace)
        assert held.kept_bytes == found


def events_of(graph: dict[str, Any]) -> tuple[list[Event], list[int]]:
    """Returns what a step in its own order allocates and frees, and what it leaves."""
    sizes = [value["bytes"] for value in graph["values"]]
    last = {value: op["id"] for op in graph["ops"] for value in (*op["reads"], *op["writes"])}
    events = []
    for op in graph["ops"]:
        events += [Event(value, sizes[value]) for value in op["writes"]]
        dying = [value for value in last if last[value] == op["id"]]
        events += [Event(value, -sizes[value]) for value in dying if value not in graph["results"]]
    return events, graph["results"]


def accounting_of(graph: dict[str, Any], memory: int) -> dict[str, Any]:
    flags = [f"--memory={memory}", "--optimizer=sgd", "--format=json", "--no-config"]
    answer = run_program("inspect", "-", *flags, stdin=json.dumps(graph).encode())
    return json.loads(answer.output)["accounting"]


def line_of(accounting: dict[str, Any], name: str) -> int:
    rows = accounting["tensors"] + accounting["outside"]
    return next(row["bytes"] for row in rows if row["name"] == name)
