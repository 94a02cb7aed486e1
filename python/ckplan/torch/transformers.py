"""A ``transformers.Trainer`` callback that trains with a plan. See docs/pytorch.md."""

from __future__ import annotations

import logging
from typing import Any

from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ckplan.torch.api import Backend
from ckplan.torch.report import Figures
from ckplan.torch.trainers import TrainerCompiler

__all__ = ["PlanCallback"]

_logger = logging.getLogger(__name__)


class PlanCallback(TrainerCallback):
    """Compiles the Trainer's model in place, and logs its plan and the measured memory.

        planner = ckplan.torch.Backend(budget="60%")
        trainer = Trainer(model, args, train_dataset=data, callbacks=[PlanCallback(planner)])

    ``state.log_history``, which is part of checkpoints, gets a row of figures (``Report.figures``)
    after the first step, and whenever they change. The Trainer's next log line has them too.
    """

    def __init__(self, planner: Backend):
        self.planner = planner
        self._watch = TrainerCompiler(planner)
        self._unprinted: Figures = {}

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: nn.Module | None = None,
        **kwargs: Any,
    ) -> None:
        assert model is not None
        self._watch.begin([model])

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        figures = self._watch.changed_figures()
        if not figures:
            return
        state.log_history.append({**figures, "epoch": state.epoch, "step": state.global_step})
        self._unprinted = figures
        _logger.info("%s", self.planner.summary())

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if logs is not None:
            logs.update(self._unprinted)
            self._unprinted = {}
