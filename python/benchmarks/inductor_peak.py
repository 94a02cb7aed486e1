"""Compares what is promised of compiled training with what PyTorch's allocator then counts.

    python python/benchmarks/inductor_peak.py [NETWORK...] [--budgets 80% 60% 40%] [--rows FILE]

For each network there is plain ``torch.compile``; PyTorch's knob at one value; ckplan at the peak
that this has reached, in bytes; and ckplan at shares of plain Inductor's peak. The allocator counts
the second step on a CPU, without parameters' gradients: PyTorch's profiler records each allocation
and release. Times are the least CPU times of some steps, by one thread. Rows are appended to FILE
as they are made, and rows that it has are not made again; ``--minutes`` ends the program before it
begins another row. ``--print`` prints the table of FILE alone.

Kernels are kept in TORCHINDUCTOR_CACHE_DIR, so seconds of the first step count what was not there;
``--fresh`` gives each row a folder of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).parent))

import ckplan
import ckplan.torch
from inductor_networks import NETWORKS, Loss

KNOB = "knob"
STEPS = 15

Row = dict[str, Any]


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


def allocated(step: Loss, trained: list[torch.Tensor]) -> int:
    """Returns the peak of a step in bytes, by the allocator."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        loss = step()
        gradients = torch.autograd.grad(loss, trained)
    events = profiler.profiler.kineto_results.experimental_event_tree()
    return peak_bytes(events, list(gradients))


def cpu_seconds() -> float:
    """Returns the CPU time of this process and of the compilers that it has called."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def run(name: str, compile_step: Callable[[Loss], Any]) -> tuple[Any, Row]:
    """Compiles and runs a network. Returns the compiled step, and what was measured."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    loss = NETWORKS[name][1]()
    trained = loss.trained  # type: ignore[attr-defined]
    step = compile_step(loss)
    begun = cpu_seconds()
    torch.autograd.grad(step(), trained)
    first = cpu_seconds() - begun
    torch.autograd.grad(step(), trained)
    peak = allocated(step, trained)
    times = []
    for _ in range(STEPS):
        before = time.process_time_ns()
        torch.autograd.grad(step(), trained)
        times.append(time.process_time_ns() - before)
    return step, {"first_s": round(first, 1), "measured": peak, "step_ms": min(times) / 1e6}


def plain(name: str) -> Row:
    return run(name, lambda loss: torch.compile(loss, fullgraph=True, dynamic=False))[1]


def knob(name: str, value: float) -> Row:
    with torch._functorch.config.patch(activation_memory_budget=value):
        return plain(name)


def planned(name: str, budget: int | str, costs: str) -> Row:
    """Returns the row of a budget; where it is infeasible, that of the least."""
    options: dict[str, Any] = {"compiler": "inductor", "fullgraph": True, "costs": costs}
    row: Row = {}
    try:
        step, found = run(name, lambda loss: ckplan.torch.compile(loss, budget, **options))
    except ckplan.InfeasibleError as error:
        row["least"] = error.least_bytes
        step, found = run(name, lambda loss: ckplan.torch.compile(loss, error.least_bytes, **options))
    (graph,) = step.ckplan.graphs
    promise = graph.promise
    assert promise is not None, step.ckplan.summary()
    row |= found | {
        "promised": promise.bytes,
        "in_operators": promise.in_operators_bytes,
        "plain": promise.plain_bytes,
        "tracked": graph.measured_peak_bytes,
        "added": promise.added_share,
        "way": promise.way,
        "rounds": promise.rounds,
        "seconds": promise.seconds,
    }
    return row


def read(path: Path) -> dict[tuple[str, str], Row]:
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return {(row["network"], row["asked"]): row for row in rows}


class Table:
    """The rows of a file, which is written as they are made."""

    def __init__(self, path: Path, minutes: float, fresh: bool):
        self.path, self.rows = path, read(path)
        self._end = time.monotonic() + 60 * minutes
        self._fresh = fresh

    def make(self, name: str, asked: str, make: Callable[[], Row]) -> Row:
        """Returns a row, made now if the file has none."""
        if (name, asked) not in self.rows:
            if time.monotonic() > self._end:
                sys.exit(3)
            with tempfile.TemporaryDirectory() as folder:
                if self._fresh:
                    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
                row = {"network": name, "asked": asked, **make()}
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            self.rows[name, asked] = row
        return self.rows[name, asked]

    def network(self, name: str, budgets: list[str], knobs: list[float], costs: str) -> None:
        self.make(name, "plain", lambda: plain(name))
        for value in knobs:
            found = self.make(name, f"{KNOB} {value}", lambda value=value: knob(name, value))
            limit = found["measured"]
            self.make(name, f"as {KNOB} {value}", lambda limit=limit: planned(name, limit, costs))
        for budget in budgets:
            self.make(name, budget, lambda budget=budget: planned(name, budget, costs))

    def text(self) -> str:
        """Returns the table in Markdown."""
        heads = ["network", "asked", "promised", "measured", "step", "predicted"]
        heads += ["first step, CPU s", "rounds"]
        lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
        for name, (title, _) in NETWORKS.items():
            known = self.rows.get((name, "plain"))
            if known is None:
                continue
            for (network, _), row in self.rows.items():
                if network == name:
                    shown = title if row is known else ""
                    lines.append("| " + " | ".join([shown, *cells(row, known)]) + " |")
        return "\n".join(lines)


def cells(row: Row, base: Row) -> list[str]:
    share = 100 / base["measured"]
    promised = f"{row['promised'] * share:.1f} %" if "promised" in row else ""
    measured = f"{row['measured'] * share:.1f} %"
    if row is base:
        measured = f"{row['measured'] / 1024:,.0f} KiB"
    step = f"{row['step_ms']:.1f} ms" if row is base else f"{_more(row, base):+.1f} %"
    added = f"{100 * row['added']:+.1f} %" if "added" in row else ""
    asked = row["asked"] + (", least" if "least" in row else "")
    return [asked, promised, measured, step, added, str(row["first_s"]), str(row.get("rounds", ""))]


def _more(row: Row, base: Row) -> float:
    return 100 * (row["step_ms"] / base["step_ms"] - 1)


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--budgets", nargs="*", default=["80%", "60%", "40%"])
    parser.add_argument("--knobs", nargs="*", type=float, default=[0.5])
    parser.add_argument("--costs", default="roofline")
    parser.add_argument("--rows", type=Path, default=Path("inductor_peak.jsonl"))
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--print", action="store_true", dest="prints")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    table = Table(asked.rows, asked.minutes, asked.fresh)
    if not asked.prints:
        for name in asked.networks:
            table.network(name, asked.budgets, asked.knobs, asked.costs)
    print(table.text())


if __name__ == "__main__":
    main()
