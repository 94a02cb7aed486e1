"""The networks for which eager_step.py compares plans with PyTorch's eager step.

The first are small, with all the operators of the full ones; those named in ``FULL`` have the depth of
published networks, some with narrower layers. Weights are random. Those of transformers need that
package.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from torch_tests import networks as small

Batch = tuple[Tensor, ...]
Network = Callable[[], tuple[nn.Module, Batch]]


class Classified(nn.Module):
    """A classifier that returns its cross-entropy loss."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, data: Tensor, classes: Tensor) -> Tensor:
        scores = self.network(data)
        return F.cross_entropy(scores.flatten(0, -2), classes.flatten())


class Residual(nn.Module):
    """Two convolutions, each after GroupNorm and SiLU, as in diffusion models."""

    def __init__(self, inner: int, outer: int):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.time = nn.Linear(64, outer)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x)))
        y = y + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class Pixels(nn.Module):
    """Attention among all pixels of an image."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(8, width), heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        count, width, height, breadth = x.shape
        rows = self.norm(x).flatten(2).transpose(1, 2)
        split = (count, height * breadth, self.heads, width // self.heads)
        q, k, v = (part(rows).view(split).transpose(1, 2) for part in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(count, -1, width)
        return x + self.output(mixed).transpose(1, 2).reshape(x.shape)


class Diffusion(nn.Module):
    """A U-Net with GroupNorm, SiLU, attention and a squared error, as diffusion models have."""

    def __init__(self, width: int = 32):
        super().__init__()
        wide = 2 * width
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down1, self.down2 = Residual(width, width), Residual(width, wide)
        self.shrink = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.mix, self.middle = Pixels(wide, 4), Residual(wide, wide)
        self.up1, self.up2 = Residual(wide + wide, wide), Residual(wide + width, width)
        self.norm, self.leave = nn.GroupNorm(8, width), nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: Tensor, time: Tensor, noise: Tensor) -> Tensor:
        first = self.down1(self.enter(x), time)
        second = self.mix(self.down2(self.shrink(first), time))
        y = self.up1(torch.cat([self.middle(second, time), second], 1), time)
        y = F.interpolate(y, scale_factor=2.0, mode="nearest")
        y = self.up2(torch.cat([y, first], 1), time)
        return F.mse_loss(self.leave(F.silu(self.norm(y))), noise)


class Inverted(nn.Module):
    """An inverted bottleneck with squeeze-and-excitation, as in EfficientNet."""

    def __init__(self, width: int):
        super().__init__()
        wide = 4 * width
        self.widen = nn.Sequential(nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide))
        self.depthwise = nn.Sequential(
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False), nn.BatchNorm2d(wide)
        )
        self.squeeze, self.excite = nn.Conv2d(wide, width, 1), nn.Conv2d(width, wide, 1)
        self.narrow = nn.Sequential(nn.Conv2d(wide, width, 1, bias=False), nn.BatchNorm2d(width))
        self.act = nn.SiLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.depthwise(self.act(self.widen(x))))
        gate = torch.sigmoid(self.excite(self.act(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return x + self.narrow(gate * y)


class Frozen(nn.Module):
    """BatchNorm with fixed statistics, as detectors have."""

    def __init__(self, width: int):
        super().__init__()
        for name in ("weight", "variance"):
            self.register_buffer(name, torch.ones(width))
        for name in ("bias", "mean"):
            self.register_buffer(name, torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        scale = self.weight * (self.variance + 1e-5).rsqrt()
        shift = self.bias - self.mean * scale
        return x * scale[:, None, None] + shift[:, None, None]


class Pooled(nn.Module):
    """Convolutions with fixed BatchNorm, pooling, Softplus, Mish and dropout."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(3 if i == 0 else width, width, 3, padding=1) for i in range(4)
        )
        self.norms = nn.ModuleList(Frozen(width) for _ in range(4))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        acts = (F.relu, F.softplus, F.mish, F.hardswish)
        for conv, norm, act in zip(self.convs, self.norms, acts):
            x = F.dropout(act(norm(conv(x))), 0.2, self.training)
        x = F.avg_pool2d(F.max_pool2d(x, 2), 2).mean((2, 3))
        return F.cross_entropy(self.head(x), classes)


