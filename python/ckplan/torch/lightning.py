"""Lightning callbacks that train with a plan. See docs/pytorch.md."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torchmetrics
from torch import nn

from ckplan.torch.api import Backend
from ckplan.torch.costs import known_as
from ckplan.torch.errors import EstimateError
from ckplan.torch.estimation.answer import Estimate
from ckplan.torch.estimation.estimating import estimate
from ckplan.torch.estimation.optimizers import Make
from ckplan.torch.estimation.sizes import check_added
from ckplan.torch.trainers import TrainerCompiler

try:
    import lightning.pytorch as lightning
    from lightning.pytorch import callbacks
    from lightning.pytorch.utilities import rank_zero_info
    from lightning.pytorch.utilities.parsing import lightning_setattr
except ImportError:  # The same library under its old name.
    import pytorch_lightning as lightning  # type: ignore[no-redef]
    from pytorch_lightning import callbacks  # type: ignore[no-redef]
    from pytorch_lightning.utilities import rank_zero_info
    from pytorch_lightning.utilities.parsing import lightning_setattr  # type: ignore[assignment]

__all__ = ["BatchSizeFinder", "PlanCallback"]

_PRECISIONS = {
    "32-true": "fp32",
    "bf16-true": "bf16",
    "16-true": "fp16",
    "bf16-mixed": "bf16-mixed",
    "16-mixed": "fp16-mixed",
}


class PlanCallback(callbacks.Callback):
    """Compiles a LightningModule in place, and logs its plan and the measured memory.

        planner = ckplan.torch.Backend(budget="60%")
        trainer = Trainer(callbacks=[PlanCallback(planner)])

    It compiles whatever ``training_step`` calls: the LightningModule itself, for ``self(batch)``,
    or submodules with parameters. Loggers get the figures (``Report.figures``) after the first
    step, and whenever they change.
    """

    def __init__(self, planner: Backend):
        self.planner = planner
        self._watch = TrainerCompiler(planner)

    def on_fit_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self._watch.begin(_called_modules(pl_module))

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        figures = self._watch.changed_figures()
        if not figures:
            return
        for logger in trainer.loggers:
            logger.log_metrics(dict(figures), step=trainer.global_step - 1)  # As its own are.
        rank_zero_info(self.planner.summary())


def _called_modules(module: lightning.LightningModule) -> Iterator[nn.Module]:
    """Yields the modules that a training step may call."""
    if type(module).forward is not lightning.LightningModule.forward:
        yield module
    for child in module.children():
        if any(parameter.requires_grad for parameter in child.parameters()):
            yield child


class BatchSizeFinder(callbacks.BatchSizeFinder):
    """Sets the largest batch size that fits, by an estimate instead of by trials.

    It replaces Lightning's ``BatchSizeFinder``, which trains with larger and larger batches until
    memory runs out. Here no batch runs: ``ckplan.torch.estimate`` captures ``training_step`` on
    fake tensors and computes its memory at other sizes. It sets ``batch_size`` of the model or the
    DataModule before training, and keeps the estimate in ``estimate``.

    device: one of ``ckplan devices``; by default the GPU that the trainer uses.
    added_time: allow plans that slow a step by at most this many percent. By default everything
        is kept, as without a plan.
    memory: the device memory that programs can use, in bytes or as ``"20GiB"``.
    optimizer: as for ``estimate``; by default the one that ``configure_optimizers`` returns.
    batch_arg_name, max_val: as Lightning's.
    """

    def __init__(
        self,
        device: str | None = None,
        *,
        added_time: int | None = None,
        memory: int | str | None = None,
        optimizer: str | Make | None = None,
        batch_arg_name: str = "batch_size",
        max_val: int = 8192,
    ):
        self._added_times = check_added({None, added_time})
        super().__init__(batch_arg_name=batch_arg_name, max_val=max_val)
        self.estimate: Estimate | None = None
        self._device = device
        self._memory = memory
        self._optimizer = optimizer

    def scale_batch_size(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        module: Any = trainer  # Its annotations lack the attribute datamodule.
        source = pl_module if module.datamodule is None else module.datamodule
        loader = source.train_dataloader()
        batch = next(iter(loader))
        self.estimate = estimate(
            lambda: _Step(_fake(pl_module)),
            (batch,),
            device=self._device or _device_of(trainer),
            optimizer=self._optimizer or _optimizer_of(trainer),
            precision=_precision_of(trainer),
            memory=self._memory,
            largest="batch",
            added_times=self._added_times,
        )
        largest = _largest_batch(self.estimate)
        size = min(largest, self._max_val, _num_examples(loader))
        lightning_setattr(pl_module, self._batch_arg_name, size)
        self.optimal_batch_size = size
        rank_zero_info(f"ckplan: a batch of {largest} fits; {self._batch_arg_name} is {size}")

    def on_validation_start(self, *_: Any) -> None:
        """Does nothing: the estimate is of training."""

    def on_test_start(self, *_: Any) -> None:
        """Does nothing: the estimate is of training."""

    def on_predict_start(self, *_: Any) -> None:
        """Does nothing: the estimate is of training."""


class _Step(nn.Module):
    """The training step of a LightningModule, as a model that returns its loss."""

    def __init__(self, module: lightning.LightningModule):
        super().__init__()
        self.module = module
        known = inspect.signature(module.training_step).parameters
        self._takes_index = "batch_idx" in known or len(known) > 1

    def forward(self, batch: Any) -> Any:
        if self._takes_index:
            return self.module.training_step(batch, 0)
        return self.module.training_step(batch)


class _NoMetric(nn.Module):
    """Replaces a metric, which has no gradient."""

    def forward(self, *args: Any, **kwargs: Any) -> None:
        return None

    update = compute = reset = forward


def _fake(module: lightning.LightningModule) -> lightning.LightningModule:
    """Returns a copy with fake tensors that logs nothing. Call it in a fake mode."""
    made: dict[int, Any] = {}
    for parameter in module.parameters():
        new = torch.empty(parameter.shape, dtype=parameter.dtype, device="cpu")
        made[id(parameter)] = nn.Parameter(new, parameter.requires_grad)
    for buffer in module.buffers():
        made[id(buffer)] = torch.empty(buffer.shape, dtype=buffer.dtype, device="cpu")
    for inner in module.modules():
        if isinstance(inner, torchmetrics.Metric):
            made[id(inner)] = _NoMetric()
    copied = copy.deepcopy(module, made)
    for name in ("log", "log_dict"):
        setattr(copied, name, _log_nothing)
    return copied


def _log_nothing(*_: Any, **__: Any) -> None:
    """Replaces logging methods."""


def _largest_batch(found: Estimate) -> int:
    """Returns the largest batch that fits. Raises EstimateError.

    Skips rows of sizes that turned out to need more memory than predicted.
    """
    sizes = [
        row.value
        for row in found.largest
        if row.value is not None
        and row.need_bytes is not None
        and row.need_bytes <= found.memory_bytes
    ]
    if not sizes:
        raise EstimateError(f"no batch fits, not even 1:\n{found}")
    return max(sizes)


def _device_of(trainer: lightning.Trainer) -> str:
    device = trainer.strategy.root_device
    if device.type != "cuda":
        raise ValueError(
            f"BatchSizeFinder: the trainer uses {device}; pass a device of `ckplan devices`, such as "
            'device="a100-40g"'
        )
    properties = torch.cuda.get_device_properties(device)
    return known_as(properties.name, properties.total_memory).name


def _optimizer_of(trainer: lightning.Trainer) -> Make:
    """Returns a function that creates an optimizer like the trainer's own."""
    optimizers = trainer.optimizers
    if len(optimizers) != 1:
        raise ValueError(
            f"BatchSizeFinder: the model has {len(optimizers)} optimizers; pass one as optimizer="
        )
    kind: Any = type(optimizers[0])
    known = inspect.signature(kind).parameters
    settings = {name: value for name, value in optimizers[0].defaults.items() if name in known}
    return lambda parameters: kind(parameters, **settings)


def _precision_of(trainer: lightning.Trainer) -> str:
    if trainer.precision not in _PRECISIONS:
        known = ", ".join(_PRECISIONS)
        raise ValueError(
            f"BatchSizeFinder supports the precisions {known}, not {trainer.precision}"
        )
    return _PRECISIONS[trainer.precision]


def _num_examples(loader: Any) -> int:
    """Returns the number of examples, the largest possible batch, if known."""
    try:
        return max(1, len(loader.dataset))
    except (AttributeError, TypeError):
        return sys.maxsize
