"""Prints the results of estimates of large models, and their CPU time and memory.

    python python/benchmarks/large_models.py [MODEL...]

Each model is estimated in a process of its own. CPU seconds are those of Python, with the import of
PyTorch, and of the program ckplan; memory is the most that Python needs. "Keep all" and "least" are
activations and gradients of a step; the plan is the one for the device where keeping all does not
fit. Needs transformers and diffusers.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

GIB = 1 << 30


@dataclass(frozen=True)
class Case:
    """A model, its inputs, and how it is estimated."""

    title: str
    make: Callable[[], Any]
    inputs: Any
    options: dict[str, Any]


def tokens(batch: int, length: int) -> dict[str, Tensor]:
    ids = torch.zeros(batch, length, dtype=torch.long)
    return {"input_ids": ids, "labels": ids}


def llama(layers: int, hidden: int, wide: int, heads: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=128256,
            hidden_size=hidden,
            intermediate_size=wide,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=8,
            max_position_embeddings=8192,
            use_cache=False,
        )
    )


def every_expert(self: Any, states: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
    """Computes each expert of a layer on the tokens that chose it, however many they are."""
    import torch.nn.functional as F

    out = torch.zeros_like(states)
    for expert in range(self.num_experts):
        token, place = torch.where(chosen == expert)
        gate, up = F.linear(states[token], self.gate_up_proj[expert]).chunk(2, dim=-1)
        made = F.linear(self.act_fn(gate) * up, self.down_proj[expert])
        out = out.index_add(0, token, made * weights[token, place, None].to(made.dtype))
    return out


def mixtral(experts: str) -> Any:
    from transformers import MixtralConfig, MixtralForCausalLM
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

    ALL_EXPERTS_FUNCTIONS.register("every", every_expert)
    return MixtralForCausalLM(
        MixtralConfig(
            hidden_size=4096,
            intermediate_size=14336,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            use_cache=False,
            experts_implementation=experts,
        )
    )


def vit() -> Any:
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(
        ViTConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            num_labels=1000,
        )
    )


def unet() -> Any:
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(sample_size=64, cross_attention_dim=768)


def unet_loss(output: Any) -> Tensor:
    return output.sample.float().square().mean()


def whisper() -> Any:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    return WhisperForConditionalGeneration(
        WhisperConfig(
            d_model=1024,
            encoder_layers=24,
            decoder_layers=24,
            encoder_attention_heads=16,
            decoder_attention_heads=16,
            encoder_ffn_dim=4096,
            decoder_ffn_dim=4096,
            use_cache=False,
        )
    )


def t5() -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(
            d_model=1024,
            d_ff=4096,
            num_layers=24,
            num_heads=16,
            decoder_start_token_id=0,
            use_cache=False,
        )
    )


IMAGES = {"pixel_values": torch.zeros(64, 3, 224, 224), "labels": torch.zeros(64).long()}
LATENTS = {
    "sample": torch.zeros(16, 4, 64, 64),
    "timestep": torch.zeros(16).long(),
    "encoder_hidden_states": torch.zeros(16, 77, 768),
}
SOUNDS = {
    "input_features": torch.zeros(16, 80, 3000),
    "labels": torch.zeros(16, 448, dtype=torch.long),
}

CASES = {
    "llama-8b": Case(
        "Llama-3-8B, 4,096 tokens", lambda: llama(32, 4096, 14336, 32), tokens(1, 4096), {}
    ),
    "llama-70b": Case(
        "Llama-3-70B, 4,096 tokens",
        lambda: llama(80, 8192, 28672, 64),
        tokens(1, 4096),
        {"shard": "fsdp:64"},
    ),
    "mixtral": Case(
        "Mixtral 8x7B, 4,096 tokens",
        lambda: mixtral("grouped_mm"),
        tokens(1, 4096),
        {"shard": "fsdp:64"},
    ),
    "mixtral-bounds": Case(
        "Mixtral 8x7B, at most 2,048 tokens an expert",
        lambda: mixtral("every"),
        tokens(1, 4096),
        {"shard": "fsdp:64", "bounds": {"torch.where(chosen": 2048}},
    ),
    "vit-l": Case("ViT-L, 64 images", vit, IMAGES, {}),
    "unet": Case("U-Net of Stable Diffusion 1.5, 16 images", unet, LATENTS, {"loss": unet_loss}),
    "whisper": Case("Whisper medium, 16 clips", whisper, SOUNDS, {}),
    "t5": Case("T5-large, 8 times 512 tokens", t5, tokens(8, 512), {}),
}


def row(name: str) -> str:
    """Returns the row of a model in a table, estimated in this process."""
    import ckplan.torch

    case = CASES[name]
    found = ckplan.torch.estimate(case.make, case.inputs, device="h100-80g", **case.options)
    spent, memory = os.times(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    plan = "fits"
    if found.plan is not None and found.planned is not None:
        fits = "" if found.planned.bytes <= found.memory_bytes else ", does not fit"
        plan = f"{found.plan['result']['peak_bytes'] / GIB:.2f} GiB, +{found.added_share:.1%}{fits}"
    elif not found.fits:
        plan = "none helps"
    least = min(choice.peak_bytes for choice in found.curve)
    cells = [
        f"{case.title}{', ' + found.shard if found.shard else ''}",
        f"{found.operations:,}",
        f"{spent.user + spent.system:.1f}",
        f"{spent.children_user + spent.children_system:.1f}",
        f"{memory / GIB:.2f}",
        f"{found.keep_all.bytes / GIB:.1f}",
        f"{found.backward_bytes / GIB:.2f}",
        f"{least / GIB:.2f}",
        plan,
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(CASES))
    parser.add_argument("--row", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.row:
        print(row(asked.row))
        return
    heads = (
        "model",
        "operations",
        "Python, CPU s",
        "program, CPU s",
        "memory, GiB",
        "training, GiB",
        "keep all, GiB",
        "least, GiB",
        "plan",
    )
    print(f"| {' | '.join(heads)} |\n|" + " --- |" * len(heads), flush=True)
    for name in asked.models:
        command = [sys.executable, "-W", "ignore", __file__, "--row", name]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
