"""Classifies the operations of a joint graph's nodes by their schemas and tags."""

from __future__ import annotations

import operator
import re
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from ckplan.torch import private

_COLLECTIVES = frozenset(
    {"_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "c10d"}
)

# Discrete choices, as in a router or a search. If values differ in the last bit, a second run could
# choose differently. The results are small, so these operations run only once.
_CHOICES = frozenset(
    {"aten::topk", "aten::sort", "aten::argsort", "aten::argmax", "aten::argmin", "aten::nonzero"}
)

_ALLOCATIONS = frozenset(
    {"aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty_strided"}
)

_TRAINING_BATCH_NORMS = frozenset(
    {"aten::_native_batch_norm_legit_functional", "aten::_batch_norm_with_update_functional"}
)

_CHILD = re.compile(r"(?:\.__dict__\['_modules'\]|\._modules)\['([^']*)'\]")

# The variable that holds the outermost module. A module compiled in place is the object of a bound
# method, or the first argument of a decorated forward.
_ROOT = re.compile(r"[LG]\['(\w+)'\](?:\[0\])?(?:\.__self__)?\.?(.*)")
_ROOTS = frozenset({"self", "fn", "mod", "args"})

# Arguments that turn randomness off if they are zero.
_PROBABILITIES = ("dropout_p", "p", "dropout")

# PyTorch's own namespaces: a second run of their operators computes the same.
_OWN = frozenset({"aten", "prims", "prim", "rngprims", "quantized", "inductor", "inductor_prims"})

_SIZES = frozenset(
    {
        "aten::sym_size",
        "aten::sym_stride",
        "aten::sym_numel",
        "aten::sym_storage_offset",
        "aten::_local_scalar_dense",
        "aten::item",
        "aten::_assert_scalar",
        "aten::sym_constrain_range",
        "aten::sym_constrain_range_for_size",
    }
)

_repeatable: set[str] = set()


def may_run_again(*names: str) -> None:
    """Declares that operators compute the same when they run again, so plans may recompute them.

    names: operators such as ``"mylib::scale"``, or names of Triton kernels. By default plans run
        operators that are not PyTorch's own only once, because they may have side effects.

    Raises ValueError for an invalid name.
    """
    for name in names:
        if not isinstance(name, str) or not name.replace("::", "").isidentifier():
            raise ValueError(f'{name!r} is not the name of an operator, such as "mylib::scale"')
    _repeatable.update(names)


def name_of(node: fx.Node) -> str:
    """Returns the name of an operator or kernel, even inside PyTorch's wrappers."""
    wrapper = private.opaque_operator(node.target)
    if wrapper is None:
        return schema_name(node)
    if wrapper.startswith("triton"):
        return private.kernel_name(node.kwargs["kernel_idx"])  # type: ignore[arg-type]
    inner = node.args[0]
    return inner._schema.name if isinstance(inner, OpOverload) else wrapper


def is_opaque(node: fx.Node) -> bool:
    """Returns whether only the result sizes of an operation are known, as for custom operators."""
    if private.opaque_operator(node.target) is not None:
        return True
    namespace = schema_name(node).split("::")[0]
    return namespace not in _OWN and bool(namespace) and not is_collective(node)


def is_number(node: fx.Node) -> bool:
    """Returns whether an operation computes or checks numbers, such as sizes, not tensors."""
    value = node.meta.get("val")
    if node.op != "call_function" or isinstance(value, torch.Tensor) or _has_tensor(value):
        return False
    if isinstance(node.target, OpOverload):
        return schema_name(node) in _SIZES
    kinds = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)
    return node.target is not operator.getitem and isinstance(value, kinds)


def _has_tensor(value: Any) -> bool:
    leaves = torch.utils._pytree.tree_leaves(value)
    return any(isinstance(leaf, torch.Tensor) for leaf in leaves)


def schema_name(node: fx.Node) -> str:
    """Returns the name in the operator's schema, such as ``aten::relu``, or ""."""
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


def only_allocates(operator: Any) -> bool:
    """Returns whether a call makes an empty tensor or a view, and runs nothing on a device."""
    if not isinstance(operator, OpOverload):
        return False
    schema = operator._schema
    if schema.name in _ALLOCATIONS or schema.name.startswith("prim::"):
        return True
    return any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)


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
    """Returns whether a second run is unsafe: communication, choices, unknown operators."""
    if is_collective(node) or schema_name(node) in _CHOICES:
        return True
    return is_opaque(node) and name_of(node) not in _repeatable


def ignores_running_statistics(node: fx.Node) -> bool:
    """Returns whether its results are independent of the running statistics that it reads."""
    return schema_name(node) in _TRAINING_BATCH_NORMS and argument(node, "training", True) is True


def call_root_self(module: fx.GraphModule, name: str) -> None:
    """Renames the outermost module's variable ``name`` to ``self`` in a graph's module paths."""
    root = f"L['{name}']"
    for node in module.graph.nodes:
        stack = node.meta.get("nn_module_stack") or {}
        for key, (path, kind) in stack.items():
            if path.startswith(root):
                stack[key] = "L['self']" + path.removeprefix(root), kind


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
