"""Networks of the kinds that the tests train. Nothing is downloaded: weights are random."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TwoParts(nn.Module):
    """Two modules with a graph break between them, so two graphs are captured."""

    def __init__(self, first: nn.Module, second: nn.Module):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.second(x)


class Bottleneck(nn.Module):
    """The block of ResNet50."""

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        self.reduce = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        )
        middle = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.middle = nn.Sequential(middle, nn.BatchNorm2d(width))
        expand = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.expand = nn.Sequential(expand, nn.BatchNorm2d(4 * width))
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != 4 * width:
            project = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.shortcut = nn.Sequential(project, nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.reduce(x))
        y = F.relu(self.middle(y))
        return F.relu(self.expand(y) + self.shortcut(x))


class ResNet(nn.Module):
    """ResNet50 has the depths (3, 4, 6, 3) and the width 64."""

    def __init__(self, depths: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, classes: int = 10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks: list[nn.Module] = []
        channels = width
        for stage, depth in enumerate(depths):
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(Bottleneck(channels, width << stage, stride))
                channels = 4 * (width << stage)
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))


class Attention(nn.Module):
    """Self-attention: as products and a softmax, as in BERT, or as one operator."""

    def __init__(self, width: int, heads: int, dropout: float, fused: bool, causal: bool):
        super().__init__()
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.heads, self.fused, self.causal = heads, fused, causal

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.project(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind()
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
            mixed = self.dropout(scores.softmax(-1)) @ v
        return self.dropout(self.output(mixed.transpose(1, 2).reshape(batch, length, width)))


class Layer(nn.Module):
    """A layer of a transformer, with the norm before (GPT-2, ViT) or after each part (BERT)."""

    def __init__(
        self, width: int, heads: int, dropout: float, fused: bool, causal: bool, pre: bool
    ):
        super().__init__()
        self.attention = Attention(width, heads, dropout, fused, causal)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )
        self.pre = pre

    def forward(self, x: Tensor) -> Tensor:
        if self.pre:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class Bert(nn.Module):
    """An encoder with dropout and a classifier of each token."""

    def __init__(
        self,
        layers: int = 12,
        width: int = 768,
        heads: int = 12,
        words: int = 30522,
        length: int = 512,
    ):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)
        make = (
            Layer(width, heads, 0.1, fused=False, causal=False, pre=False) for _ in range(layers)
        )
        self.layers = nn.Sequential(*make)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.norm(self.words(tokens) + self.places(places)))
        return self.head(self.layers(x))


class Stack(nn.Sequential):
    """Modules in a row. PyTorch 2.8 compiles no model in place whose class is one of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


class Gpt(nn.Module):
    """A decoder whose output weights are its embedding's; returns logits and the loss."""

    def __init__(
        self,
        layers: int = 12,
        width: int = 768,
        heads: int = 12,
        words: int = 50257,
        length: int = 1024,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.dropout = nn.Dropout(dropout)
        make = (
            Layer(width, heads, dropout, fused=True, causal=True, pre=True) for _ in range(layers)
        )
        self.layers = nn.Sequential(*make)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.words(tokens) + self.places(places))
        logits = self.head(self.norm(self.layers(x)))
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        return logits, loss


class Vit(nn.Module):
    """A vision transformer on patches."""

    def __init__(
        self, layers: int = 12, width: int = 768, heads: int = 12, size: int = 224, patch: int = 16
    ):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.kind = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        make = (Layer(width, heads, 0.0, fused=True, causal=False, pre=True) for _ in range(layers))
        self.layers = nn.Sequential(*make)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.kind.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


class ConvRecurrent(nn.Module):
    """Convolutions whose columns a recurrent cell reads, as in text recognisers."""

    def __init__(self, width: int = 16, classes: int = 12):
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(1, width, 3, 1, 1), nn.GroupNorm(4, width), nn.SiLU(), nn.AvgPool2d(2)
        )
        self.cell = nn.GRUCell(8 * width, 2 * width)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        columns = self.convs(images).flatten(1, 2).unbind(-1)
        state = columns[0].new_zeros(len(images), self.cell.hidden_size)
        states = []
        for column in columns:
            state = self.cell(column, state)
            states.append(state)
        return self.head(torch.stack(states, 1))


class MixtureOfExperts(nn.Module):
    """Sends each token to its best two experts, chosen by a router."""

    def __init__(self, width: int = 32, experts: int = 4, layers: int = 2):
        super().__init__()
        self.routers = nn.ModuleList(nn.Linear(width, experts) for _ in range(layers))
        self.experts = nn.ModuleList(
            nn.ModuleList(
                nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
                for _ in range(experts)
            )
            for _ in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        for router, experts in zip(self.routers, self.experts):
            chances, chosen = router(x).softmax(-1).topk(2)
            weights = torch.zeros_like(router(x)).scatter(-1, chosen, chances)
            x = x + sum(weights[..., i, None] * expert(x) for i, expert in enumerate(experts))
        return x


class LowRank(nn.Module):
    """A frozen linear layer with a trained low-rank correction (LoRA)."""

    def __init__(self, frozen: nn.Linear, rank: int = 2):
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down = nn.Linear(frozen.in_features, rank, bias=False)
        self.up = nn.Linear(rank, frozen.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.frozen(x) + self.up(self.down(x))


def with_low_rank(model: nn.Module) -> nn.Module:
    """Freezes a model except for low-rank corrections of all its linear layers."""
    model.requires_grad_(False)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and not isinstance(module, LowRank):
                setattr(module, name, LowRank(child))
    return model


def images(count: int = 4, size: int = 32, channels: int = 3) -> Tensor:
    return torch.randn(count, channels, size, size)


def tokens(count: int = 2, length: int = 16, words: int = 64) -> Tensor:
    return torch.randint(words, (count, length))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "resnet": (lambda: ResNet((1, 2, 1), width=8), images),
    "bert": (lambda: Bert(2, 32, 4, 64, 16), tokens),
    "gpt": (lambda: Gpt(2, 32, 4, 64, 16), tokens),
    "vit": (lambda: Vit(2, 32, 4, 32, 8), images),
    "conv-recurrent": (ConvRecurrent, lambda: images(2, 16, 1)),
    "mixture-of-experts": (MixtureOfExperts, lambda: torch.randn(2, 8, 32)),
    "low-rank": (lambda: with_low_rank(Bert(2, 32, 4, 64, 16)), tokens),
}
"""Of each kind a small one, and what makes a batch for it."""
