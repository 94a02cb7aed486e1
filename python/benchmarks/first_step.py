"""Says what the first step of training takes longer, in seconds of CPU time.

    python python/benchmarks/first_step.py [NETWORK...] [--budget 60%] [--effort quick]

The networks are those of against_torch.py. What PyTorch needs for the joint graph, it needs for
every backend of ``torch.compile`` that traces the backward pass; the rest is ckplan's. Nothing is
trained, so no memory is needed for it. PyTorch's modules are loaded before.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TypeVar

import torch
from against_torch import NETWORKS, trace
from ckplan.torch import private
from ckplan.torch.building import Modules, build
from ckplan.torch.capture import capture
from ckplan.torch.costs import set_costs
from ckplan.torch.judge import replay_modules
from ckplan.torch.request import Request, make_plan
from torch import nn

Made = TypeVar("Made")


class Stopwatch:
    """CPU seconds of this process and of the programs that it runs, by what was done."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def time(self, name: str, call: Callable[[], Made]) -> Made:
        """Calls it, and notes how long it takes."""
        before = sum(os.times()[:4])
        made = call()
        self.spent[name] = sum(os.times()[:4]) - before
        return made


def first_step(name: str, request: Request) -> Stopwatch:
    """Makes the planned modules of a network, as the first step does."""
    make, batch, _ = NETWORKS[name]
    watch = Stopwatch()
    model, data = make(), batch()
    step = watch.time("PyTorch's graph", lambda: trace(model, data))
    count = step.options["num_fwd_outputs"]
    static = set(step.options["static_lifetime_input_indices"])
    graph = watch.time("captured", lambda: capture(step.joint, count, static))
    watch.time("costs", lambda: set_costs(graph, request.costs, fuses=False))
    plan = watch.time("planned", lambda: make_plan(graph, request, request.limit))

    def modules() -> Modules:
        made = build(step.joint, graph, plan.steps)
        private.box(made.forward)
        private.box(made.backward)
        return made

    made = watch.time("built", modules)
    replay = watch.time("judged", lambda: replay_modules(made, graph.parameter_gradients()))
    assert replay.peak_bytes == plan.peak_bytes
    return watch


def main() -> None:
    """Prints a table in Markdown: CPU seconds of each part, and their sum without PyTorch's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--budget", default="60%")
    parser.add_argument("--effort", default="quick")
    asked = parser.parse_args()
    os.environ["CKPLAN_CACHE"] = ""
    trace(nn.Linear(2, 2), torch.empty(1, 2))
    request = Request(budget=asked.budget, effort=asked.effort)
    has_heading = False
    for name in asked.networks:
        spent = first_step(name, request).spent
        if not has_heading:
            print(f"| network | {' | '.join(spent)} | all of ckplan |")
            print("|" + " --- |" * (len(spent) + 2))
            has_heading = True
        seconds = list(spent.values())
        cells = [f"{cpu:.2f}" for cpu in (*seconds, sum(seconds[1:]))]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
