#!/usr/bin/env python3
"""Times a training step in PyTorch, and measures its peak, with the settings of ckexec.

  pytorch_side.py --network resnet50 --batch 256 --precision fp32|default|bf16
                  --way eager|checkpoint|knob|ckplan [--steps N] [--rehearse]

eager       as it comes
checkpoint  torch.utils.checkpoint around each unit or layer
knob        torch.compile with half of the activations: activation_memory_budget
ckplan      ckplan.torch.compile within 60 % of the peak of keeping everything

A step is forward and backward from a given gradient of the output, without a loss and without an
update of the weights. Algorithms are deterministic ones, as ckexec's are. `default` leaves TF32 as
PyTorch has it: on for convolutions, off for products. In bf16, images have their channels last, as
in ckexec. Prints one line of JSON. Exits with 77 where there is no PyTorch or no GPU, and with 4
where the memory does not suffice.
"""

import argparse
import hashlib
import json
import os
import statistics
import sys
import time

try:
    import torch
    from torch import nn
    from torch.utils import checkpoint
except ImportError as error:
    print(f"this python3 has no PyTorch: {error}; name another one with --python", file=sys.stderr)
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from gpu_campaign.networks import NETWORKS, SMALL, Layer, Unit  # noqa: E402

NO_GPU, NO_MEMORY = 77, 4


class Checkpointed(nn.Module):
    """Runs the module again in the backward pass, instead of keeping what is inside it."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return checkpoint.checkpoint(self.module, x, use_reentrant=False)


def checkpoint_units(network):
    for name, child in network.named_children():
        if isinstance(child, (Unit, Layer)):
            setattr(network, name, Checkpointed(child))
        else:
            checkpoint_units(child)
    return network


def set_precision(precision):
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision in ("default", "tf32")


def prepared(network, way):
    if way == "checkpoint":
        return checkpoint_units(network)
    if way == "knob":
        import torch._functorch.config
        torch._functorch.config.activation_memory_budget = 0.5
        return torch.compile(network)
    if way == "ckplan":
        import ckplan.torch
        return ckplan.torch.compile(network, budget="60%")
    return network


def digest_of(network):
    """Returns a hash of all gradients' bits, to compare two ways."""
    found = hashlib.sha256()
    for parameter in network.parameters():
        if parameter.grad is not None:
            found.update(parameter.grad.detach().contiguous().view(torch.uint8).cpu().numpy())
    return found.hexdigest()


class Step:
    def __init__(self, given, device):
        make, sample = (SMALL if given.rehearse else NETWORKS)[given.network]
        torch.manual_seed(0)
        self.device = device
        self.is_half = given.precision == "bf16"
        with torch.device(device):
            network = make().train()
            self.batch = sample(given.batch)
            if given.rehearse:
                network(self.batch)  # Gives lazy modules their sizes.
        if self.is_half and self.batch.dim() == 4:
            network = network.to(memory_format=torch.channels_last)
            self.batch = self.batch.contiguous(memory_format=torch.channels_last)
        self.network = prepared(network, given.way)
        self.gradient = None

    def forward(self):
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.is_half):
            return self.network(self.batch)

    def run(self):
        torch.manual_seed(2)  # The same dropout masks for every way.
        self.network.zero_grad(set_to_none=True)
        output = self.forward()
        if self.gradient is None:
            torch.manual_seed(1)
            self.gradient = torch.randn_like(output) / output.numel() ** 0.5
        output.backward(self.gradient)


def seconds_on_gpu(step):
    """Returns the seconds of one step between two CUDA events, as ckexec measures it."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    step.run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000


def seconds_on_cpu(step):
    began = time.perf_counter()
    step.run()
    return time.perf_counter() - began


def measure(given, device):
    step = Step(given, device)
    seconds_of = seconds_on_gpu if device == "cuda" else seconds_on_cpu
    for _ in range(2):
        seconds_of(step)
    digest = digest_of(step.network)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    seconds = [seconds_of(step) for _ in range(given.steps)]
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    reserved = torch.cuda.max_memory_reserved() if device == "cuda" else 0
    gradient = step.gradient.numel() * step.gradient.element_size()
    report = getattr(step.network, "ckplan", None)
    return {**(report.figures() if report else {}), "gradients_sha256": digest,
            "gradients_repeat": digest_of(step.network) == digest,
            "torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(), "seconds": statistics.median(seconds),
            "all_seconds": seconds, "peak_bytes": peak, "reserved_bytes": reserved,
            "output_gradient_bytes": gradient}


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--network", choices=list(NETWORKS), required=True)
    options.add_argument("--batch", type=int, required=True)
    options.add_argument("--precision", choices=["fp32", "default", "tf32", "bf16"], required=True)
    options.add_argument("--way", choices=["eager", "checkpoint", "knob", "ckplan"], required=True)
    options.add_argument("--steps", type=int, default=5)
    options.add_argument("--rehearse", action="store_true")
    given = options.parse_args()
    if not given.rehearse and not torch.cuda.is_available():
        print("this PyTorch shows no GPU", file=sys.stderr)
        return NO_GPU
    set_precision(given.precision)
    try:
        result = measure(given, "cpu" if given.rehearse else "cuda")
    except torch.cuda.OutOfMemoryError as error:
        print(f"the GPU has too little memory: {error}", file=sys.stderr)
        return NO_MEMORY
    print(json.dumps(result, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
