"""Prints how long the modules of a plan take to build, by the depth of the network.

    python python/benchmarks/building.py [LAYERS...] [--budget 60%]

The network is a small BERT, so that only its graph grows. Seconds are CPU time, the median of three
runs.
"""

from __future__ import annotations

import argparse
import statistics
import time

from against_torch import trace  # This import also makes the tests' networks importable.
from torch_tests.networks import Bert, tokens

from ckplan.torch import private_autograd
from ckplan.torch.capture import capture
from ckplan.torch.costs import set_costs
from ckplan.torch.module_builder import build
from ckplan.torch.request import Request, make_plan


def build_time(layers: int, budget: str) -> tuple[int, float]:
    """Returns the number of operations, and the seconds that building their modules takes."""
    step = trace(Bert(layers, 16, 2, 64, 16), tokens(), "eager")
    static = set(step.options["static_lifetime_input_indices"])
    graph = capture(step.joint, step.options["num_fwd_outputs"], static)
    set_costs(graph, "roofline:a100-40g", fuses=False)
    plan = make_plan(graph, Request(budget), budget)
    seconds = []
    for _ in range(3):
        before = time.process_time()
        modules = build(step.joint, graph, plan.steps)
        private_autograd.box(modules.forward)
        private_autograd.box(modules.backward)
        seconds.append(time.process_time() - before)
    return len(graph.operations), statistics.median(seconds)


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*", type=int, default=[24, 96])
    parser.add_argument("--budget", default="60%")
    asked = parser.parse_args()
    print("| layers | operations | built, s |\n| --- | --- | --- |")
    for layers in asked.layers:
        operations, seconds = build_time(layers, asked.budget)
        print(f"| {layers} | {operations:,} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
