"""The twelve small networks that inductor_peak.py runs, with batches.

Weights are random, and nothing is downloaded. Each makes a function that returns the loss.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from torch_tests.networks import Bert, Gpt, MixtureOfExperts, ResNet, Vit

Loss = Callable[[], Tensor]


class UNet(nn.Module):
    """Halves its images, doubles them again, and joins each size with its earlier result."""

    def __init__(self, width: int = 8, depth: int = 2):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(_block(a, b) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(_block(a + b, a) for a, b in zip(widths, widths[1:]))
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        kept = []
        for block in self.down:
            kept.append(x)
            x = block(F.avg_pool2d(x, 2))
        for block in reversed(self.up):
            x = block(torch.cat([F.interpolate(x, scale_factor=2), kept.pop()], 1))
        return self.last(x)


def _block(before: int, after: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(4, after), nn.SiLU()
    )


def _mlp() -> Loss:
    layers = [part for _ in range(6) for part in (nn.Linear(256, 256), nn.GELU())]
    model, x = nn.Sequential(*layers), torch.randn(512, 256)
    return _trained(model, lambda: model(x).square().mean())


def _resnet() -> Loss:
    return _of_images(ResNet((1, 1), width=16), 16, 48)


def _vit() -> Loss:
    return _of_images(Vit(2, 64, 4, 64, 8), 8, 64)


def _unet() -> Loss:
    return _of_images(UNet(), 8, 64)


def _of_images(model: nn.Module, count: int, size: int) -> Loss:
    x = torch.randn(count, 3, size, size)
    return _trained(model, lambda: model(x).square().mean())


def _bert() -> Loss:
    model, tokens = Bert(1, 64, 4, 256, 64), torch.randint(256, (8, 64))
    return _trained(model, lambda: model(tokens).square().mean())


def _gpt2() -> Loss:
    model, tokens = Gpt(2, 64, 4, 256, 64), torch.randint(256, (8, 64))
    return _trained(model, lambda: model(tokens)[1])


def _mixtral() -> Loss:
    model, x = MixtureOfExperts(64, 4, 1), torch.randn(8, 64, 64)
    return _trained(model, lambda: model(x).square().mean())


def _of_transformers(name: str, batch: Callable[[], dict[str, Tensor]], **sizes: Any) -> Loss:
    """A model of the library ``transformers`` from its configuration."""
    import transformers

    config = getattr(transformers, f"{name.split('For')[0]}Config")(**sizes)
    model, inputs = getattr(transformers, name)(config), batch()
    return _trained(model, lambda: model(**inputs).loss)


def _words(count: int, length: int) -> dict[str, Tensor]:
    tokens = torch.randint(1, 256, (count, length))
    return {"input_ids": tokens, "labels": tokens}


def _llama() -> Loss:
    return _of_transformers(
        "LlamaForCausalLM",
        lambda: _words(8, 64),
        vocab_size=256,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        use_cache=False,
    )


def _t5() -> Loss:
    return _of_transformers(
        "T5ForConditionalGeneration",
        lambda: _words(8, 32),
        vocab_size=256,
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=1,
        num_heads=4,
        use_cache=False,
        decoder_start_token_id=0,
        pad_token_id=0,
    )


def _whisper() -> Loss:
    def batch() -> dict[str, Tensor]:
        return {"input_features": torch.randn(4, 16, 128), "labels": torch.randint(1, 256, (4, 16))}

    return _of_transformers(
        "WhisperForConditionalGeneration",
        batch,
        vocab_size=256,
        d_model=64,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        num_mel_bins=16,
        max_source_positions=64,
        max_target_positions=64,
        use_cache=False,
        decoder_start_token_id=1,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )


def _convnext() -> Loss:
    def batch() -> dict[str, Tensor]:
        return {"pixel_values": torch.randn(8, 3, 64, 64), "labels": torch.randint(2, (8,))}

    return _of_transformers(
        "ConvNextForImageClassification",
        batch,
        num_stages=2,
        hidden_sizes=[16, 32],
        depths=[1, 1],
        num_labels=2,
        problem_type="single_label_classification",  # Otherwise the first step sets it.
    )


def _mamba() -> Loss:
    return _of_transformers(
        "MambaForCausalLM",
        lambda: _words(8, 8),
        vocab_size=256,
        hidden_size=32,
        state_size=8,
        num_hidden_layers=1,
        use_cache=False,
    )


def _trained(model: nn.Module, loss: Loss) -> Loss:
    """Returns the loss function, with its parameters as the attribute ``trained``."""
    model.train()
    loss.trained = [p for p in model.parameters() if p.requires_grad]  # type: ignore[attr-defined]
    return loss


NETWORKS: dict[str, tuple[str, Callable[[], Loss]]] = {
    "mlp": ("MLP, 6 layers", _mlp),
    "resnet": ("ResNet, 2 blocks", _resnet),
    "convnext": ("ConvNeXt, 2 blocks", _convnext),
    "vit": ("ViT, 2 layers", _vit),
    "bert": ("BERT, 1 layer, dropout", _bert),
    "gpt2": ("GPT-2, tied, 2 layers, dropout", _gpt2),
    "llama": ("Llama, 1 layer", _llama),
    "t5": ("T5, 1 + 1 layers, dropout", _t5),
    "mixtral": ("experts as in Mixtral, 1 layer", _mixtral),
    "unet": ("U-Net, 2 levels", _unet),
    "whisper": ("Whisper, 1 + 1 layers", _whisper),
    "mamba": ("Mamba, 1 layer", _mamba),
}
