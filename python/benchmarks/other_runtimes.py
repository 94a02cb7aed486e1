"""Prints the time that plans of other runtimes lose compared with free plans.

    python python/benchmarks/other_runtimes.py [NETWORK...] [--budgets 80 60 40] [--kinds sac ...]
        [--journal FILE]

With a journal, an interrupted run resumes.

The networks are those of transformers, on fake tensors in bfloat16 and without their weights, so
training takes no memory. A budget is a share of what keeping everything needs. A cell has the time
that the plan adds to a step that keeps everything, in percent, by the roofline of an H100; a star
marks plans that are the best of their kind for certain. Where no plan fits, the cell has the least
peak that was found, in percent of keeping everything. Needs transformers.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import ckplan
import torch
import transformers
from torch import nn

from ckplan.torch.costs import set_costs
from ckplan.torch.estimation.tracing import Precision, trace_step
from ckplan.torch.policies import Policy, policy
from journal import Journal, add_argument

KINDS = ("sac", "torchtitan", "checkpoint", "megatron", "transformers", "deepspeed")

LLAMA = {
    "vocab_size": 128_256,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": True,
    "use_cache": False,
}
"""The sizes of Llama-3.2-1B."""


def texts(count: int, length: int, with_classes: bool) -> dict[str, torch.Tensor]:
    """Returns a batch of texts; their labels are classes, or the texts themselves."""
    words = torch.zeros(count, length, dtype=torch.long)
    return {"input_ids": words, "labels": words[:, 0].clone() if with_classes else words}


def images(count: int = 32) -> dict[str, torch.Tensor]:
    """Returns a batch of images with their classes."""
    classes = torch.zeros(count, dtype=torch.long)
    return {"pixel_values": torch.zeros(count, 3, 224, 224), "labels": classes}


NETWORKS: dict[str, tuple[Callable[[], nn.Module], dict[str, torch.Tensor]]] = {
    "bert": (
        lambda: transformers.BertForSequenceClassification(transformers.BertConfig()),
        texts(8, 512, with_classes=True),
    ),
    "llama": (
        lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)),
        texts(1, 4096, with_classes=False),
    ),
    "vit": (
        lambda: transformers.ViTForImageClassification(transformers.ViTConfig()),
        images(),
    ),
    "resnet50": (
        lambda: transformers.ResNetForImageClassification(transformers.ResNetConfig()),
        images(),
    ),
}


def graph_of(make: Callable[[], nn.Module], inputs: dict[str, torch.Tensor]) -> bytes:
    """Returns the file of a network's joint graph. Runs nothing."""
    graph = trace_step(make, inputs, Precision.named("bf16")).graph(arriving=False)
    set_costs(graph, "roofline:h100-80g", fuses=False)
    return graph.to_bytes()


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--budgets", nargs="*", type=int, default=[80, 60, 40])
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--effort", default="quick")
    add_argument(parser)
    asked = parser.parse_args()
    journal = Journal(asked.journal, ("torch", "transformers"), asked.effort)
    heads = ["network (keeping all)", "budget", "free plan", *asked.kinds]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for name in asked.networks:
        for budget in asked.budgets:
            print(row(name, budget, asked.kinds, asked.effort, journal), flush=True)


@functools.cache
def known(name: str) -> tuple[bytes, int]:
    """Returns the graph of a network, and the peak of keeping everything."""
    content = graph_of(*NETWORKS[name])
    return content, ckplan.plan(content, algo="keep-all")["result"]["peak_bytes"]


def row(name: str, budget: int, kinds: list[str], effort: str, journal: Journal) -> str:
    """Returns the row of a network and a budget in percent."""
    plan: dict[str, Any] | None = None

    def free() -> list[str]:
        nonlocal plan
        content, keep_all = known(name)
        cells = [f"{name} ({keep_all / 2**20:,.0f} MiB)", f"{budget} %"]
        try:
            plan = ckplan.plan(content, budget=f"{budget}%", effort=effort)
        except ckplan.InfeasibleError as error:
            return [*cells, f"least {100 * (error.least_bytes or keep_all) / keep_all:.0f} %"]
        return [*cells, f"{100 * plan['result']['overhead_cost'] / _step_cost(plan):+.1f}"]

    def of(kind: str) -> str:
        nonlocal plan
        if plan is None:
            plan = ckplan.plan(known(name)[0], budget=f"{budget}%", effort=effort)
        return _cell(_found(plan, kind, known(name)[0]))

    cells = journal.row(f"{name} {budget}", free)
    has_plan = not cells[-1].startswith("least")
    for kind in kinds:
        find = functools.partial(of, kind)
        cells = [*cells, journal.row(f"{name} {budget} {kind}", find) if has_plan else "no plan"]
    return "| " + " | ".join(cells) + " |"


def _found(plan: dict[str, Any], kind: str, content: bytes) -> Policy | None:
    try:
        return policy(plan, kind, graph=content)
    except ckplan.PlanError:
        return None  # The network has nothing that the runtime can recompute.


def _cell(found: Policy | None) -> str:
    if found is None:
        return "–"
    star = "*" if found.is_exact else ""
    if not found.fits:
        return f"least {100 * found.peak_bytes / found.keep_all_peak_bytes:.0f} %{star}"
    return f"{100 * found.added_share:+.1f}{star}"


def _step_cost(plan: dict[str, Any]) -> int:
    return plan["result"]["forward_cost"] + plan["result"]["backward_cost"]


if __name__ == "__main__":
    main()
