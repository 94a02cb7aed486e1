"""Prints estimates beside published peaks, measured by others on GPUs.

    python python/benchmarks/published_peaks.py [NAME...] [--journal FILE]

The rows are those of published_peaks.json, each with its source. Nothing is tuned on them. The loop
that trained the language models holds all results of a step until the next one has made its own.
With a journal, an interrupted run resumes. Needs torchvision and transformers; nothing
is downloaded and nothing is trained.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import ckplan.torch
import torch
from journal import Journal, add_argument
from torch import Tensor, nn

ROWS = Path(__file__).with_suffix(".json")
MIB = 1 << 20


class Classifier(nn.Module):
    """A network for images with the loss of its training."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.model(images), labels)


def make(model: dict[str, Any]) -> nn.Module:
    """Returns the model of a row."""
    if "torchvision" in model:
        from torchvision import models

        return Classifier(models.get_model(model["torchvision"], num_classes=model["num_classes"]))
    import transformers

    config = getattr(transformers, model["config"])(**model["settings"])
    return getattr(transformers, model["transformers"])(config)


def inputs(row: dict[str, Any]) -> Any:
    """Returns a batch, whose values do not matter."""
    if "sequence" not in row:
        labels = torch.zeros(row["batch"], dtype=torch.long)
        return torch.empty(row["batch"], 3, 86, 86, device="meta"), labels
    tokens = torch.zeros(row["batch"], row["sequence"], dtype=torch.long)
    return {"input_ids": tokens, "attention_mask": tokens, "labels": tokens}


def estimate(row: dict[str, Any]) -> ckplan.torch.Estimate:
    """Returns the estimate of a row."""
    kind = getattr(torch.optim, row["optimizer"])
    return ckplan.torch.estimate(
        lambda: make(row["model"]),
        inputs(row),
        device=row["device"],
        memory=row["memory_bytes"],
        context=0,  # The measurement begins after the CUDA context was created.
        optimizer=lambda parameters: kind(parameters, lr=1e-3),
        precision="fp32",
        returns="all" if "sequence" in row else "loss",
    )


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="run only rows whose names contain one of these")
    add_argument(parser)
    asked = parser.parse_args()
    journal = Journal(asked.journal, ("torch", "torchvision", "transformers"))
    errors: dict[str, list[float]] = {"of the estimate": [], "of xMem": []}
    print("| training | measured, MiB | estimate | error | xMem's | not known |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in json.loads(ROWS.read_text())["rows"]:
        if asked.names and not any(part in row["name"] for part in asked.names):
            continue
        found = journal.row(row["name"], lambda: _figures(row))
        measured = row["measured_bytes"]
        sizes = found["bytes"], row["their_estimate_bytes"]
        percent = [100 * (size - measured) / measured for size in sizes]
        for rows, error in zip(errors.values(), percent):
            rows.append(error)
        ours, theirs = (f"{error:+.1f} %" for error in percent)
        unknown = ", ".join(name.removesuffix(" workspaces") for name in found["unknown"])
        print(
            f"| [{row['name']}]({row['source']}) | {measured // MIB:,} | {found['bytes'] // MIB:,} "
            f"| {ours} | {theirs} | {unknown} |",
            flush=True,
        )
    print(f"\n{len(errors['of xMem'])} rows; medians of the errors without their signs: ", end="")
    print(", ".join(f"{statistics.median(map(abs, e)):.1f} % {n}" for n, e in errors.items()))


def _figures(row: dict[str, Any]) -> dict[str, Any]:
    need = estimate(row).keep_all
    return {"bytes": need.bytes, "unknown": need.unknown}


if __name__ == "__main__":
    main()
