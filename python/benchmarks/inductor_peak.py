"""Compares the promised peaks of compiled training with those of PyTorch's allocator.

    python python/benchmarks/inductor_peak.py [NETWORK...] [--budgets 80% 60% 40%] [--journal FILE]

For each network there is plain ``torch.compile``; PyTorch's knob at one value; ckplan at the peak
that this has reached, in bytes; and ckplan at shares of plain Inductor's peak. Where a budget is
infeasible, the row is of the least that the error names.

- *Measured* is the second step's peak by PyTorch's allocator on a CPU, without parameters'
  gradients: PyTorch's profiler records each allocation and release.
- All steps of a network stay in one process and run in turn, by one thread. *Step* is the median,
  over the turns, of the CPU time divided by plain's in the same turn, so that what else runs on the
  machine cancels out. Memory stays with the process: otherwise the C library gives some of it back
  in one step and not in another, and page faults would decide.
- *First step* is CPU time with no kernel in Inductor's cache, after another function was compiled.
  It is of plain and of the first budget; the other rows find kernels of these. Where the budget was
  refused, the time of the refusal comes first, and then that of the first step within the least.
- *Predicted* is the added time by the costs that were asked for; *by kernels* the time that
  ``costs="measure"`` finds in the kernels of this step and not in those of plain's, as a share of
  the least time of plain's step, as the times of kernels are the least ones, too.
- *Gradients* are compared with plain's, by the norm of the difference over the norm; plain's own
  are compared with eager mode's, except where dropout draws other numbers there.

No network begins after ``--minutes``. ``--journal`` keeps finished rows, and ``--print`` prints
their table.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import itertools
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
import types
import unittest.mock
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).parent))

import ckplan
import ckplan.torch
import journal
from ckplan.torch.costs import device_named
from ckplan.torch.inductor import evaluation
from ckplan.torch.inductor.costs import step_cost
from inductor_networks import NETWORKS, Loss

TURNS = 31

Row = dict[str, Any]
Compile = Callable[[Loss], Any]


def allocations(events: list[Any]) -> Iterator[tuple[int, int, int]]:
    """Yields the allocator's changes: time, address, and bytes (negative for a release)."""
    for event in events:
        if event.tag == _EventType.Allocation:
            fields = event.extra_fields
            yield event.start_time_ns, fields.ptr, fields.alloc_size
        yield from allocations(event.children)


def peak_bytes(events: list[Any], uncounted: list[torch.Tensor]) -> int:
    """Returns the most bytes at once, without the tensors in ``uncounted``, which still live."""
    in_order = sorted(allocations(events), key=lambda event: event[0])
    last = {address: i for i, (_, address, size) in enumerate(in_order) if size > 0}
    left_out = {last.get(tensor.untyped_storage().data_ptr()) for tensor in uncounted}
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


def keep_memory() -> None:
    """Stops the C library from returning memory to the system (``mallopt``, glibc only)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-4, 0)  # M_MMAP_MAX: all memory is of the heap.
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def cpu_seconds() -> float:
    """Returns the CPU time of this process and of the compilers that it has called."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


@dataclass
class Running:
    """A step that has run, with its measurements."""

    step: Any
    trained: list[torch.Tensor]
    row: Row
    calls: dict[int, list[Any]] = field(default_factory=dict)
    """What each lowered step calls, by its cost."""

    def gradients(self) -> list[torch.Tensor]:
        torch.manual_seed(1)
        return list(torch.autograd.grad(self.step(), self.trained))

    def added_ns(self) -> int:
        """Returns the time that the step adds to plain's, by the measured times of its kernels."""
        plain_cost, plain_calls = next(iter(self.calls.items()))
        cost = min(self.calls, key=lambda cost: abs(cost / plain_cost - 1 - self.row["added"]))
        ours, theirs = (
            step_cost(calls, "measure", device_named("cpu"))
            for calls in (self.calls[cost], plain_calls)
        )
        return ours - theirs

    def cpu_ns(self) -> int:
        before = time.process_time_ns()
        torch.autograd.grad(self.step(), self.trained)
        return time.process_time_ns() - before


_numbers = itertools.count()


def of_its_own(loss: Loss) -> Loss:
    """Returns a copy of the function with its own code object, TorchDynamo's cache key."""
    function: Any = loss
    code = function.__code__.replace(co_name=f"loss_{next(_numbers)}")
    made = types.FunctionType(code, function.__globals__, closure=function.__closure__)
    made.trained = function.trained  # type: ignore[attr-defined]
    return made


def run(name: str, compile_step: Compile) -> Running:
    """Compiles a network, runs it for the first time, and measures its second step."""
    torch.manual_seed(0)
    loss = of_its_own(NETWORKS[name][1]())
    trained = loss.trained  # type: ignore[attr-defined]
    step = compile_step(loss)
    begun = cpu_seconds()
    torch.autograd.grad(step(), trained)
    first = cpu_seconds() - begun
    return Running(step, trained, {"first_s": first, "measured": allocated(step, trained)})


