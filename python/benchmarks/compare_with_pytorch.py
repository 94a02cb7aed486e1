#!/usr/bin/env python3
"""Compares ckexec's training step with PyTorch's, for small networks of each kind.

  python/benchmarks/compare_with_pytorch.py CKEXEC

Exports each network to ONNX, runs one step of it with `ckexec run --tensors`, runs PyTorch on the
same batch from the same weights and output gradients, and compares outputs and the gradients of all
parameters. Exits with 77, which skips the test, if PyTorch or onnx is not installed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings

SKIPPED = 77
TOLERANCE = 1e-4  # Relative to each tensor's largest element: float32 sums in another order.

try:
    import onnx
    import onnx.numpy_helper
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(SKIPPED)


class Convolutional(nn.Module):
    """Convolutions of all kinds, batch normalisation, pools, and a residual connection."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.grouped = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=4)
        self.depthwise = nn.Conv2d(8, 8, 5, padding=2, groups=8)
        self.pointwise = nn.Conv2d(8, 12, 1)
        self.head = nn.Linear(12, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x)))
        x = nn.functional.max_pool2d(x, 3, stride=2, padding=1)
        x = x + nn.functional.leaky_relu(self.grouped(x), 0.1)
        x = nn.functional.hardswish(self.depthwise(x))
        x = nn.functional.avg_pool2d(nn.functional.silu(self.pointwise(x)), 2)
        return self.head(x.mean((2, 3)))


class Segmenting(nn.Module):
    """Transposed convolution, resizing, concatenation, and group and instance normalisation."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.group = nn.GroupNorm(2, 6)
        self.up = nn.ConvTranspose2d(6, 4, 4, stride=2, padding=1, bias=False)
        self.instance = nn.InstanceNorm2d(4, affine=True)
        self.out = nn.Conv2d(7, 5, 3, padding=1)

    def forward(self, x):
        low = nn.functional.elu(self.group(self.down(x)))
        high = self.instance(self.up(low))
        wide = nn.functional.interpolate(high, scale_factor=2, mode="bilinear", align_corners=False)
        both = torch.cat([nn.functional.max_pool2d(wide, 2), x], 1)
        return self.out(nn.functional.pad(both, (1, 0, 0, 1)))


class Transforming(nn.Module):
    """Embeddings, layer normalisation, attention, and a weight that is used twice."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 16)
        self.places = nn.Parameter(torch.randn(7, 16))
        self.norm = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.wide = nn.Linear(16, 32)
        self.narrow = nn.Linear(32, 16)

    def forward(self, ids):
        x = self.words(ids) + self.places
        batch, length, width = x.shape
        heads = self.qkv(self.norm(x)).view(batch, length, 3, 4, 4).permute(2, 0, 3, 1, 4)
        q, k, v = heads[0], heads[1], heads[2]
        shares = torch.softmax(q @ k.transpose(-1, -2) * 0.5, -1)
        x = x + self.out((shares @ v).transpose(1, 2).reshape(batch, length, width))
        x = x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))
        return x @ self.words.weight.t()


class Recurrent(nn.Module):
    """An LSTM of two layers, and a GRU in both directions."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=2)
        self.gru = nn.GRU(8, 5, bidirectional=True)
        self.head = nn.Linear(10, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.gru(self.lstm(x)[0])[0]))


NETWORKS = [
    (Convolutional, lambda: torch.randn(2, 3, 32, 32)),
    (Segmenting, lambda: torch.randn(2, 3, 16, 16)),
    (Transforming, lambda: torch.randint(0, 11, (3, 7))),
    (Recurrent, lambda: torch.randn(9, 2, 6)),
]


def tensors_of(path):
    tensors = {}
    for initializer in onnx.load(path).graph.initializer:
        tensors[initializer.name] = torch.tensor(onnx.numpy_helper.to_array(initializer))
    return tensors


def distance(ours, theirs):
    """Returns the largest difference, relative to the largest element."""
    scale = max(theirs.abs().max().item(), 1e-6)
    return (ours - theirs).abs().max().item() / scale


def gradients_by_name(network, tensors):
    """Returns ckexec's gradients by the names of PyTorch's parameters, which the exporter keeps."""
    return {name: tensors[f"parameter_gradient/{name}"] for name, _ in network.named_parameters()}


def compare(ckexec, folder, make, sample):
    torch.manual_seed(0)
    network = make().train()
    model = os.path.join(folder, f"{make.__name__}.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (sample(),), model, dynamo=False, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING, opset_version=18,
                          input_names=["x"], output_names=["y"])
    saved = os.path.join(folder, f"{make.__name__}.tensors.onnx")
    subprocess.run([ckexec, "run", model, "--loss", "given", "--tensors", saved, "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    tensors = tensors_of(saved)
    output = network(tensors["input/x"])
    output.backward(tensors["output_gradient/y"])
    worst, where = distance(tensors["output/y"], output.detach()), "the output"
    gradients = gradients_by_name(network, tensors)
    for name, parameter in network.named_parameters():
        off = distance(gradients[name], parameter.grad)
        if off > worst:
            worst, where = off, name
    verdict = "ok  " if worst <= TOLERANCE else "FAIL"
    print(f"{verdict} {make.__name__:14} {len(gradients)} parameters, "
          f"largest difference {worst:.1e} ({where})")
    return worst <= TOLERANCE


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("ckexec")
    ckexec = options.parse_args().ckexec
    with tempfile.TemporaryDirectory() as folder:
        passed = [compare(ckexec, folder, make, sample) for make, sample in NETWORKS]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