class Volume(nn.Module):
    """A 3-D U-Net with InstanceNorm and LeakyReLU in place."""

    def __init__(self, width: int = 8):
        super().__init__()

        def block(inner: int, outer: int) -> nn.Module:
            norm = nn.InstanceNorm3d(outer, affine=True)
            return nn.Sequential(
                nn.Conv3d(inner, outer, 3, padding=1), norm, nn.LeakyReLU(0.01, inplace=True)
            )

        self.down1, self.down2 = block(1, width), block(width, 2 * width)
        self.widen = nn.ConvTranspose3d(2 * width, width, 2, stride=2)
        self.up, self.head = block(2 * width, width), nn.Conv3d(width, 3, 1)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        first = self.down1(x)
        y = self.widen(self.down2(F.max_pool3d(first, 2)))
        return F.cross_entropy(self.head(self.up(torch.cat([y, first], 1))), classes)


class Language(nn.Module):
    """A model of transformers, with its own loss."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=ids, labels=labels, use_cache=False).loss


class Masked(Language):
    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=ids, labels=labels).loss


class Lstm(nn.Module):
    """A language model of two recurrent layers with dropout between them."""

    def __init__(self, words: int = 1000, width: int = 128):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.LSTM(width, 2 * width, 2, batch_first=True, dropout=0.2)
        self.head = nn.Linear(2 * width, words)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        scores = self.head(self.layers(self.embed(ids))[0])
        return F.cross_entropy(scores.flatten(0, -2), labels.flatten())


class ImageClassifier(nn.Module):
    """An image classifier from the transformers package, with its own loss."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=pixels, labels=labels).loss


def _ids(count: int, length: int, words: int = 500) -> Batch:
    return torch.randint(3, words, (count, length)), torch.randint(3, words, (count, length))


def _resnet() -> tuple[nn.Module, Batch]:
    return Classified(small.ResNet()), (torch.randn(4, 3, 96, 96), torch.randint(0, 10, (4,)))


def _diffusion() -> tuple[nn.Module, Batch]:
    return Diffusion(), (torch.randn(4, 3, 32, 32), torch.randn(4, 64), torch.randn(4, 3, 32, 32))


def _efficientnet() -> tuple[nn.Module, Batch]:
    blocks = [nn.Conv2d(3, 24, 3, 2, 1), *(Inverted(24) for _ in range(3))]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(24, 10)]
    data = torch.randn(4, 3, 96, 96)
    return Classified(nn.Sequential(*blocks, *head)), (data, torch.randint(0, 10, (4,)))


def _pooled() -> tuple[nn.Module, Batch]:
    return Pooled(), (torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,)))


def _volume() -> tuple[nn.Module, Batch]:
    return Volume(), (torch.randn(1, 1, 32, 32, 32), torch.randint(0, 3, (1, 32, 32, 32)))


def _vit() -> tuple[nn.Module, Batch]:
    model = small.Vit(2, 128, 4, 96, 8)
    return Classified(model), (torch.randn(4, 3, 96, 96), torch.randint(0, 10, (4,)))


def _by_hand() -> tuple[nn.Module, Batch]:
    ids = torch.randint(0, 500, (4, 128))
    return Classified(small.Bert(2, 128, 4, 500, 128)), (ids, torch.randint(0, 2, (4, 128)))


def _bert() -> tuple[nn.Module, Batch]:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=4000, hidden_size=128, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=512, max_position_embeddings=128,
    )  # fmt: skip
    return Masked(BertForMaskedLM(config)), _ids(4, 128)


def _gpt2() -> tuple[nn.Module, Batch]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=4000, n_positions=128, n_embd=128, n_layer=4, n_head=4)
    return Language(GPT2LMHeadModel(config)), _ids(4, 128)


def _llama() -> tuple[nn.Module, Batch]:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=2000, hidden_size=128, intermediate_size=344, num_hidden_layers=4,
        num_attention_heads=8, num_key_value_heads=2, max_position_embeddings=128,
    )  # fmt: skip
    return Language(LlamaForCausalLM(config)), _ids(4, 128)


def _t5() -> tuple[nn.Module, Batch]:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=2000, d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4,
        decoder_start_token_id=0,
    )  # fmt: skip
    return Language(T5ForConditionalGeneration(config)), _ids(4, 128)


def _lstm() -> tuple[nn.Module, Batch]:
    return Lstm(), (torch.randint(0, 1000, (4, 64)), torch.randint(0, 1000, (4, 64)))


def _mamba() -> tuple[nn.Module, Batch]:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(
        vocab_size=500, hidden_size=64, state_size=8, num_hidden_layers=2, use_mambapy=False
    )
    return Language(MambaForCausalLM(config)), _ids(2, 24)


def _pictures(model: nn.Module, size: int = 96, count: int = 2) -> tuple[nn.Module, Batch]:
    classes = torch.randint(0, model.config.num_labels, (count,))
    return ImageClassifier(model), (torch.randn(count, 3, size, size), classes)