@contextlib.contextmanager
def noted() -> Iterator[dict[int, list[Any]]]:
    """Notes the calls of all steps whose cost is computed."""
    found: dict[int, list[Any]] = {}

    def noting(calls: list[Any], *rest: Any) -> int:
        cost = step_cost(calls, *rest)
        found.setdefault(cost, calls)
        return cost

    with unittest.mock.patch.object(evaluation, "step_cost", noting):
        yield found


def plain(name: str) -> Running:
    return run(name, lambda loss: torch.compile(loss, fullgraph=True, dynamic=False))


def knob(name: str, value: float) -> Running:
    with torch._functorch.config.patch(activation_memory_budget=value):
        return plain(name)


def planned(name: str, budget: int | str, costs: str) -> Running:
    """Returns the step within a budget, or within the least one if that is infeasible."""
    options: dict[str, Any] = {"compiler": "inductor", "fullgraph": True, "costs": costs}
    begun = cpu_seconds()
    least = None
    with noted() as calls:
        try:
            found = run(name, lambda loss: ckplan.torch.compile(loss, budget, **options))
        except ckplan.InfeasibleError as error:
            least, refused = error.least_bytes, cpu_seconds() - begun
            assert least is not None
            found = run(name, lambda loss: ckplan.torch.compile(loss, least, **options))
            found.row |= {"least": least, "refused_s": refused}
    found.calls = calls
    (graph,) = found.step.ckplan.graphs
    promise = graph.promise
    assert promise is not None, found.step.ckplan.summary()
    found.row |= {
        "promised": promise.bytes,
        "in_operators": promise.in_operators_bytes,
        "plain": promise.plain_bytes,
        "tracked": graph.measured_peak_bytes,
        "added": promise.added_share,
        "way": promise.way,
        "rounds": promise.rounds,
    }
    return found


