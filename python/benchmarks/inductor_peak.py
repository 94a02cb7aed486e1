"""Compares planned peaks with PyTorch's allocator, in eager mode and with Inductor.

    python python/benchmarks/inductor_peak.py [NETWORK...] [--budgets 100% 80% 65%] [--scale 8]

The networks are those of the tests, with batches SCALE times as large. PyTorch's profiler records
each allocation and release of the second step on a CPU. Gradients of parameters are left out, as in
the plan. The figures therefore include memory that operators allocate and free within one call,
which a plan does not count; the peak in eager mode shows how much that is. The first column is
``torch.compile`` without a plan.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import ckplan.torch
from torch_tests.networks import NETWORKS
from torch_tests.training import loss_of


def allocations(events: list[Any]) -> Iterator[tuple[int, int, int]]:
    """Yields the allocator's changes: time, address, and bytes (negative for a release)."""
    for event in events:
        if event.tag == _EventType.Allocation:
            fields = event.extra_fields
            yield event.start_time_ns, fields.ptr, fields.alloc_size
        yield from allocations(event.children)


def peak_bytes(events: list[Any], apart: list[torch.Tensor]) -> int:
    """Returns the most bytes at once, without the tensors in ``apart``, which still live."""
    in_order = sorted(allocations(events), key=lambda event: event[0])
    last = {address: i for i, (_, address, size) in enumerate(in_order) if size > 0}
    left_out = {last.get(tensor.untyped_storage().data_ptr()) for tensor in apart}
    sizes: dict[int, int] = {}
    live = peak = 0
    for position, (_, address, size) in enumerate(in_order):
        if size > 0:
            sizes[address] = 0 if position in left_out else size
            live += sizes[address]
            peak = max(peak, live)
        else:
            live -= sizes.pop(address, 0)  # Memory from before the step is not counted.
    return peak


def allocated(name: str, scale: int, compile_step: Callable[[Any], Any]) -> tuple[Any, int]:
    """Returns the compiled step, and the peak of its second run in bytes, by the allocator."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    make, batch = NETWORKS[name]
    model, data = make(), torch.cat([batch() for _ in range(scale)])
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    step = compile_step(lambda: loss_of(model(data)))
    torch.autograd.grad(step(), trained)  # Compiles.
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        loss = step()
        gradients = torch.autograd.grad(loss, trained)
    events = profiler.profiler.kineto_results.experimental_event_tree()
    return step, peak_bytes(events, list(gradients))


def alone(name: str, scale: int) -> int:
    """Returns the peak of torch.compile without a plan."""
    return allocated(name, scale, lambda step: torch.compile(step, fullgraph=True))[1]


def measured(name: str, compiler: str, budget: str, scale: int) -> tuple[int, int]:
    """Returns the peaks of a planned step in bytes: as planned, and as the allocator counts."""
    options = {"budget": budget, "compiler": compiler, "fullgraph": True}
    step, found = allocated(name, scale, lambda step: ckplan.torch.compile(step, **options))
    return step.ckplan.graphs[0].plan.peak_bytes, found


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--budgets", nargs="*", default=["100%", "80%", "65%"])
    parser.add_argument("--scale", type=int, default=8)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    heads = ["network", "without a plan, KiB", "budget"]
    for compiler in ("eager", "inductor"):
        heads += [f"planned for {compiler}, KiB", "allocated", "difference"]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for name in asked.networks:
        unplanned = f"{alone(name, asked.scale) / 1024:,.1f}"
        for budget in asked.budgets:
            row = [name, unplanned, budget]
            for compiler in ("eager", "inductor"):
                planned, found = measured(name, compiler, budget, asked.scale)
                row += [f"{planned / 1024:,.1f}", f"{found / 1024:,.1f}"]
                row.append(f"{100 * (found / planned - 1):+.1f} %")
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
