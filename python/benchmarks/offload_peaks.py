"""Runs plans that offload values to the host, and compares their peaks with the planned ones.

    python python/benchmarks/offload_peaks.py [--runtime ckexec torch] [--plans best inserted]

``ckexec validate`` runs networks of testdata/models on the CPU, in an arena and with separate
allocations. ``ckplan.torch`` trains the networks of the tests, with batches eight times as large.
Both compare bits with those of keeping everything, and an inequality of bits or bytes ends the
program. Plans are those of ``best`` within a budget, over a link that is fast, because small
networks leave no time to a slow one. ``inserted`` are plans that move everything that waits.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "tests"))

import ckplan.torch
from ckplan.program import find_program
from torch_tests import moving
from torch_tests.networks import NETWORKS
from torch_tests.training import assert_same, train

MODELS = {
    "densenet121": ["--input-shape", "x=2,3,64,64"],
    "efficientnet_b0": ["--input-shape", "x=2,3,64,64"],
    "resnet18": ["--input-shape", "x=2,3,64,64"],
    "resnet50": ["--input-shape", "x=2,3,64,64"],
    "small_gpt2": ["-D", "N=4"],
    "squeezenet1_1": ["--input-shape", "x=2,3,64,64"],
}
TRAINED = ("bert", "gpt", "low-rank", "mixture-of-experts", "resnet", "vit")


def by_ckexec(plans: str, budget: str, link: str) -> Iterator[list[str]]:
    """Plans and validates each model. Yields rows of the table."""
    for name, sizes in MODELS.items():
        model = str(ROOT / "testdata" / "models" / f"{name}.onnx")
        with tempfile.TemporaryDirectory() as folder:
            path, order = str(Path(folder) / "plan.json"), str(Path(folder) / "order.json")
            asked = ["--algo", "best", "--budget", budget]
            if plans == "inserted":
                graph = json.loads(call("ckplan", "graph", model, *sizes, "--joint", "-o", "-"))
                Path(order).write_text(json.dumps({"order": with_moves_inserted(graph)}))
                asked = ["--algo", "given", "--decisions", order]
            asked += ["--offload", link, "--align", "64", "-q", "-o", path]
            call("ckplan", "plan", model, *sizes, *asked)
            run_once = ["--threads", "1", "--runs", "0", "--format", "json"]
            found = call("ckexec", "validate", model, "--plan", path, *run_once)
            result = json.loads(Path(path).read_text())["result"]
        report = json.loads(found)
        run, host = report["plan"], report["plan"].get("host", {"peak_bytes": 0})
        assert report["ok"], report["failures"]
        yield row(
            name,
            result["transfer_bytes"],
            result["peak_bytes"],
            run["counted_peak"]["total_bytes"],
            result["host_peak_bytes"],
            host["peak_bytes"],
        )


def with_moves_inserted(graph: dict[str, Any]) -> list[list[Any]]:
    """Returns steps that offload each forward result during gaps of more than three runs.

    The graph is that of a model, as ``ckplan graph --joint`` writes it.
    """
    shared = {value.get("alias_of") for value in graph["values"]}
    moves: dict[int, list[list[Any]]] = {}
    for value in graph["values"]:
        number = value["id"]
        if not value["bytes"] or number in shared or "alias_of" in value:
            continue
        ops = list(enumerate(graph["ops"]))
        at = [i for i, op in ops if number in op["reads"] or number in op["writes"]]
        if not at or number not in (first := graph["ops"][at[0]])["writes"]:
            continue
        if first["phase"] != "forward":
            continue
        for before, after in zip(at, at[1:]):
            if after - before > 3:
                for kind, place in (("out", before + 1), ("drop", before + 2), ("in", after)):
                    moves.setdefault(place, []).append([kind, number])
                break
    rows = enumerate(graph["ops"])
    return [step for i, op in rows for step in [*moves.get(i, []), ["r", op["id"]]]]


def by_torch(plans: str, budget: str, link: str) -> Iterator[list[str]]:
    """Trains each network for three steps. Yields rows of the table."""
    if plans == "inserted":
        moving.use_moves(pytest.MonkeyPatch())
        budget = "100%"
    for name in TRAINED:
        torch._dynamo.reset()
        make, small_batch = NETWORKS[name]
        torch.manual_seed(7)
        eager = make()
        planned = ckplan.torch.compile(copy.deepcopy(eager), budget, offload=link)

        def batch() -> torch.Tensor:
            return torch.cat([small_batch() for _ in range(8)])

        expected = train(eager, batch)
        assert_same(train(planned, batch), expected)
        (graph,) = planned.ckplan.graphs
        assert graph.plan is not None
        yield row(
            name,
            graph.plan.transfer_bytes,
            graph.plan.peak_bytes,
            graph.measured_peak_bytes or 0,
            graph.plan.host_peak_bytes,
            graph.measured_host_peak_bytes or 0,
        )


def row(name: str, moved: int, planned: int, peak: int, host: int, host_peak: int) -> list[str]:
    """Returns the cells of a network. Raises AssertionError if bytes differ."""
    assert (peak, host_peak) == (planned, host), (name, peak, planned, host_peak, host)
    return [name, *(f"{count / 1024:,.1f}" for count in (moved, planned, peak, host, host_peak))]


def call(program: str, *arguments: str) -> str:
    """Runs one of the programs, and returns what it prints."""
    command = [str(find_program(program)), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Prints a table in Markdown for each runtime."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", nargs="*", default=["ckexec", "torch"])
    parser.add_argument("--plans", choices=["best", "inserted"], default="best")
    parser.add_argument("--budget", default="65%")
    parser.add_argument("--link", default="c2c:400,latency=0")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    heads = ["moved, KiB", "peak: planned", "measured", "on the host: planned", "measured"]
    for runtime in asked.runtime:
        print("| " + " | ".join([runtime, *heads]) + " |\n| --- |" + " ---: |" * len(heads))
        rows = by_ckexec if runtime == "ckexec" else by_torch
        for cells in rows(asked.plans, asked.budget, asked.link):
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