def difference(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> float:
    """Returns the norm of the difference of gradients, over their norm."""
    pairs = list(zip(ours, theirs))
    squares = sum(float((a.double() - b.double()).square().sum()) for a, b in pairs)
    return float((squares / sum(float(b.double().square().sum()) for _, b in pairs)) ** 0.5)


def eager_difference(name: str, compiled: Running) -> float | None:
    """Returns the distance of gradients from eager mode's; None if dropout draws other numbers."""
    torch.manual_seed(0)
    loss = NETWORKS[name][1]()
    eager = Running(loss, loss.trained, {})  # type: ignore[attr-defined]
    if "dropout" in NETWORKS[name][0]:
        return None
    return difference(compiled.gradients(), eager.gradients())


def in_turn(steps: dict[str, Running]) -> dict[str, list[int]]:
    """Returns the CPU times of all steps, which run one after the other, in another order each turn."""
    times: dict[str, list[int]] = {asked: [] for asked in steps}
    order = list(steps)
    for turn in range(TURNS + 2):
        for asked in order[turn % len(order) :] + order[: turn % len(order)]:
            found = steps[asked].cpu_ns()
            if turn >= 2:
                times[asked].append(found)
    return times


class Kernels:
    """Folders of compiled kernels, in place of the user's own."""

    def __init__(self, folder: Path):
        self._folder, self._empty = folder / "kernels", folder / "empty"
        self._use(self._empty)
        # What all first steps of a machine share: headers, and what the processor has.
        torch.compile(lambda x: x.exp().sum())(torch.ones(99, requires_grad=True)).backward()
        if not self._folder.exists():
            shutil.copytree(self._empty, self._folder)
        self._use(self._folder)

    @contextlib.contextmanager
    def none(self) -> Iterator[None]:
        """Hides known kernels within this context, and keeps those compiled in it."""
        with tempfile.TemporaryDirectory() as fresh:
            shutil.copytree(self._empty, fresh, dirs_exist_ok=True)
            self._use(Path(fresh))
            yield
            shutil.copytree(fresh, self._folder, copy_function=_copy_new, dirs_exist_ok=True)
        self._use(self._folder)

    def _use(self, folder: Path) -> None:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
        torch._inductor.utils.clear_caches()


def _copy_new(source: str, target: str) -> None:
    """Copies a file that is not there yet: a kernel that is there may be mapped, and in use."""
    if not os.path.exists(target):
        shutil.copy2(source, target)


class Network:
    """The rows of one network."""

    def __init__(self, name: str, kept: journal.Journal, kernels: Kernels):
        self._name, self._kept, self._kernels = name, kept, kernels
        self._running: dict[str, Running] = {}

    def make(self, asked: argparse.Namespace) -> None:
        self._step("plain", lambda: plain(self._name), is_cold=True)
        for position, budget in enumerate(asked.budgets):
            self._plan(budget, budget, asked.costs, is_cold=position == 0)
        for value in asked.knobs:
            name = f"knob {value}"
            self._step(name, lambda value=value: knob(self._name, value))
            reached = self._row(name)["measured"]
            self._plan(f"as {name}", reached, asked.costs)
        for name, times in in_turn(self._running).items():
            self._kept.row(f"{self._name}: {name}: times", lambda times=times: times)

    def _plan(self, name: str, budget: int | str, costs: str, is_cold: bool = False) -> None:
        self._step(name, lambda: planned(self._name, budget, costs), is_cold)

    def _step(self, name: str, make: Callable[[], Running], is_cold: bool = False) -> None:
        is_known = self._kept.has(self._key(name))
        with self._kernels.none() if is_cold and not is_known else contextlib.nullcontext():
            running = self._running[name] = make()
        if not is_cold:
            del running.row["first_s"]
            running.row.pop("refused_s", None)
        if not is_known:
            base = self._running["plain"]
            if name == "plain":
                running.row["gradients"] = eager_difference(self._name, running)
            else:
                running.row["gradients"] = difference(running.gradients(), base.gradients())
            if running.calls:
                running.row["added_ns"] = running.added_ns()
        self._kept.row(self._key(name), lambda: running.row)

    def _row(self, name: str) -> Row:
        row: Row = self._kept.row(self._key(name), dict)
        return row

    def _key(self, name: str) -> str:
        return f"{self._name}: {name}"


HEADS = ["network", "asked", "promised", "measured", "step", "predicted", "by kernels"]
HEADS += ["against the knob"]
HEADS += ["first step, CPU s", "rounds", "gradients"]


def table(kept: journal.Journal, knobs: list[float]) -> str:
    """Returns the finished rows as a Markdown table."""
    lines = ["| " + " | ".join(HEADS) + " |", "|" + " --- |" * len(HEADS)]
    for name, (title, _) in NETWORKS.items():
        rows = kept.rows(f"{name}: ")
        for asked, row in rows.items():
            times, base = rows.get(f"{asked}: times"), rows.get("plain: times")
            if times is None or base is None:
                continue
            shown = title if asked == "plain" else ""
            row["step"] = _ratio(times, base)
            row["step_ms"] = statistics.median(times) / 1e6
            if "added_ns" in row:
                row["by_kernels"] = row["added_ns"] / min(base)
            rivals = [rows.get(f"knob {value}: times") for value in knobs]
            names = [f"as knob {value}" for value in knobs]
            if asked in names and (rival := rivals[names.index(asked)]):
                row["rival"] = _ratio(times, rival)
            lines.append("| " + " | ".join([shown, *_cells(asked, row, rows["plain"])]) + " |")
    return "\n".join(lines)


_SHARES = "added", "by_kernels", "rival"


def _ratio(times: list[int], base: list[int]) -> float:
    return statistics.median(a / b for a, b in zip(times, base)) - 1


def _cells(asked: str, row: Row, base: Row) -> list[str]:
    share = 100 / base["measured"]
    measured = f"{row['measured'] * share:.1f} %"
    step = f"{100 * row['step']:+.1f} %"
    if asked == "plain":
        measured, step = f"{row['measured'] / 1024:,.0f} KiB", f"{row['step_ms']:.1f} ms"
    gradients = row["gradients"]
    return [
        asked + (", least" if "least" in row else ""),
        f"{row['promised'] * share:.1f} %" if "promised" in row else "",
        measured,
        step,
        *(f"{100 * row[key]:+.1f} %" if key in row else "" for key in _SHARES),
        " + ".join(f"{row[key]:.1f}" for key in ("refused_s", "first_s") if key in row),
        str(row.get("rounds", "")),
        "" if gradients is None else f"{gradients:.0e}",
    ]


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--budgets", nargs="*", default=["60%", "80%", "40%"])
    parser.add_argument("--knobs", nargs="*", type=float, default=[0.5])
    parser.add_argument("--costs", default="roofline")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--print", action="store_true", dest="prints")
    parser.add_argument("--folder", type=Path, help="folder that keeps kernels and plans")
    journal.add_argument(parser)
    asked = parser.parse_args()
    end = time.monotonic() + 60 * asked.minutes
    torch.set_num_threads(1)
    keep_memory()
    warnings.simplefilter("ignore", UserWarning)
    kept = journal.Journal(asked.journal, ["torch", "transformers"], [asked.costs])
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        os.environ["CKPLAN_CACHE"] = str(folder / "plans")
        kernels = None if asked.prints else Kernels(folder)
        for name in asked.networks:
            if kernels is None or kept.has(f"{name}: plain: times"):
                continue
            if time.monotonic() > end:
                sys.exit(3)
            Network(name, kept, kernels).make(asked)
    print(table(kept, asked.knobs))


if __name__ == "__main__":
    main()
