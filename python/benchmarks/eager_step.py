"""Compares plans of exported models with the memory of PyTorch's eager training step on a CPU.

    python python/benchmarks/eager_step.py [NAME...] [--flags "--autograd torch-cpu"] [--optimize]

Each network is exported with its loss in training mode (``torch.onnx.export(dynamo=True)``). The
measured peak counts every storage that one eager step makes (``model(*batch).backward()``) to the
byte, without inputs and without the final gradients of parameters. The same step's saved tensors
are those that autograd packs, without parameters and buffers. Each set of ``--flags`` adds
two columns: ckplan's keep-all peak and its saved bytes, as ratios to the measured ones. Networks
are small, with all the operators of the full ones, and weights are random. Those of transformers
need that package.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from ckplan.torch import private
from ckplan.torch.tracker import Tracker
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from torch_tests import networks as small

Batch = tuple[Tensor, ...]
Network = Callable[[], tuple[nn.Module, Batch]]


class Classified(nn.Module):
    """A network with the cross-entropy of its classes as its result."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, data: Tensor, classes: Tensor) -> Tensor:
        scores = self.network(data)
        return F.cross_entropy(scores.flatten(0, -2), classes.flatten())


class Residual(nn.Module):
    """Two convolutions, each after GroupNorm and SiLU, as in diffusion models."""

    def __init__(self, inner: int, outer: int):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.time = nn.Linear(64, outer)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x)))
        y = y + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class Pixels(nn.Module):
    """Attention among all pixels of an image."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(8, width), heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        count, width, height, breadth = x.shape
        rows = self.norm(x).flatten(2).transpose(1, 2)
        split = (count, height * breadth, self.heads, width // self.heads)
        q, k, v = (part(rows).view(split).transpose(1, 2) for part in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(count, -1, width)
        return x + self.output(mixed).transpose(1, 2).reshape(x.shape)


class Diffusion(nn.Module):
    """A U-Net with GroupNorm, SiLU, attention and a squared error, as diffusion models have."""

    def __init__(self, width: int = 32):
        super().__init__()
        wide = 2 * width
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down1, self.down2 = Residual(width, width), Residual(width, wide)
        self.shrink = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.mix, self.middle = Pixels(wide, 4), Residual(wide, wide)
        self.up1, self.up2 = Residual(wide + wide, wide), Residual(wide + width, width)
        self.norm, self.leave = nn.GroupNorm(8, width), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: Tensor, time: Tensor, noise: Tensor) -> Tensor:
        first = self.down1(self.enter(x), time)
        second = self.mix(self.down2(self.shrink(first), time))
        y = self.up1(torch.cat([self.middle(second, time), second], 1), time)
        y = F.interpolate(y, scale_factor=2.0, mode="nearest")
        y = self.up2(torch.cat([y, first], 1), time)
        return F.mse_loss(self.leave(F.silu(self.norm(y))), noise)


class Inverted(nn.Module):
    """An inverted bottleneck with squeeze-and-excitation, as in EfficientNet."""

    def __init__(self, width: int):
        super().__init__()
        wide = 4 * width
        self.widen = nn.Sequential(nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide))
        self.apart = nn.Sequential(
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False), nn.BatchNorm2d(wide)
        )
        self.squeeze, self.excite = nn.Conv2d(wide, width, 1), nn.Conv2d(width, wide, 1)
        self.narrow = nn.Sequential(nn.Conv2d(wide, width, 1, bias=False), nn.BatchNorm2d(width))
        self.act = nn.SiLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.apart(self.act(self.widen(x))))
        gate = torch.sigmoid(self.excite(self.act(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return x + self.narrow(gate * y)


class Frozen(nn.Module):
    """BatchNorm with fixed statistics, as detectors have."""

    def __init__(self, width: int):
        super().__init__()
        for name in ("weight", "variance"):
            self.register_buffer(name, torch.ones(width))
        for name in ("bias", "mean"):
            self.register_buffer(name, torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight * (self.variance + 1e-5).rsqrt()
        shift = self.bias - self.mean * scale
        return x * scale[:, None, None] + shift[:, None, None]


class Pooled(nn.Module):
    """Convolutions with fixed BatchNorm, pooling, Softplus, Mish and dropout."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(3 if i == 0 else width, width, 3, padding=1) for i in range(4)
        )
        self.norms = nn.ModuleList(Frozen(width) for _ in range(4))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        acts = (F.relu, F.softplus, F.mish, F.hardswish)
        for conv, norm, act in zip(self.convs, self.norms, acts):
            x = F.dropout(act(norm(conv(x))), 0.2, self.training)
        x = F.avg_pool2d(F.max_pool2d(x, 2), 2).mean((2, 3))
        return F.cross_entropy(self.head(x), classes)


