"""Tests that the benchmark against PyTorch traces what users of torch.compile run."""

from __future__ import annotations

import importlib
import shutil
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
    # The run is interrupted while it writes a third row, and then restarted.
    with path.open("a") as file:
        file.write('{"name": "three", "of"')
    again = Journal(path, ("torch",), "quick")
    rows = [again.row(name, find(9)) for name in ("one", "two", "three")]
    assert [row[0] for row in rows] == [1, 2, 9]
    assert found == [1, 2, 9]
    assert [row[0] for row in (again.row("three", find(8)), first.row("one", find(8)))] == [9, 1]
    # Rows of other options or versions are not reused.
    assert Journal(path, ("torch",), "normal").row("one", find(5))[0] == 5
    assert Journal(path, ("torch", "no-such-package"), "quick").row("one", find(6))[0] == 6
    assert Journal(None, ("torch",), "quick").row("one", find(4))[0] == 4


@traces_for_inductor
@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a compiler")
def test_a_reported_network_keeps_the_peak_of_eager_checkpoints():
    threads = benchmark("inductor_threads")
    kept = benchmark("journal").Journal(None, ())
    row = threads.Report("120381", 1, kept).row()
    assert row["ckplan"] == row["promised"]
    assert row["ckplan"] <= max(row["eager with checkpoints"], row.get("least", 0))
    assert row["ckplan"] < row["eager"]
    line = threads.line("120381", row)
    assert line.startswith("| pytorch#120381 |") and line.count("|") == 9


def test_the_table_of_inductor_shows_ratios_of_times_in_the_same_turn(tmp_path):
    journal, peak = benchmark("journal"), benchmark("inductor_peak")
    kept = journal.Journal(tmp_path / "rows", ("torch",))
    plain = {"measured": 2048, "first_s": 2.0, "gradients": None}
    found = {"measured": 1024, "promised": 1024, "added": 0.5, "added_ns": 400_000}
    found |= {"rounds": 3, "gradients": 1e-7}
    rows = {
        "plain": plain,
        "knob 0.5": {"measured": 1024, "gradients": 0.0},
        "as knob 0.5": found | {"least": 1024},
        "plain: times": [10**6, 2 * 10**6, 10**6],
        "knob 0.5: times": [2 * 10**6, 4 * 10**6, 2 * 10**6],
        "as knob 0.5: times": [10**6, 3 * 10**6, 9 * 10**6],  # The third was disturbed.
    }
    for name, row in rows.items():
        kept.row(f"mlp: {name}", lambda row=row: row)
    lines = peak.table(kept, [0.5]).splitlines()
    assert [line.count("|") for line in lines] == [12] * 5
    cells = [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines[2:]]
    assert cells[0] == ["plain", "", "2 KiB", "1.0 ms", "", "", "", "2.0", "", ""]
    assert cells[1] == ["knob 0.5", "", "50.0 %", "+100.0 %", "", "", "", "", "", "0e+00"]
    asked = ["as knob 0.5, least", "50.0 %", "50.0 %"]
    assert cells[2] == [*asked, "+50.0 %", "+50.0 %", "+40.0 %", "-25.0 %", "", "3", "1e-07"]


def test_the_peak_of_an_allocator_leaves_gradients_out():
    peak = benchmark("inductor_peak")
    model = torch.nn.Linear(64, 64)
    x = torch.ones(16, 64)
    found = peak.allocated(lambda: model(x).sum(), list(model.parameters()))
    # The product, its sum, and their gradients: the sum's is expanded, not made.
    assert found == 16 * 64 * 4 + 4 + 4


def test_a_kernel_that_may_be_in_use_is_not_written_again(tmp_path):
    peak = benchmark("inductor_peak")
    fresh, kept = tmp_path / "fresh", tmp_path / "kept"
    for path, text in ((fresh, "again"), (kept, "in use")):
        path.mkdir()
        (path / "kernel").write_text(text)
    (fresh / "other").write_text("new")
    shutil.copytree(fresh, kept, copy_function=peak._copy_new, dirs_exist_ok=True)
    assert [(kept / name).read_text() for name in ("kernel", "other")] == ["in use", "new"]
