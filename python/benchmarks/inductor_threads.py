"""Reproduces four reports of checkpoints that save less memory once compiled, with ckplan beside.

    python python/benchmarks/inductor_threads.py [THREAD...] [--layers 4] [--journal FILE]

Each report is reduced to a network of its kind for a CPU. The peaks are those that PyTorch's
allocator counts in the second step, without parameters' gradients, in KiB: in eager mode without
and with checkpoints; compiled without and with checkpoints, in the way of the report; and by ckplan
without checkpoints, asked for the peak that eager checkpoints have. Where that is infeasible, the
row is of the least that the error names.
"""

from __future__ import annotations

import argparse
import functools
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo import compiled_autograd
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import ckplan
import ckplan.torch
import journal
from inductor_peak import allocated
from torch_tests.networks import Layer

Run = Callable[..., Tensor]
"""Calls a block with its inputs."""


def plain(block: nn.Module, *inputs: Tensor) -> Tensor:
    return block(*inputs)


def checkpointed(block: nn.Module, *inputs: Tensor, **options: Any) -> Tensor:
    return checkpoint(block, *inputs, use_reentrant=False, **options)


def _keeps_products(_: Any, operator: Any, *__: Any, **___: Any) -> CheckpointPolicy:
    is_product = operator in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
    return CheckpointPolicy.MUST_SAVE if is_product else CheckpointPolicy.PREFER_RECOMPUTE


def selective(block: nn.Module, *inputs: Tensor) -> Tensor:
    contexts = functools.partial(create_selective_checkpoint_contexts, _keeps_products)
    return checkpointed(block, *inputs, context_fn=contexts)


class Block(nn.Module):
    """A layer that also attends to a context, if it gets one."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.layer = Layer(width, heads, 0.0, fused=True, causal=True, pre=True)
        self.norm, self.heads = nn.LayerNorm(width), heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        if context is not None:
            q = self._split(self.q(self.norm(x)))
            k, v = self._split(self.k(context)), self._split(self.v(context))
            mixed = F.scaled_dot_product_attention(q, k, v)
            x = x + mixed.transpose(1, 2).reshape(x.shape)
        return self.layer(x)

    def _split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)


class Stack(nn.Module):
    """Blocks that run one after the other: once for each tuple of further inputs."""

    def __init__(self, blocks: Sequence[nn.Module]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor, further: list[tuple[Tensor, ...]], run: Run) -> Tensor:
        losses = []
        for inputs in further:
            y = x
            for block in self.blocks:
                y = run(block, y, *inputs)
            losses.append(y.square().mean())
        return torch.stack(losses).sum()


Network = tuple[Stack, Tensor, list[tuple[Tensor, ...]]]


def twice(layers: int) -> Network:
    blocks = [Block(64, 4) for _ in range(layers)]
    return Stack(blocks), torch.randn(8, 64, 64), [(), (torch.randn(8, 16, 64),)]


def once(layers: int) -> Network:
    blocks = [Layer(64, 4, 0.0, fused=True, causal=True, pre=True) for _ in range(layers)]
    return Stack(blocks), torch.randn(8, 64, 64), [()]


def products(layers: int) -> Network:
    def block() -> nn.Module:
        return nn.Sequential(nn.Linear(128, 128), nn.LayerNorm(128), nn.GELU())

    return Stack([block() for _ in range(layers + 1)]), torch.randn(512, 128), [()]


@dataclass(frozen=True)
class Thread:
    """One report."""

    title: str
    network: Callable[[int], Network]
    run: Run


THREADS = {
    "193193": Thread("blocks that run twice in a step", twice, checkpointed),
    "161889": Thread("selective checkpoints that keep products", once, selective),
    "120381": Thread("a product, LayerNorm and GELU", products, checkpointed),
    "143176": Thread("eager checkpoints, compiled autograd", once, checkpointed),
}

HEADS = ["eager", "eager with checkpoints", "compiled", "compiled with checkpoints"]
HEADS += ["promised", "ckplan"]


class Report:
    """Measures the networks of one report."""

    def __init__(self, number: str, layers: int, kept: journal.Journal):
        self._thread, self._layers = THREADS[number], layers
        self._kept, self._number = kept, number

    def row(self) -> dict[str, int]:
        run, compiled = self._thread.run, torch.compile
        found = {
            "eager": self._peak("eager", lambda step, _: step(plain)),
            "eager with checkpoints": self._peak("checkpoints", lambda step, _: step(run)),
            "compiled": self._peak(
                "compiled", lambda step, _: compiled(step(plain), dynamic=False)
            ),
        }
        if "compiled autograd" in self._thread.title:
            with compiled_autograd._enable(compiled(dynamic=False)):
                found["compiled with checkpoints"] = self._peak("both", _with_compiled_blocks)
        else:
            found["compiled with checkpoints"] = self._peak(
                "both", lambda step, _: compiled(step(run), dynamic=False)
            )
        budget = found["eager with checkpoints"]
        planned: dict[str, int] = self._kept.row(
            f"{self._number}: ckplan", lambda: self._planned(budget)
        )
        return found | planned

    def _peak(self, what: str, make: Callable[[Any, Stack], Any]) -> int:
        found: int = self._kept.row(f"{self._number}: {what}", lambda: self._measured(make))
        return found

    def _measured(self, make: Callable[[Any, Stack], Any]) -> int:
        """Returns the allocator's peak of a step; ``make`` gets it as a function of a Run."""
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, x, further = self._thread.network(self._layers)
        step = make(lambda run: lambda: model(x, further, run), model)
        trained = list(model.parameters())
        torch.autograd.grad(step(), trained)
        return allocated(step, trained)

    def _planned(self, budget: int) -> dict[str, int]:
        steps: list[Any] = []

        def make(step: Any, _: Stack) -> Any:
            steps.append(ckplan.torch.compile(step(plain), budget, compiler="inductor"))
            return steps[-1]

        found = {}
        try:
            found["ckplan"] = self._measured(make)
        except ckplan.InfeasibleError as error:
            assert error.least_bytes is not None
            found["least"] = budget = error.least_bytes
            found["ckplan"] = self._measured(make)
        (graph,) = steps[-1].ckplan.graphs
        found["promised"] = graph.promise.bytes
        return found


def _with_compiled_blocks(step: Any, model: Stack) -> Any:
    """Returns a step with eager checkpoints of compiled blocks."""
    for block in model.blocks:
        block.compile(dynamic=False)
    return step(checkpointed)


def line(number: str, row: dict[str, int]) -> str:
    cells = [f"{row[head] / 1024:,.0f}" for head in HEADS]
    if "least" in row:
        cells[-1] += ", the least"
    return f"| pytorch#{number} | {THREADS[number].title} | " + " | ".join(cells) + " |"


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("threads", nargs="*", default=list(THREADS))
    parser.add_argument("--layers", type=int, default=4)
    journal.add_argument(parser)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)
    kept = journal.Journal(asked.journal, ["torch"], asked.layers)
    print("| thread | what it is about | " + " | ".join(HEADS) + " |")
    print("|" + " --- |" * (2 + len(HEADS)))
    for number in asked.threads:
        print(line(number, Report(number, asked.layers, kept).row()), flush=True)


if __name__ == "__main__":
    main()
