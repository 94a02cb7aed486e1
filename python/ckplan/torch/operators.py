"""What kind of operation a node of a joint graph is: by its schema and its tags."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

_COLLECTIVES = frozenset(
    {"_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "c10d"}
)

# Choices of a router or a search. A second run on values that differ in the last bit could choose
# otherwise than the first, and the results are small.
_CHOICES = frozenset(
    {"aten::topk", "aten::sort", "aten::argsort", "aten::argmax", "aten::argmin", "aten::nonzero"}
)

_TRAINING_BATCH_NORMS = frozenset(
    {"aten::_native_batch_norm_legit_functional", "aten::_batch_norm_with_update_functional"}
)

# Arguments that switch randomness off where they are zero.
_PROBABILITIES = ("dropout_p", "p", "dropout")


def schema_name(node: fx.Node) -> str:
    """The name in the operator's schema, such as ``aten::relu``; empty if it has none."""
    return node.target._schema.name if isinstance(node.target, OpOverload) else ""


def argument(node: fx.Node, name: str, default: Any = None) -> Any:
    """The value of the argument ``name`` of the schema, or its default, or ``default``."""
    if not isinstance(node.target, OpOverload):
        return default
    for position, declared in enumerate(node.target._schema.arguments):
        if declared.name != name:
            continue
        if name in node.kwargs:
            return node.kwargs[name]
        if position < len(node.args):
            return node.args[position]
        return declared.default_value if declared.has_default_value() else default
    return default


def is_mutation(node: fx.Node) -> bool:
    """Whether it writes to one of its arguments."""
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def is_declared_view(node: fx.Node) -> bool:
    """Whether its schema says that its result may be in the memory of an argument."""
    if not isinstance(node.target, OpOverload):
        return False
    returns = node.target._schema.returns
    return any(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def is_collective(node: fx.Node) -> bool:
    """Whether it talks to other processes."""
    return schema_name(node).split("::")[0] in _COLLECTIVES


def is_random(node: fx.Node) -> bool:
    """Whether it draws from a random number generator."""
    if schema_name(node).startswith("prims::inductor_seed"):
        return True
    if not isinstance(node.target, OpOverload):
        return False
    if torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    declared = {a.name for a in node.target._schema.arguments}
    chances = [argument(node, name) for name in _PROBABILITIES if name in declared]
    return not any(isinstance(p, (int, float)) and p == 0 for p in chances)


def runs_once(node: fx.Node) -> bool:
    """Whether a second run could do harm: communication, and choices that must not change."""
    return is_collective(node) or schema_name(node) in _CHOICES


def ignores_running_statistics(node: fx.Node) -> bool:
    """Whether what is read of it does not depend on the running statistics that it is given."""
    return schema_name(node) in _TRAINING_BATCH_NORMS and argument(node, "training", True) is True


def module_path(node: fx.Node) -> str:
    """The path of the innermost module that the operation, or its forward one, belongs to."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    if not stack:
        return ""
    path: str = list(stack.values())[-1][0]
    # TorchDynamo writes L['self'].layers._modules['0'] for the layers.0 of what is compiled.
    path = path.replace("._modules['", ".").replace("']", "")
    path = path.removeprefix("L['").removeprefix("G['")
    root, _, rest = path.partition(".")
    return rest if root in ("self", "fn", "mod") else path
