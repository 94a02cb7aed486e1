"""Trains by Lightning, by a batch that fits the card and within 60 % of what that batch needs.

    python python/examples/lightning_trainer.py FOLDER
"""

import sys

import lightning.pytorch as lightning
import torch
from torch import nn

import ckplan.torch
from ckplan.torch.lightning import BatchSizeFinder, PlanCallback


class Classifier(lightning.LightningModule):
    """Classifies rows of 64 vectors, and makes them."""

    def __init__(self, batch_size: int):
        super().__init__()
        self.batch_size = batch_size
        layers = [nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(6)]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 256, 4))

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        features, labels = batch
        loss = nn.functional.cross_entropy(self.layers(features), labels)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), 1e-3)

    def train_dataloader(self) -> torch.utils.data.DataLoader:
        rows = torch.utils.data.TensorDataset(torch.randn(256, 64, 256), torch.randint(4, (256,)))
        return torch.utils.data.DataLoader(rows, batch_size=self.batch_size)


torch.manual_seed(0)
model = Classifier(batch_size=64)

finder = BatchSizeFinder("rtx4090", memory="580MiB")  # by default the current GPU and its memory
planner = ckplan.torch.Backend(budget="60%")
trainer = lightning.Trainer(
    max_steps=2, default_root_dir=sys.argv[1], callbacks=[finder, PlanCallback(planner)]
)
trainer.fit(model)
print(f"batch size {model.batch_size}")
print(planner.summary())
