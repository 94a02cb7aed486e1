#!/usr/bin/env python3
"""Times a training step of ResNet-50 (224 x 224, keeping everything) by ckexec and by PyTorch.

  python/benchmarks/time_against_pytorch.py CKEXEC [--batch N] [--threads N] [--rounds N]

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
    from gpu_campaign.networks import resnet50
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MODEL = "testdata/models/resnet50.onnx"
STEPS = 3  # Steps in each turn; the first one warms up.


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
