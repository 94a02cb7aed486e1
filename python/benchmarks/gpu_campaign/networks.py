"""The networks of testdata/models in PyTorch: ResNet-50, BERT base and GPT-2 small."""

import torch
from torch import nn
from torch.nn import functional


class Unit(nn.Module):
    """A bottleneck unit; the 3 x 3 convolution halves the resolution."""

    def __init__(self, inner, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity()
        if inner != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, 4 * width, 1, stride, bias=False),
                                          nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
              nn.MaxPool2d(3, 2, 1)]
    inner = 64
    for width, units in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for unit in range(units):
            layers.append(Unit(inner, width, 2 if unit == 0 and width > 64 else 1))
            inner = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 1000))


class Attention(nn.Module):
    def __init__(self, width, heads, is_causal):
        super().__init__()
        self.heads = heads
        self.is_causal = is_causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal,
                                                    dropout_p=0.1 if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    """BERT normalises after each residual connection, GPT-2 before it."""

    def __init__(self, width, heads, is_causal):
        super().__init__()
        self.is_causal = is_causal
        self.attention = Attention(width, heads, is_causal)
        self.first = nn.LayerNorm(width)
        self.second = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def feed(self, x):
        gelu = functional.gelu(self.wide(x), approximate="tanh" if self.is_causal else "none")
        return self.dropout(self.narrow(gelu))

    def forward(self, x):
        if self.is_causal:
            x = x + self.dropout(self.attention(self.first(x)))
            return x + self.feed(self.second(x))
        x = self.first(x + self.dropout(self.attention(x)))
        return self.second(x + self.feed(x))


class Transformer(nn.Module):
    def __init__(self, words, length, width, layers, heads, is_causal):
        super().__init__()
        self.is_causal = is_causal
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.types = None if is_causal else nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)
        self.layers = nn.ModuleList(Layer(width, heads, is_causal) for _ in range(layers))
        self.head = None if is_causal else nn.Sequential(nn.Linear(width, width), nn.GELU(),
                                                         nn.LayerNorm(width))
        self.bias = None if is_causal else nn.Parameter(torch.zeros(words))

    def start(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        if self.is_causal:
            return self.dropout(x)
        return self.dropout(self.norm(x + self.types(torch.zeros_like(ids))))

    def end(self, x):
        x = self.norm(x) if self.is_causal else self.head(x)
        return functional.linear(x, self.words.weight, self.bias)

    def forward(self, ids):
        x = self.start(ids)
        for layer in self.layers:
            x = layer(x)
        return self.end(x)


def bert():
    return Transformer(30522, 512, 768, 12, 12, is_causal=False)


def gpt2():
    return Transformer(50257, 1024, 768, 12, 12, is_causal=True)


def images(batch):
    return torch.randn(batch, 3, 224, 224)


# The network, and what makes a batch of it.
NETWORKS = {
    "resnet50": (resnet50, images),
    "bert_base_512": (bert, lambda batch: torch.randint(0, 30522, (batch, 512))),
    "gpt2_small": (gpt2, lambda batch: torch.randint(0, 50257, (batch, 1024))),
}
# What a rehearsal takes: the same kinds of network, small enough for a processor.
SMALL = {
    "resnet50": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, 2), Unit(8, 4, 1), nn.Flatten(),
                                       nn.LazyLinear(4)), lambda batch: torch.randn(2, 3, 16, 16)),
    "bert_base_512": (lambda: Transformer(50, 16, 16, 2, 2, is_causal=False),
                      lambda batch: torch.randint(0, 50, (2, 16))),
    "gpt2_small": (lambda: Transformer(50, 16, 16, 2, 2, is_causal=True),
                   lambda batch: torch.randint(0, 50, (2, 16))),
}
