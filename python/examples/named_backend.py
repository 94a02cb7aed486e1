"""Trains by a plan under the name of a backend, for code that takes one: the package is installed.

    python python/examples/named_backend.py
"""

import torch
from torch import nn

import ckplan.torch

model = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(8)))
planned = torch.compile(model, backend="ckplan", options={"budget": "60%"}, dynamic=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    planned(torch.randn(64, 256)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(ckplan.torch.backends()[0].summary())
