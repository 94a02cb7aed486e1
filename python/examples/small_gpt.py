"""Trains a small GPT on the bytes of a file, within 40 % of the memory of keeping everything."""

import sys
from pathlib import Path

import ckplan.torch
import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
text = torch.tensor(list(Path(sys.argv[1]).read_bytes()))
layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.1, batch_first=True, norm_first=True)
model = nn.Sequential(
    nn.Embedding(256, 128),
    nn.TransformerEncoder(layer, 6, enable_nested_tensor=False),
    nn.Linear(128, 256),
)
mask = nn.Transformer.generate_square_subsequent_mask(128)


def loss_of(tokens: torch.Tensor) -> torch.Tensor:
    """Returns the loss of predicting each byte from the bytes before it."""
    logits = model[2](model[1](model[0](tokens[:, :-1]), mask=mask, is_causal=True))
    return cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


planned = ckplan.torch.compile(loss_of, budget="40%")
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for step in range(100):
    starts = torch.randint(len(text) - 129, (8, 1))
    loss = planned(text[starts + torch.arange(129)])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 20 == 0 or step == 99:
        print(f"step {step:3}  loss {loss.item():.3f}")
print(planned.ckplan.summary())
