"""Explains why a model cannot be planned, or not as one graph, and what to do."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import torch
from torch import fx, nn

from ckplan.torch import private, private_autograd

_WITHOUT_KERNEL = re.compile(
    r"no fake impl registered for <CustomOpDef\(([\w:]+)\)>|unsupported operator: (\w+)\.(\w+)"
)

_DISABLED = re.compile(r"Skip calling function `<function ([\w.]+) at \w+>`")
_NO_OPERATOR = re.compile(r"does not know how to trace the builtin `([\w.]+?)\.?`")

_OPEN_SIZE = "Dynamic shape operator"
"""How TorchDynamo calls an operation with a data-dependent result size."""

_SHOWN = 2

ALLOCATOR = (
    "several graphs share the memory, so the overhead of PyTorch's allocator is not counted; set a "
    "smaller memory if training runs out of it"
)

CHECKPOINTS = (
    "the model's own gradient checkpointing is on: it may break the graph, and a plan needs none "
    "of it; turn it off, for example by model.gradient_checkpointing_disable()"
)

_NO_GRAPH = (
    "PyTorch compiled no graph of the model that has gradients, so nothing is planned and the "
    "model trains in eager mode"
)

SMALL_BYTES = 1 << 20

SMALL_PARTS = (
    "parts of the model below 1 MiB need more than their share of the budget, and are planned for "
    "the least memory that they need; summary() has a line for each"
)


def warnings_before_first_call(model: Any) -> list[str]:
    """Returns a warning for each obstacle that is visible in the modules."""
    if not isinstance(model, nn.Module):
        return []
    found = []
    hooked = [
        name
        for name, module in model.named_modules()
        if private_autograd.has_backward_hooks(module)
    ]
    if hooked:
        found.append(
            f"modules with backward hooks ({_list_names(hooked)}) and the modules that call them "
            "run in eager mode without a plan, because PyTorch does not compile them; it compiles "
            "hooks on tensors (Tensor.register_hook)"
        )
    # An attribute of transformers models.
    if any(getattr(module, "gradient_checkpointing", False) is True for module in model.modules()):
        found.append(CHECKPOINTS)
    return found


def no_graph(breaks: Collection[str]) -> str:
    """Returns the warning that nothing is planned.

    ``breaks`` has TorchDynamo's reasons for graph breaks, oldest first.
    """
    if not breaks:
        return (
            f"{_NO_GRAPH}; fullgraph=True or the environment variable TORCH_LOGS=graph_breaks "
            "shows where and why, and bounds={} allows data-dependent sizes"
        )
    reasons = dict.fromkeys(reason.strip().partition("\n")[0] for reason in breaks)
    shown = "; ".join(list(reasons)[:_SHOWN])
    more = f" and {len(reasons) - _SHOWN} more reasons" if len(reasons) > _SHOWN else ""
    where = "the environment variable TORCH_LOGS=graph_breaks shows where"
    if any(reason.startswith(_OPEN_SIZE) for reason in reasons):
        where += ", and bounds={} allows data-dependent sizes"
    return f"{_NO_GRAPH}: {shown}{more} ({where})"


def has_checkpoints(joint: fx.GraphModule) -> bool:
    """Returns whether torch.utils.checkpoint was traced into the graph."""
    return any(private.is_checkpointed(node) for node in joint.graph.nodes)


def is_trained(output: Any) -> bool:
    """Returns whether any value that a model returns requires a gradient."""
    tensors = torch.utils._pytree.tree_leaves(output)
    return any(isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in tensors)


def missing_kernel(words: str) -> str | None:
    """Returns what to register if PyTorch's message says that an operator has no fake kernel."""
    found = _WITHOUT_KERNEL.search(words)
    if found is None:
        return None
    name = found[1] or f"{found[2]}::{found[3]}"
    return (
        f"{name} has no fake kernel, so the sizes of its results are unknown before it "
        f'runs: register one with torch.library.register_fake("{name}"), a function with the same '
        "arguments that returns empty tensors of these sizes"
    )


def remedy(words: str) -> str:
    """Returns what to do if PyTorch's message says which function cannot be traced."""
    found = _DISABLED.search(words)
    if found is not None:
        return (
            f"; {found[1]} is excluded from torch.compile by torch.compiler.disable in its library: "
            "estimate the model without the code that calls it"
        )
    found = _NO_OPERATOR.search(words)
    if found is None:
        return ""
    return (
        f"; make {found[1]} an operator by torch.library.custom_op, with a fake kernel "
        "(register_fake) and a backward pass (register_autograd)"
    )


def _list_names(names: list[str], most: int = 4) -> str:
    shown = [name or "the model itself" for name in names[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")
