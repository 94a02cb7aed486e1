"""Finds known differences between the traced step and eager PyTorch.

An estimate is of the traced step, which ``ckplan.torch`` runs. Models and operators may behave
differently while they are traced, and on a CPU.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from torch import fx

_SCANS = ("associative_scan", "scan", "while_loop", "map_impl")
"""Operators of ``torch._higher_order_ops``. PyTorch may inline the first one."""
_ATTENTION = "scaled_dot_product_attention"
_MOVES = ("reshape", "view", "contiguous", "transpose", "permute", "clone", "to")
_VIEWS = ("instance_norm", "view", "reshape", "flatten", "transpose", "permute", "select", "narrow")
"""Operations whose results are mostly views."""


def differences(module: fx.GraphModule) -> list[str]:
    """Returns how a TorchDynamo graph is known to differ from eager PyTorch, in words."""
    nodes = [node for node in _nodes(module) if node.op in ("call_function", "call_method")]
    scans = {name for name in map(_name, nodes) if name in _SCANS}
    if any(_SCANS[0] in str(node.meta.get("stack_trace")) for node in nodes):
        scans.add(_SCANS[0])
    found = [
        f"{name} runs as one operation of whole sequences, but in eager mode the model may loop "
        "over them"
        for name in sorted(scans)
    ]
    if any(_has_repeated_heads(node) for node in nodes):
        found.append(
            "keys and values are repeated for all heads before attention, but in eager mode "
            "transformers models leave that to the kernel"
        )
    if any(_writes_view(node) for node in nodes):
        found.append(
            "an in-place operation on a view, such as LeakyReLU(inplace=True) after InstanceNorm, has "
            "its gradient copied twice; in eager mode both copies are held together"
        )
    if any(_name(node) == "dropout" and _is_training(node) for node in nodes):
        found.append(
            "dropout keeps masks of one byte for each element, as on a GPU; in eager mode a CPU "
            "keeps factors of the tensor's type"
        )
    return found


def _nodes(module: fx.GraphModule) -> Iterator[fx.Node]:
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            yield from part.graph.nodes


def _name(node: fx.Node) -> str:
    target: Any = node.target
    return target if isinstance(target, str) else str(getattr(target, "__name__", target))


def _has_repeated_heads(node: fx.Node) -> bool:
    """Returns whether the keys of an attention are the result of an explicit expansion."""
    if _name(node) != _ATTENTION:
        return False
    keys = _argument(node, 1, "key", None)
    while isinstance(keys, fx.Node):
        if _name(keys) in ("expand", "repeat_interleave"):
            return True
        if _name(keys) not in _MOVES:
            return False
        keys = next(iter(keys.all_input_nodes), None)
    return False


def _writes_view(node: fx.Node) -> bool:
    """Returns whether the operation writes its first argument, a view, in place."""
    first = node.args[0] if node.args else None
    if not isinstance(first, fx.Node) or _name(first) not in _VIEWS:
        return False
    return _name(node).endswith("_") or bool(_argument(node, _position(node), "inplace", False))


def _position(node: fx.Node) -> int:
    """Returns the position of ``inplace`` among the function's parameters."""
    try:
        names = list(inspect.signature(node.target).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # A method, or a function in C++.
        return len(node.args)
    return names.index("inplace") if "inplace" in names else len(node.args)


def _is_training(node: fx.Node) -> bool:
    """Returns whether a dropout may drop something."""
    return bool(_argument(node, 1, "p", 0.5)) and bool(_argument(node, 2, "training", True))


def _argument(node: fx.Node, position: int, name: str, default: Any) -> Any:
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)
