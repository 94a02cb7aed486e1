"""The memory of one of several devices under data parallelism.

``fsdp:N`` is PyTorch's ``fully_shard`` with its defaults: parameters, gradients and the optimizer's
state are divided along their first dimension (docs/parallelism.md). Each item of the model's
outermost lists of modules (``nn.ModuleList``, or ``nn.Sequential`` if there is none) is a unit, and
the rest of the model is another unit. ``ddp:N`` is ``DistributedDataParallel``, where every device
holds everything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ckplan.torch.estimation.devices import Range

_FSDP = "defaults of torch/distributed/fsdp/_fully_shard"
_DDP = "torch/nn/parallel/distributed.py, gradient_as_bucket_view=False"


@dataclass(frozen=True)
class Shard:
    """The kind of data parallelism, ``fsdp`` or ``ddp``, and the number of devices."""

    system: str
    devices: int

    @staticmethod
    def named(text: str | None) -> Shard | None:
        """Parses a value such as ``"fsdp:8"``. Raises ValueError."""
        if text is None:
            return None
        system, _, count = str(text).partition(":")
        if system not in ("fsdp", "ddp") or not count.isdigit() or int(count) < 1:
            raise ValueError(f'shard must be "fsdp:N" or "ddp:N" for N devices, not {text!r}')
        return Shard(system, int(count))

    def part(self, tensor: Tensor) -> torch.Size:
        """Returns the shape of the first device's part of a parameter, which is the largest."""
        if self.system != "fsdp" or not tensor.ndim:
            return tensor.shape
        return torch.Size((-(-tensor.shape[0] // self.devices), *tensor.shape[1:]))

    def at_a_time(self, model: nn.Module, compute: torch.dtype | None) -> dict[str, Range]:
        """Returns the bytes that are temporarily whole, or copied, besides the shards, by name."""
        trained = [p for p in model.parameters() if p.requires_grad]
        if self.system == "ddp":
            size = sum(_bytes(p, None) for p in trained)
            return {"DDP's buckets": Range(size, size, size, _DDP)}
        root, units = _units(model)
        gathered = [self._padded(unit, compute) for unit in units]
        whole = self._padded(root, compute)
        grads = [self._padded([p for p in unit if p.requires_grad], compute) for unit in units]
        grads.append(self._padded([p for p in root if p.requires_grad], compute))
        most_unit, most_gradient = max(gathered, default=0), max(grads, default=0)
        # While one unit computes, the next one is gathered, and a copy of the previous unit's
        # gradients is being reduced (reduce_scatter_max_input_buffers is 1).
        pair = max((a + b for a, b in zip(gathered, gathered[1:])), default=most_unit)
        return {
            "parameters gathered": Range(
                whole + pair, whole + most_unit, whole + 2 * most_unit, _FSDP
            ),
            "gradients of units": Range(2 * most_gradient, most_gradient, 2 * most_gradient, _FSDP),
        }

    def _padded(self, parameters: list[nn.Parameter], compute: torch.dtype | None) -> int:
        total = 0
        for parameter in parameters:
            element = compute.itemsize if compute is not None else parameter.element_size()
            total += self.devices * math.prod(self.part(parameter)) * element
        return total


def _units(model: nn.Module) -> tuple[list[nn.Parameter], list[list[nn.Parameter]]]:
    """Returns the parameters outside of all units, and those of each unit."""
    lists = list(_outermost_lists(model, nn.ModuleList))
    lists = lists or list(_outermost_lists(model, nn.Sequential))
    items = [item for found in lists for item in found.children()]
    units = [list(item.parameters()) for item in items]
    of_units = {id(parameter) for unit in units for parameter in unit}
    root = [parameter for parameter in model.parameters() if id(parameter) not in of_units]
    return root, [unit for unit in units if unit]


def _outermost_lists(module: nn.Module, kind: type[nn.Module]) -> Iterator[nn.Module]:
    for child in module.children():
        if isinstance(child, kind):
            yield child
        else:
            yield from _outermost_lists(child, kind)


def _bytes(parameter: Tensor, compute: torch.dtype | None) -> int:
    element = compute.itemsize if compute is not None else parameter.element_size()
    return parameter.numel() * element