class Volume(nn.Module):
    """A 3-D U-Net with InstanceNorm and LeakyReLU in place."""

    def __init__(self, width: int = 8):
        super().__init__()

        def block(inner: int, outer: int) -> nn.Module:
            norm = nn.InstanceNorm3d(outer, affine=True)
            return nn.Sequential(
                nn.Conv3d(inner, outer, 3, padding=1), norm, nn.LeakyReLU(0.01, inplace=True)
            )

        self.down1, self.down2 = block(1, width), block(width, 2 * width)
        self.widen = nn.ConvTranspose3d(2 * width, width, 2, stride=2)
        self.up, self.head = block(2 * width, width), nn.Conv3d(width, 3, 1)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        first = self.down1(x)
        y = self.widen(self.down2(F.max_pool3d(first, 2)))
        return F.cross_entropy(self.head(self.up(torch.cat([y, first], 1))), classes)


class Language(nn.Module):
    """A model of transformers, with its own loss."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=ids, labels=labels, use_cache=False).loss


class Masked(Language):
    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=ids, labels=labels).loss


def _ids(count: int, length: int, words: int = 500) -> Batch:
    return torch.randint(3, words, (count, length)), torch.randint(3, words, (count, length))


def _resnet() -> tuple[nn.Module, Batch]:
    return Classified(small.ResNet()), (torch.randn(4, 3, 96, 96), torch.randint(0, 10, (4,)))


def _diffusion() -> tuple[nn.Module, Batch]:
    return Diffusion(), (torch.randn(4, 3, 32, 32), torch.randn(4, 64), torch.randn(4, 3, 32, 32))


def _efficientnet() -> tuple[nn.Module, Batch]:
    blocks = [nn.Conv2d(3, 24, 3, 2, 1), *(Inverted(24) for _ in range(3))]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(24, 10)]
    data = torch.randn(4, 3, 96, 96)
    return Classified(nn.Sequential(*blocks, *head)), (data, torch.randint(0, 10, (4,)))


def _pooled() -> tuple[nn.Module, Batch]:
    return Pooled(), (torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,)))


def _volume() -> tuple[nn.Module, Batch]:
    return Volume(), (torch.randn(1, 1, 32, 32, 32), torch.randint(0, 3, (1, 32, 32, 32)))


def _vit() -> tuple[nn.Module, Batch]:
    model = small.Vit(2, 128, 4, 96, 8)
    return Classified(model), (torch.randn(4, 3, 96, 96), torch.randint(0, 10, (4,)))


def _by_hand() -> tuple[nn.Module, Batch]:
    ids = torch.randint(0, 500, (4, 128))
    return Classified(small.Bert(2, 128, 4, 500, 128)), (ids, torch.randint(0, 2, (4, 128)))


def _bert() -> tuple[nn.Module, Batch]:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=4000, hidden_size=128, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=512, max_position_embeddings=128,
    )  # fmt: skip
    return Masked(BertForMaskedLM(config)), _ids(4, 128)


def _gpt2() -> tuple[nn.Module, Batch]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=4000, n_positions=128, n_embd=128, n_layer=4, n_head=4)
    return Language(GPT2LMHeadModel(config)), _ids(4, 128)


def _llama() -> tuple[nn.Module, Batch]:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=2000, hidden_size=128, intermediate_size=344, num_hidden_layers=4,
        num_attention_heads=8, num_key_value_heads=2, max_position_embeddings=128,
    )  # fmt: skip
    return Language(LlamaForCausalLM(config)), _ids(4, 128)


def _t5() -> tuple[nn.Module, Batch]:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=2000, d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4,
        decoder_start_token_id=0,
    )  # fmt: skip
    return Language(T5ForConditionalGeneration(config)), _ids(4, 128)


NETWORKS: dict[str, tuple[Network, str]] = {
    "resnet": (_resnet, "BatchNorm, ReLU"),
    "diffusion": (_diffusion, "GroupNorm, SiLU, attention"),
    "efficientnet": (_efficientnet, "SiLU in place, squeeze-and-excitation"),
    "pooled": (_pooled, "fixed BatchNorm, Softplus, Mish, dropout"),
    "volume": (_volume, "3-D, InstanceNorm, LeakyReLU in place"),
    "vit": (_vit, "attention of PyTorch"),
    "by-hand": (_by_hand, "BERT, attention by hand, dropout"),
    "bert": (_bert, "transformers, attention of PyTorch with dropout"),
    "gpt2": (_gpt2, "transformers, tied weights"),
    "llama": (_llama, "transformers, GQA, SwiGLU, RMSNorm"),
    "t5": (_t5, "transformers, attention by hand with a bias"),
}


def measure(model: nn.Module, batch: Batch) -> tuple[int, int]:
    """Returns the peak bytes and the saved bytes of one eager step."""
    constants = {private.storage_key(t) for t in [*model.parameters(), *model.buffers()]}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        if private.storage_key(tensor) not in constants:
            saved[private.storage_key(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(*batch).backward()
    model.zero_grad(set_to_none=True)
    tracker = Tracker()
    inputs = [*model.parameters(), *model.buffers(), *batch]
    tracker.run(lambda _: model(*batch).backward(), inputs)
    tracker.leave_out([p.grad for p in model.parameters() if p.grad is not None])
    return tracker.peak_bytes(), sum(saved.values())


def export(model: nn.Module, batch: Batch, path: Path, optimize: bool) -> None:
    logging.disable(logging.WARNING)
    program = torch.onnx.export(model, batch, dynamo=True, optimize=optimize, verbose=False)
    program.save(str(path))


def inspect(path: Path, flags: list[str]) -> dict[str, Any]:
    """Returns what ``ckplan inspect`` says of the model."""
    program = os.environ.get("CKPLAN_PROGRAM") or shutil.which("ckplan") or "ckplan"
    command = [program, "inspect", str(path), "--format", "json", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def rows(names: list[str]) -> Iterator[tuple[str, nn.Module, Batch]]:
    """Yields the networks whose names are asked for, made from one seed."""
    for name, (make, _) in NETWORKS.items():
        if names and name not in names:
            continue
        needs_transformers = make in (_bert, _gpt2, _llama, _t5)
        if needs_transformers and importlib.util.find_spec("transformers") is None:
            print(f"{name}: transformers is not installed", file=sys.stderr)
            continue
        torch.manual_seed(1)
        model, batch = make()
        yield name, model.train(), batch


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(NETWORKS))
    parser.add_argument("--flags", action="append", help="flags of ckplan inspect, for two columns")
    parser.add_argument("--optimize", action="store_true", help="let the exporter optimize")
    parser.add_argument("--keep", type=Path, help="folder for models and figures, read if there")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    sets = asked.flags or [""]
    heads = ["network", "peak, MB", "saved, MB"]
    heads += [f"{word}{flags or ' default'}" for flags in sets for word in ("peak", "saved")]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads), flush=True)
    with tempfile.TemporaryDirectory() as made:
        folder = asked.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        for name, model, batch in rows(asked.names):
            print(_row(name, model, batch, folder, asked.optimize, sets), flush=True)


def _row(
    name: str, model: nn.Module, batch: Batch, folder: Path, optimize: bool, sets: list[str]
) -> str:
    path = folder / f"{name}{'.optimized' if optimize else ''}.onnx"
    figures = folder / f"{name}.json"
    if not figures.exists():
        figures.write_text(json.dumps(measure(model, batch)))
    peak, saved = json.loads(figures.read_text())
    if not path.exists():
        export(model, batch, path, optimize)
    cells = [name, f"{peak / 1e6:.2f}", f"{saved / 1e6:.2f}"]
    for flags in sets:
        try:
            found = inspect(path, shlex.split(flags))
            cells.append(f"{found['keep_all_peak_bytes'] / peak:.3f}")
            cells.append(f"{found['saved_for_backward_bytes'] / saved:.3f}")
        except RuntimeError as refusal:
            print(f"{name}: {refusal}", file=sys.stderr)
            cells += ["refused", "refused"]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
