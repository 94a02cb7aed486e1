"""Classifies the operations of a joint graph's nodes by their schemas and tags."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

_COLLECTIVES = frozenset(
    {"_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "c10d"}
)

# Choices of a router or a search. A second run on values that differ in the last bit could choose
# differently, and the results are small, so these operations run only once.
_CHOICES = frozenset(
    {"aten::topk", "aten::sort", "aten::argsort", "aten::argmax", "aten::argmin", "aten::nonzero"}
)

_TRAINING_BATCH_NORMS = frozenset(
    {"aten::_native_batch_norm_legit_functional", "aten::_batch_norm_with_update_functional"}
)

_CHILD = re.compile(r"(?:\.__dict__\['_modules'\]|\._modules)\['([^']*)'\]")

# The variable that has the outermost module; a module that is compiled in place is the object of a
# bound method, or the first argument of a decorated forward.
_ROOT = re.compile(r"[LG]\['(\w+)'\](?:\[0\])?(?:\.__self__)?\.?(.*)")
_ROOTS = frozenset({"self", "fn", "mod", "args"})

# Arguments that switch randomness off if they are zero.
_PROBABILITIES = ("dropout_p", "p", "dropout")


def schema_name(node: fx.Node) -> str:
    """Returns the name in the operator's schema, such as ``aten::relu``, or "" if it has none."""
    return node.target._schema.name if isinstance(node.target, OpOverload) else ""


def argument(node: fx.Node, name: str, default: Any = None) -> Any:
    """Returns the argument ``name`` of the schema, or its default, or ``default``."""
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
    """Returns whether the operation writes to one of its arguments."""
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def is_declared_view(node: fx.Node) -> bool:
    """Returns whether the schema says that the result may share an argument's memory."""
    if not isinstance(node.target, OpOverload):
        return False
    returns = node.target._schema.returns
    return any(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def is_collective(node: fx.Node) -> bool:
    """Returns whether the operation communicates with other processes."""
    return schema_name(node).split("::")[0] in _COLLECTIVES


def is_random(node: fx.Node) -> bool:
    """Returns whether the operation draws from a random number generator."""
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
    """Returns whether a second run could do harm: communication, and fixed choices."""
    return is_collective(node) or schema_name(node) in _CHOICES


def ignores_running_statistics(node: fx.Node) -> bool:
    """Returns whether no result that is read depends on the running statistics passed in."""
    return schema_name(node) in _TRAINING_BATCH_NORMS and argument(node, "training", True) is True


def module_path(node: fx.Node) -> str:
    """Returns the path of the innermost module of the operation, or of its forward operation."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    if not stack:
        return ""
    # TorchDynamo writes L['self'].layers._modules['0'] for the module layers.0, and sometimes
    # .__dict__['_modules'] for ._modules.
    path: str = list(stack.values())[-1][0]
    path = _CHILD.sub(r".\1", path)
    found = _ROOT.fullmatch(path)
    if found is None:
        return path
    root, rest = found.groups()
    return rest if root in _ROOTS else ".".join(filter(None, (root, rest)))
