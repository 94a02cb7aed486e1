"""Adds metadata about the eager step to an exported file: facts that affect memory use.

The exporter drops these facts; other programs ignore the metadata (docs/loader.md lists them):

* ``ckplan.in_place`` on a node: its operation wrote its first input, as ``ReLU(inplace=True)``;
  ``view`` if that was a view of another tensor, whose gradient autograd then copies.
* ``ckplan.copies`` on a node: the inputs that its operation copies, as they are not contiguous.
* ``ckplan.origin`` on a node: the loss that the exporter decomposed into this and other nodes, as
  ``huber_loss aten.huber_loss.default``.
* ``ckplan.requires_grad`` on a parameter.
* ``ckplan.eager`` on the graph: the file has these notes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils._python_dispatch import TorchDispatchMode

from ckplan.torch import private

_FX_NODE = "pkg.torch.onnx.fx_node"
_LOSSES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
)


def add(program: Any, model: nn.Module) -> None:
    """Adds the notes to an ``ONNXProgram`` of the model."""
    graph = program.model.graph
    graph.metadata_props["ckplan.eager"] = "1"
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name in graph.initializers and not parameter.requires_grad:
            graph.initializers[name].metadata_props["ckplan.requires_grad"] = "False"
    exported = program.exported_program
    if exported is None:
        return
    written: dict[str, list[Any]] = defaultdict(list)
    for node in graph:
        written[_exported_name(node)].append(node)
    for call in exported.graph.nodes:
        if call.op != "call_function" or call.name not in written:
            continue
        if _is_in_place(call):
            note = "view" if _is_on_view(call) else "1"
            written[call.name][-1].metadata_props["ckplan.in_place"] = note
        loss = _decomposed_loss(call)
        for node in written[call.name] if loss else ():
            node.metadata_props["ckplan.origin"] = loss
        for name in _copied_arguments(call):
            _note_copy(written[call.name], name)


def _exported_name(node: Any) -> str:
    """Returns the name of the exported program's node that an ONNX node was made for."""
    text = node.metadata_props.get(_FX_NODE, "")
    return text[1:].split(" ", 1)[0] if text.startswith("%") else ""


def _note_copy(nodes: list[Any], name: str) -> None:
    """Records that these nodes, exported from one operation, read a copy of the value."""
    for node in nodes:
        positions = [i for i, value in enumerate(node.inputs) if value and value.name == name]
        if positions:
            node.metadata_props["ckplan.copies"] = ",".join(map(str, positions))


def _is_in_place(call: fx.Node) -> bool:
    """Returns whether the original operation wrote its first argument in place."""
    return any(_writes_first(target) for target in _call_targets(call.meta.get("from_node") or ()))


def _is_on_view(call: fx.Node) -> bool:
    """Returns whether an in-place operation writes to a view."""
    first = call.args[0]
    if not isinstance(first, fx.Node) or first.op != "call_function":
        return False
    result = _run_again(first)
    return isinstance(result, Tensor) and private.is_view(result)


def _run_again(call: fx.Node) -> Any:
    """Runs the operation on meta tensors, and returns the result; None if that fails."""
    args, kwargs = fx.node.map_arg((call.args, call.kwargs), lambda node: node.meta["val"])
    if not callable(call.target):
        return None
    try:
        with torch.no_grad():
            return call.target(*args, **kwargs)
    except Exception:  # For example, because of data-dependent sizes.
        return None


def _decomposed_loss(call: fx.Node) -> str:
    """Returns name and target of the loss that the node is a part of; "" if of none."""
    for source in _sources(call.meta.get("from_node") or ()):
        words = str(source.target).split(".")
        if len(words) == 3 and words[0] == "aten" and words[1] in _LOSSES:
            return f"{source.name} {source.target}"
    return ""


def _sources(nodes: Any) -> Iterator[Any]:
    for source in nodes:
        yield source
        yield from _sources(source.from_node)


def _call_targets(nodes: Any) -> Iterator[Any]:
    return (source.target for source in _sources(nodes))


def _writes_first(target: Any) -> bool:
    """Returns whether ``target``, such as ``"aten.relu_.default"``, writes its first argument."""
    words = str(target).split(".")
    return len(words) == 3 and words[0] == "aten" and words[1].endswith("_") and words[1][0] != "_"


class _Copies(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Lists the storages that operators copy to make them contiguous."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.storages: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.clone.default:
            self.storages.add(private.storage_key(args[0]))
        return func(*args, **(kwargs or {}))


def _copied_arguments(call: fx.Node) -> list[str]:
    """Returns the names of non-contiguous arguments that the operation copies.

    The operation runs on meta tensors to find out. Attention has its own kernel on each device.
    """
    sources = [node for node in call.all_input_nodes if _is_strided(node.meta.get("val"))]
    name = str(call.target)
    if not sources or "attention" in name or name.startswith(("aten.clone", "aten.copy")):
        return []
    with _Copies() as copies:
        _run_again(call)
    return [
        node.name for node in sources if private.storage_key(node.meta["val"]) in copies.storages
    ]


def _is_strided(value: Any) -> bool:
    return isinstance(value, Tensor) and not value.is_contiguous()
