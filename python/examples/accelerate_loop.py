"""Trains by Accelerate, within 60 % of the memory, and saves the state of the training.

    python python/examples/accelerate_loop.py FOLDER
"""

import sys

import torch
from accelerate import Accelerator
from torch import nn

import ckplan.torch

torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.1)) for _ in range(6)]
model = nn.Sequential(*layers, nn.Linear(32, 4))
rows = torch.utils.data.TensorDataset(torch.randn(64, 32), torch.randint(4, (64,)))
loader = torch.utils.data.DataLoader(rows, batch_size=16)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

planner = ckplan.torch.Backend(budget="60%")
accelerator = Accelerator()
model.compile(backend=planner, dynamic=False)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for features, labels in loader:
    loss = nn.functional.cross_entropy(model(features), labels)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
accelerator.save_state(sys.argv[1])
print(planner.summary())
