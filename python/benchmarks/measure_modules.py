#!/usr/bin/env python3
"""Measures with PyTorch what `ckplan modules` simulates: the peak of a step of ResNet18 on the CPU.

  ckplan plan testdata/models/resnet18.modules.onnx -D N=2 --autograd torch --algo exact-dp --budget 60% -q -o plan.json
  ckplan modules plan.json testdata/models/resnet18.modules.onnx --format json >modules.json
  python/benchmarks/measure_modules.py modules.json 2

Prints the measured and the simulated peak, of keeping all and with the modules wrapped. Needs torch
and torchvision. Parameters, their gradients, buffers and the input are not counted; the model's
output and its gradient, which this program holds, are.
"""

import argparse
import functools
import json

import torch
import torchvision
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from torch.utils.checkpoint import checkpoint


class StorageTracker(TorchDispatchMode):
    """Records after each operation which storages live, without those that existed before."""

    def __init__(self, constants):
        super().__init__()
        self.constants = {tensor.untyped_storage()._cdata for tensor in constants}
        self.live = {}  # By address: a weak reference, bytes, and a unique number.
        self.moments = []  # For each operation: bytes by number.

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self._drop_dead()
        out = func(*args, **(kwargs or {}))
        for tensor in tree_flatten(out)[0]:
            if isinstance(tensor, torch.Tensor):
                self._add(tensor.untyped_storage())
        self._drop_dead()
        self.moments.append({number: size for _, size, number in self.live.values()})
        return out

    def _add(self, storage):
        if storage._cdata not in self.constants and storage._cdata not in self.live:
            number = len(self.moments), len(self.live), storage._cdata
            self.live[storage._cdata] = StorageWeakRef(storage), storage.nbytes(), number

    def _drop_dead(self):
        self.live = {key: row for key, row in self.live.items() if not row[0].expired()}

    def peak(self, uncounted):
        """Returns the most bytes alive at once, without the storages of the given live tensors."""
        numbers = {self.live[tensor.untyped_storage()._cdata][2] for tensor in uncounted}
        return max(
            sum(size for number, size in moment.items() if number not in numbers)
            for moment in self.moments
        )


def measured_peak(model, x):
    model.zero_grad(set_to_none=True)
    tracker = StorageTracker([*model.parameters(), *model.buffers(), x])
    with tracker:
        y = model(x)
        y.backward(torch.ones_like(y))
    return tracker.peak([parameter.grad for parameter in model.parameters()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", help="output of `ckplan modules --format json`")
    parser.add_argument("batch", type=int, help="the N of the plan")
    arguments = parser.parse_args()
    with open(arguments.modules, encoding="utf-8") as file:
        found = json.load(file)
    model = torchvision.models.resnet18().train()
    for module in model.modules():
        if isinstance(module, torch.nn.ReLU):
            module.inplace = False  # The exported model is not in-place either.
    x = torch.randn(arguments.batch, 3, 224, 224)
    print("keep all", measured_peak(model, x), "simulated", found["keep_all"]["peak_bytes"])
    for row in found["modules"]:
        module = model.get_submodule(row["path"])
        module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False)
    print("wrapped ", measured_peak(model, x), "simulated", found["wrapped"]["peak_bytes"])


if __name__ == "__main__":
    main()
