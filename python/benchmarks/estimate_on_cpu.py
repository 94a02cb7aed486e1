"""Compares estimates with the memory of training on a CPU, in bytes, for 25 networks.

    python python/benchmarks/estimate_on_cpu.py [NAME...] [--optimizer adamw] [--journal FILE]

With a journal, an interrupted run resumes.
Every column is the estimate's figure, with the difference in brackets where there is one. The
networks are small or get small inputs, so that they train in seconds. Needs torchvision and
transformers; nothing is downloaded, since weights are random. A network whose package is missing is
named as such.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import ckplan.torch
import torch
from ckplan.torch import private
from ckplan.torch.estimation import optimizers
from ckplan.torch.estimation.events import peak, trace
from ckplan.torch.estimation.tracing import Precision, trace_step
from ckplan.torch.tracker import Tracker
from journal import Journal, add_argument
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from torch_tests.networks import NETWORKS
from torch_tests.training import loss_of as loss_of_tests

Make = Callable[[], nn.Module]
Batch = dict[str, Tensor]
_NO_LIMIT = 1 << 50


def loss_of(output: Any) -> Tensor:
    """Returns the loss of a model; if it has none, makes one from its first result."""
    # TorchDynamo of PyTorch 2.8 does not trace a union of types.
    if isinstance(output, (Tensor, tuple)):
        return loss_of_tests(output)
    if getattr(output, "loss", None) is not None:
        return output.loss
    first = next(iter(output.values()))
    return loss_of_tests(first)


def tokens(count: int = 2, length: int = 32, words: int = 100) -> Tensor:
    return torch.randint(3, words, (count, length))


def language(count: int = 2, length: int = 32) -> Batch:
    ids = tokens(count, length)
    return {"input_ids": ids, "labels": ids.clone()}


def pixels(size: int = 64, count: int = 2) -> Batch:
    return {"pixel_values": torch.randn(count, 3, size, size)}


SMALL = {
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
GROUPED = SMALL | {"num_key_value_heads": 2, "use_cache": False}
VISION = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 64,
    "patch_size": 16,
}

# name: configuration, its arguments, model, batch
TRANSFORMERS: dict[str, tuple[str, dict[str, Any], str, Callable[[], Batch]]] = {
    "Llama": ("LlamaConfig", GROUPED, "LlamaForCausalLM", language),
    "Qwen3": ("Qwen3Config", GROUPED | {"head_dim": 16}, "Qwen3ForCausalLM", language),
    "GPT-2": (
        "GPT2Config",
        {
            "vocab_size": 100,
            "n_embd": 64,
            "n_layer": 2,
            "n_head": 4,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "use_cache": False,
        },
        "GPT2LMHeadModel",
        language,
    ),
    "OPT": (
        "OPTConfig",
        {
            "vocab_size": 100,
            "hidden_size": 64,
            "ffn_dim": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "word_embed_proj_dim": 64,
            "use_cache": False,
        },
        "OPTForCausalLM",
        language,
    ),
    "GPT-NeoX": ("GPTNeoXConfig", SMALL | {"use_cache": False}, "GPTNeoXForCausalLM", language),
    "BERT": ("BertConfig", SMALL, "BertForMaskedLM", language),
    "DistilBERT": (
        "DistilBertConfig",
        {"vocab_size": 100, "dim": 64, "hidden_dim": 128, "n_layers": 2, "n_heads": 4},
        "DistilBertForMaskedLM",
        language,
    ),
    "T5": (
        "T5Config",
        {
            "vocab_size": 100,
            "d_model": 64,
            "d_kv": 16,
            "d_ff": 128,
            "num_layers": 2,
            "num_heads": 4,
            "use_cache": False,
            "decoder_start_token_id": 0,
        },
        "T5ForConditionalGeneration",
        language,
    ),
    "ViT": ("ViTConfig", VISION, "ViTForImageClassification", pixels),
    "DeiT": ("DeiTConfig", VISION, "DeiTForImageClassification", pixels),
}

TORCHVISION = {
    "alexnet": 64,
    "vgg11": 32,
    "resnet18": 64,
    "densenet121": 32,
    "mobilenet_v2": 64,
    "mnasnet0_5": 64,
    "convnext_tiny": 64,
    "swin_t": 64,
}


class Network(nn.Module):
    """A model with its loss, which takes its inputs by position."""

    def __init__(self, model: nn.Module, names: list[str]):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        if not self.names:
            return loss_of(self.model(*inputs))
        return loss_of(self.model(**dict(zip(self.names, inputs))))


def networks() -> Iterator[tuple[str, Make, list[Tensor]]]:
    """Yields a function that makes each network, and a batch for it."""
    for name, (make, batch) in NETWORKS.items():
        yield f"tests: {name}", lambda make=make: Network(make(), []), [batch()]
    if _has("torchvision"):
        from torchvision import models

        for name, size in TORCHVISION.items():
            yield (
                f"torchvision: {name}",
                lambda name=name: Network(models.get_model(name, num_classes=10), []),
                [torch.randn(2, 3, size, size)],
            )
    if _has("transformers"):
        import transformers

        for name, (config, arguments, model, batch) in TRANSFORMERS.items():
            inputs = batch()
            kind = getattr(transformers, model)
            settings = getattr(transformers, config)(**arguments)
            yield (
                f"transformers: {name}",
                lambda kind=kind, settings=settings, names=list(inputs): Network(
                    kind(settings), names
                ),
                list(inputs.values()),
            )


def _has(package: str) -> bool:
    if importlib.util.find_spec(package) is None:
        print(f"{package} is not installed: its networks are left out", file=sys.stderr)
        return False
    return True


def estimated(make: Make, batch: list[Tensor], optimizer: str) -> dict[str, int]:
    """Returns the figures of an estimate, which allocates nothing."""
    step = trace_step(make, tuple(batch), Precision.named("fp32"), is_on_gpu=False)
    graph = step.graph(arriving=True)
    trained = [parameter for parameter in step.parameters() if parameter.requires_grad]
    memory = optimizers.measure(optimizer, trained)
    return {
        "parameters": sum(parameter.nbytes for parameter in step.parameters()),
        "buffers": sum(buffer.nbytes for buffer in step.buffers()),
        "inputs": sum(tensor.nbytes for tensor in step.inputs),
        "activations and gradients": peak(trace(graph, range(len(graph.operations))).events)[0],
        "optimizer state": memory.state_bytes,
        "its step": memory.step_bytes,
    }


def measured(make: Make, batch: list[Tensor], optimizer: str) -> dict[str, int]:
    """Trains two steps on a CPU, and returns the memory that they use."""
    torch._dynamo.reset()
    model = make()
    compiled = ckplan.torch.compile(model, total=_NO_LIMIT, algo="keep-all")
    made = _optimizer(model, optimizer)
    for step in range(2):
        with private.without_logging():  # Logging would break the graph.
            compiled(*batch).backward()
        if step == 0:
            made.step()
            made.zero_grad()
    (entry,) = compiled.ckplan.graphs
    tracker, state = Tracker(), list(_state(made))
    kept = [*model.parameters(), *(p.grad for p in model.parameters()), *state]
    tracker.run(lambda _: made.step(), [tensor for tensor in kept if tensor is not None])
    tracker.forget_dead()
    storages = {tensor.untyped_storage()._cdata: tensor for tensor in model.buffers()}
    return {
        "parameters": sum(parameter.nbytes for parameter in model.parameters()),
        "buffers": sum(tensor.untyped_storage().nbytes() for tensor in storages.values()),
        "inputs": sum(tensor.nbytes for tensor in {id(t): t for t in batch}.values()),
        "activations and gradients": entry.measured_peak_bytes or 0,
        # Counters of steps are on the host where training is on a GPU.
        "optimizer state": sum(tensor.nbytes for tensor in state if tensor.numel() > 1),
        "its step": _most(size for _, size in tracker.changes("cpu") if abs(size) > 4),
    }


def _optimizer(model: nn.Module, name: str) -> torch.optim.Optimizer:
    kind, _, way = name.partition(":")
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    return kinds[kind](model.parameters(), lr=1e-3, foreach=not way)


def _state(made: torch.optim.Optimizer) -> Iterator[Tensor]:
    for row in made.state.values():
        yield from (value for value in row.values() if isinstance(value, Tensor))


def _most(changes: Iterable[int]) -> int:
    live = most = 0
    for size in changes:
        live += size
        most = max(most, live)
    return most


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="run only networks whose names contain one of these")
    parser.add_argument("--optimizer", default="adamw", choices=("adamw", "adam", "sgd"))
    add_argument(parser)
    asked = parser.parse_args()
    journal = Journal(asked.journal, ("torch", "torchvision", "transformers"), asked.optimizer)
    head, off, count, spent = [], 0, 0, 0.0
    for name, make, batch in networks():
        if asked.names and not any(part in name for part in asked.names):
            continue
        found = journal.row(name, lambda: _both(make, batch, asked.optimizer))
        ours, theirs = found["estimated"], found["measured"]
        if not head:
            head = ["network", *ours]
            print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
        cells = [_cell(ours[key], theirs[key]) for key in ours]
        off += sum(abs(ours[key] - theirs[key]) for key in ours)
        count, spent = count + 1, spent + found["seconds"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\n{count} networks, {off} bytes off, {spent:.0f} s of CPU time")


def _both(make: Make, batch: list[Tensor], optimizer: str) -> dict[str, Any]:
    """Returns the estimated and the measured figures, and the CPU time for both."""
    start = time.process_time()
    torch.manual_seed(1)
    ours, theirs = estimated(make, batch, optimizer), measured(make, batch, optimizer)
    return {"estimated": ours, "measured": theirs, "seconds": time.process_time() - start}


def _cell(ours: int, theirs: int) -> str:
    return f"{ours:,}" + (f" ({ours - theirs:+,})" if ours != theirs else "")


if __name__ == "__main__":
    main()
