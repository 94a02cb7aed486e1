"""Prints how much CPU time ckplan adds to the first step of training.

    python python/benchmarks/first_step.py [NETWORK...] [--budget 60%] [--effort quick]

The networks are those of against_torch.py. PyTorch spends its time on the joint graph for every
backend of ``torch.compile`` that traces the backward pass; the rest is ckplan's time. Nothing is
trained, so training takes no memory. PyTorch's modules are loaded before. The first column is in
seconds. All others are in percent of PyTorch's time for its graph, which depends less on the
machine. "kept" replaces "planned" on the next run, when the plan is in the cache and is only
checked again. The last column is the time that the plan adds to a step.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from typing import TypeVar

import torch
from against_torch import NETWORKS, trace
from torch import nn

from ckplan.torch import private_autograd
from ckplan.torch.capture import capture
from ckplan.torch.costs import set_costs
from ckplan.torch.module_builder import Modules, build
from ckplan.torch.module_replay import replay_modules
from ckplan.torch.request import Request, make_plan

Made = TypeVar("Made")


class Stopwatch:
    """CPU seconds of this process and of the programs that it runs, by activity."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.kept = 0.0
        self.added_share = 0.0

    def time(self, name: str, call: Callable[[], Made]) -> Made:
        """Makes the call, and records how long it takes."""
        before = sum(os.times()[:4])
        made = call()
        self.spent[name] = sum(os.times()[:4]) - before
        return made


def first_step(name: str, request: Request) -> Stopwatch:
    """Makes the planned modules of a network, as the first step does."""
    make, batch, _ = NETWORKS[name]
    watch = Stopwatch()
    model, data = make(), batch()
    step = watch.time("PyTorch's graph", lambda: trace(model, data, "eager"))
    count = step.options["num_fwd_outputs"]
    static = set(step.options["static_lifetime_input_indices"])
    graph = watch.time("captured", lambda: capture(step.joint, count, static))
    watch.time("costs", lambda: set_costs(graph, request.costs, fuses=False))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CKPLAN_CACHE"] = folder
        plan = watch.time("planned", lambda: make_plan(graph, request, request.limit))
        before = sum(os.times()[:4])
        make_plan(graph, request, request.limit)
        watch.kept = sum(os.times()[:4]) - before

    def modules() -> Modules:
        made = build(step.joint, graph, plan.steps)
        private_autograd.box(made.forward)
        private_autograd.box(made.backward)
        return made

    made = watch.time("built", modules)
    replay = watch.time("judged", lambda: replay_modules(made, graph.parameter_gradients()))
    assert replay.peak_bytes == plan.peak_bytes
    watch.added_share = plan.added_share
    return watch


def main() -> None:
    """Prints a table in Markdown: CPU seconds of each part, and their sum without PyTorch's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--budget", default="60%")
    parser.add_argument("--effort", default="quick")
    asked = parser.parse_args()
    trace(nn.Linear(2, 2), torch.empty(1, 2), "eager")
    request = Request(budget=asked.budget, effort=asked.effort)
    has_heading = False
    for name in asked.networks:
        watch = first_step(name, request)
        traced, *ours = watch.spent.values()
        if not has_heading:
            heads = ["network", *watch.spent, "all of ckplan", "kept", "added to a step"]
            print(f"| {' | '.join(heads)} |\n|" + " --- |" * len(heads))
            has_heading = True
        ours += [sum(ours), watch.kept]
        cells = [f"{traced:.2f} s", *(f"{100 * cpu / traced:.1f} %" for cpu in ours)]
        print(f"| {name} | {' | '.join(cells)} | {100 * watch.added_share:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
