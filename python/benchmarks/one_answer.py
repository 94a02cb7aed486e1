"""Asks all commands whether training fits a memory, and compares their answers.

    python python/benchmarks/one_answer.py [NAME...]
    python python/benchmarks/one_answer.py --files [MODEL.onnx...]

Each of twelve networks is exported, and ``ckplan MODEL``, ``plan``, ``fit``, ``inspect`` and ``check``
as well as ``ckplan.torch.estimate`` are asked about three memories: one that keeps everything, one
for which a plan is needed, and one too small. The rows have their verdicts; the lines that they
share must be equal to the byte. The step and the allocator of an estimate are those of the step
that it traces: the last column has them relative to those of the exported model. Batches are so
large that a step takes 1 GiB. The networks of transformers need that package. With ``--files``, the
models are files with a batch called ``N``, by default ten of testdata/models, and there is no
module to estimate.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import eager_networks
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torch_tests import answers


class OddUNet(nn.Module):
    """A U-Net with odd sizes, depthwise convolutions, GELU and a gated skip."""

    def __init__(self, width: int = 12):
        super().__init__()

        def block(inner: int, outer: int, stride: int = 1) -> nn.Module:
            wide = nn.Conv2d(inner, inner, 5, stride, 2, groups=inner)
            return nn.Sequential(wide, nn.BatchNorm2d(inner), nn.GELU(), nn.Conv2d(inner, outer, 1))

        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(block(width << i, width << (i + 1), 2) for i in range(3))
        self.up = nn.ModuleList(block(3 * (width << i), width << i) for i in reversed(range(3)))
        self.gate = nn.Parameter(torch.zeros(3))
        self.leave = nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        x = self.enter(x)
        skips = []
        for down in self.down:
            skips.append(x)
            x = down(x)
        for up, skip, gate in zip(self.up, reversed(skips), self.gate):
            x = F.interpolate(x, size=skip.shape[2:], mode="bilinear")
            x = up(torch.cat([x, torch.sigmoid(gate) * skip], 1))
        return F.cross_entropy(self.leave(x), classes)


class ConvNext(nn.Module):
    """Blocks of ConvNeXt: LayerNorm over channels that come last, a scale for each, GELU."""

    class Block(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
            self.norm = nn.LayerNorm(width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.scale = nn.Parameter(torch.full((width,), 1e-6))

        def forward(self, x: Tensor) -> Tensor:
            y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
            y = self.scale * self.narrow(F.gelu(self.widen(y)))
            return x + y.permute(0, 3, 1, 2)

    def __init__(self, width: int = 48, depth: int = 4):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.blocks = nn.Sequential(*(ConvNext.Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def _unet() -> tuple[nn.Module, eager_networks.Batch]:
    return OddUNet(), (torch.randn(4, 3, 101, 77), torch.randint(0, 2, (4, 101, 77)))


def _convnext() -> tuple[nn.Module, eager_networks.Batch]:
    data = torch.randn(4, 3, 96, 96)
    return eager_networks.Classified(ConvNext()), (data, torch.randint(0, 10, (4,)))


OWN: dict[str, tuple[eager_networks.Network, str]] = {
    "unet": (_unet, "odd sizes, depthwise, gated skips"),
    "convnext": (_convnext, "channels last, a scale for each"),
}
MODELS = Path(__file__).parents[2] / "testdata/models"
FILES = {
    "resnet50": 8, "densenet121": 8, "efficientnet_b0": 8, "mobilenet_v2": 8, "googlenet": 8,
    "vit_b_16": 4, "unet_572": 1, "bert_base_512": 4, "gpt2_small": 2, "lstm_4x1024x64_op": 8,
}  # fmt: skip
"""Batch sizes of ten models."""

LEAST_STEP = 1 << 30
"""The allocator takes 20 MiB at a time, which would decide about the memory of smaller steps."""

NAMES = (
    "resnet", "unet", "efficientnet", "convnext", "diffusion", "vit", "by-hand", "bert", "gpt2",
    "llama", "t5", "lstm",
)  # fmt: skip


def main() -> int:
    """Prints a table in Markdown. Returns 1 if two commands that read the model disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(NAMES))
    parser.add_argument("--files", action="store_true", help="NAMEs are ONNX files")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    print("| network | memory, MiB | plan | fit | inspect | check | estimate | step, allocator |")
    print("|" + " --- |" * 8, flush=True)
    is_one = True
    for name, network in _files(asked.names) if asked.files else _networks(asked.names):
        for memory in answers.memories(network):
            found = answers.answers(network, memory)
            print(_row(name, found), flush=True)
            differences = found.differences()
            for row in differences:
                print(f"{name}: {row}", file=sys.stderr, flush=True)
            is_one &= not differences and found.is_one()
    return 0 if is_one else 1


def _networks(names: list[str]) -> Iterator[tuple[str, answers.Asked]]:
    eager_networks.NETWORKS.update(OWN)
    for name, model, batch in eager_networks.rows(names or list(NAMES)):
        with tempfile.TemporaryDirectory() as folder:
            asked = answers.Asked.exported(model, batch, Path(folder))
            yield name, answers.grown(asked, LEAST_STEP)


def _files(names: list[str]) -> Iterator[tuple[str, answers.Asked]]:
    for path in [Path(name) for name in names] or [MODELS / f"{name}.onnx" for name in FILES]:
        yield path.stem, answers.Asked(path, FILES.get(path.stem, 8))


def _row(name: str, found: answers.Found) -> str:
    cells = [name, f"{found.memory / 2**20:.1f}"]
    cells += [found.verdicts.get(one, "-") for one in ("plan", "fit", "inspect", "check", "estimate")]
    own, other = found.lines["inspect"], found.lines.get("estimate")
    if other is not None:
        # PyTorch's intermediate results are workspaces in a file, but tensors in a trace.
        ratio = other["step"][0] / max(1, own["step"][0] + own["workspaces"][0])
        allocator = (other["allocator"][0] - own["allocator"][0]) / 2**20
        cells.append(f"{ratio:.3f}, {allocator:+.1f} MiB")
    return "| " + " | ".join([*cells, "-"][:8]) + " |"


if __name__ == "__main__":
    sys.exit(main())
