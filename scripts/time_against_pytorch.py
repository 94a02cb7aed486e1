#!/usr/bin/env python3
"""Times a training step of ResNet-50 (224 x 224, keeping everything) by ckexec and by PyTorch.

  scripts/time_against_pytorch.py CKEXEC [--batch N] [--threads N] [--rounds N]

The programs take turns, so that a machine that slows down slows both. Prints the median seconds of
a step, forward and backward without the update of the weights, and their ratio. Exits with 77 where
PyTorch is not installed.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

try:
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MODEL = "testdata/models/resnet50.onnx"
STEPS = 3  # Steps in each turn; the first one warms up.


class Unit(nn.Module):
    """A bottleneck unit; the 3 x 3 convolution halves the resolution."""

    def __init__(self, inner, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity()
        if inner != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, 4 * width, 1, stride, bias=False),
                                          nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
              nn.MaxPool2d(3, 2, 1)]
    inner = 64
    for width, units in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for unit in range(units):
            layers.append(Unit(inner, width, 2 if unit == 0 and width > 64 else 1))
            inner = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 1000))


def seconds_of_pytorch(network, batch, gradient):
    times = []
    for _ in range(STEPS):
        network.zero_grad(set_to_none=True)
        began = time.perf_counter()
        network(batch).backward(gradient)
        times.append(time.perf_counter() - began)
    return times[1:]


def seconds_of_ckexec(ckexec, batch, threads):
    done = subprocess.run(
        [ckexec, "run", MODEL, "-D", f"N={batch}", "--threads", str(threads), "--steps", str(STEPS),
         "--loss", "given", "--learning-rate", "0", "--format", "json"],
        check=True, capture_output=True, text=True)
    return [step["seconds"] for step in json.loads(done.stdout)["steps"]][1:]


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("ckexec")
    options.add_argument("--batch", type=int, default=8)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    network = resnet50().train()
    batch = torch.randn(given.batch, 3, 224, 224)
    gradient = torch.randn(given.batch, 1000) / 100
    ours, theirs = [], []
    for _ in range(given.rounds):
        ours += seconds_of_ckexec(given.ckexec, given.batch, given.threads)
        theirs += seconds_of_pytorch(network, batch, gradient)
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    print(f"ResNet-50, batch {given.batch}, {given.threads} threads: ckexec {ours:.2f} s, "
          f"PyTorch {torch.__version__} {theirs:.2f} s, ratio {ours / theirs:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