def _resnet50() -> tuple[nn.Module, Batch]:
    from transformers import ResNetConfig, ResNetForImageClassification

    return _pictures(ResNetForImageClassification(ResNetConfig(num_labels=1000)))


def _convnext_tiny() -> tuple[nn.Module, Batch]:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    return _pictures(ConvNextForImageClassification(ConvNextConfig(num_labels=1000)))


def _efficientnet_b0() -> tuple[nn.Module, Batch]:
    from transformers import EfficientNetConfig, EfficientNetForImageClassification

    config = EfficientNetConfig(
        num_labels=1000, width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280,
        image_size=224, drop_connect_rate=0.0,
    )  # fmt: skip
    return _pictures(EfficientNetForImageClassification(config))


def _mobilenet_v2() -> tuple[nn.Module, Batch]:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    return _pictures(MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000)))


def _segformer() -> tuple[nn.Module, Batch]:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    model = SegformerForSemanticSegmentation(SegformerConfig(num_labels=19, drop_path_rate=0.0))
    return ImageClassifier(model), (torch.randn(1, 3, 128, 128), torch.randint(0, 19, (1, 128, 128)))


def _roberta() -> tuple[nn.Module, Batch]:
    from transformers import RobertaConfig, RobertaForMaskedLM

    config = RobertaConfig(vocab_size=4000, hidden_size=256, num_attention_heads=4,
                           intermediate_size=1024, num_hidden_layers=12, max_position_embeddings=130)  # fmt: skip
    return Masked(RobertaForMaskedLM(config)), _ids(2, 128)


def _neox() -> tuple[nn.Module, Batch]:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(vocab_size=2000, hidden_size=256, num_hidden_layers=24,
                           num_attention_heads=4, intermediate_size=1024, max_position_embeddings=128)  # fmt: skip
    return Language(GPTNeoXForCausalLM(config)), _ids(2, 128)


def _qwen3() -> tuple[nn.Module, Batch]:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=2000, hidden_size=128, intermediate_size=384, num_hidden_layers=28,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=128,
    )  # fmt: skip
    return Language(Qwen3ForCausalLM(config)), _ids(2, 128)


NETWORKS: dict[str, tuple[Network, str]] = {
    "resnet": (_resnet, "BatchNorm, ReLU"),
    "diffusion": (_diffusion, "GroupNorm, SiLU, attention"),
    "efficientnet": (_efficientnet, "SiLU in place, squeeze-and-excitation"),
    "pooled": (_pooled, "fixed BatchNorm, Softplus, Mish, dropout"),
    "volume": (_volume, "3-D, InstanceNorm, LeakyReLU in place"),
    "vit": (_vit, "attention of PyTorch"),
    "by-hand": (_by_hand, "BERT, attention by hand, dropout"),
    "bert": (_bert, "transformers, attention of PyTorch with dropout"),
    "gpt2": (_gpt2, "transformers, tied weights"),
    "llama": (_llama, "transformers, GQA, SwiGLU, RMSNorm"),
    "t5": (_t5, "transformers, attention by hand with a bias"),
    "lstm": (_lstm, "recurrent, dropout between layers"),
    "mamba": (_mamba, "transformers, selective scan by hand"),
}
FULL: dict[str, tuple[Network, str]] = {
    "resnet50": (_resnet50, "50 layers"),
    "convnext_tiny": (_convnext_tiny, "18 blocks"),
    "efficientnet_b0": (_efficientnet_b0, "16 blocks, SiLU"),
    "mobilenet_v2": (_mobilenet_v2, "17 blocks, ReLU6"),
    "segformer_b0": (_segformer, "8 blocks, a decoder"),
    "roberta_base": (_roberta, "12 layers, 256 wide"),
    "gpt_neox": (_neox, "24 layers, 256 wide"),
    "qwen3": (_qwen3, "28 layers, 128 wide"),
}
_OF_TRANSFORMERS = ("bert", "gpt2", "llama", "t5", "mamba", *FULL)


def rows(names: list[str]) -> Iterator[tuple[str, nn.Module, Batch]]:
    """Yields the networks with these names, all made from one seed."""
    for name, (make, _) in (NETWORKS | FULL).items():
        if names and name not in names:
            continue
        if name in _OF_TRANSFORMERS and importlib.util.find_spec("transformers") is None:
            print(f"{name}: transformers is not installed", file=sys.stderr)
            continue
        torch.manual_seed(1)
        model, batch = make()
        yield name, model.train(), batch
