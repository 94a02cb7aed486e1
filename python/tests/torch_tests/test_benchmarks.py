"""Tests that the benchmark against PyTorch traces what users of torch.compile run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ckplan.torch import private
from torch_tests.networks import NETWORKS, Bert

traces_for_inductor = pytest.mark.skipif(
    private.version() < private.INDUCTOR_SINCE, reason="PyTorch is too old"
)


def benchmark(name: str) -> Any:
    """Returns the module of a benchmark, which is not part of the package."""
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


@pytest.fixture(scope="module")
def against_torch() -> Any:
    return benchmark("against_torch")


def small() -> Bert:
    return Bert(layers=6, width=32, heads=4, words=64, length=64)


@traces_for_inductor
def test_checkpoints_save_memory_where_pytorch_compiles_them(against_torch):
    # Without Inductor's decompositions the partitioner keeps the tensors that checkpoints would
    # free.
    batch = torch.zeros(8, 64, dtype=torch.long)
    model = against_torch.checkpoint_blocks(small())
    step = against_torch.trace(model, batch, "inductor")
    judge = against_torch.Judge(step)
    point = judge.point("a checkpoint for each block", against_torch.divide(step))
    assert point.peak < 0.5 * judge.keep_all_bytes
    assert point.flops > 0.2


@traces_for_inductor
def test_both_sides_are_given_one_graph_and_the_budget_holds(against_torch):
    batch = torch.zeros(8, 64, dtype=torch.long)
    step = against_torch.trace(small(), batch, "inductor")
    judge = against_torch.Judge(step)
    (theirs,) = against_torch.torch_points(step, judge, (0.5,))
    request = against_torch.Request(budget=theirs.peak, costs="flops", algo="dtr")
    ours = against_torch.planned(step, judge, theirs.peak, request)
    assert ours.peak <= theirs.peak
    names = {str(node.target) for node in step.joint.graph.nodes}
    assert "aten.native_dropout.default" not in names  # Inductor decomposes it.


@pytest.mark.parametrize("name", ["resnet", "low-rank"])
def test_every_column_of_an_estimate_is_what_a_cpu_measures(name):
    table = benchmark("estimate_on_cpu")
    make, batch = NETWORKS[name]

    def network() -> Any:
        return table.Network(make(), [])

    inputs = [batch()]
    ours = table.estimated(network, inputs, "adamw")
    assert ours == table.measured(network, inputs, "adamw")
    assert all(size > 0 for key, size in ours.items() if key != "buffers")


def test_each_published_peak_has_its_source_and_setting():
    table = benchmark("published_peaks")
    rows = table.json.loads(table.ROWS.read_text())["rows"]
    assert len({row["source"] for row in rows}) == len(rows) > 12
    for row in rows:
        assert row["source"].startswith("https://github.com/")
        assert 1 << 30 < row["measured_bytes"] < row["memory_bytes"]
        assert getattr(torch.optim, row["optimizer"])
        kinds = {"torchvision", "transformers"} & set(row["model"])
        assert len(kinds) == 1 and ("sequence" in row) == (kinds == {"transformers"})
        images = table.inputs(row) if "sequence" not in row else ()
        assert all(len(tensor) == row["batch"] for tensor in images)


def test_a_journal_goes_on_after_the_rows_that_it_has(tmp_path):
    Journal, path = benchmark("journal").Journal, tmp_path / "rows.jsonl"
    found = []

    def find(value):
        return lambda: found.append(value) or [value, {"bytes": value}]

    first = Journal(path, ("torch",), "quick")
    assert first.row("one", find(1)) == [1, {"bytes": 1}]
    assert first.row("one", find(7)) == [1, {"bytes": 1}]
    first.row("two", find(2))
    # The run is cut while it writes a third row, and is started again.
    with path.open("a") as file:
        file.write('{"name": "three", "of"')
    again = Journal(path, ("torch",), "quick")
    rows = [again.row(name, find(9)) for name in ("one", "two", "three")]
    assert [row[0] for row in rows] == [1, 2, 9]
    assert found == [1, 2, 9]
    assert [row[0] for row in (again.row("three", find(8)), first.row("one", find(8)))] == [9, 1]
    # Other options or versions make other rows.
    assert Journal(path, ("torch",), "normal").row("one", find(5))[0] == 5
    assert Journal(path, ("torch", "no-such-package"), "quick").row("one", find(6))[0] == 6
    assert Journal(None, ("torch",), "quick").row("one", find(4))[0] == 4
