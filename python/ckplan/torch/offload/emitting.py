"""Writes transfers into the graph of a module.

Modules that run as eager operations call the methods of a HostMemory. Modules for a compiler call
PyTorch's own operators ``ao::offload``, ``ao::reload`` and ``ao::wait_tensor``, which need a GPU;
these graphs have not been run.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import fx

from ckplan.torch import private
from ckplan.torch.offload.host import HostMemory
from ckplan.torch.offload.steps import IN, OUT
from ckplan.torch.operators import schema_name


class Emitter(Protocol):
    """Adds the operations of transfers to a graph. Each method returns the new node.

    ``waits_before_backward``: all copies back must be complete when the forward module ends.
    """

    waits_before_backward: bool

    def out(self, graph: fx.Graph, source: fx.Node, offset: int) -> fx.Node:
        """Begins a copy to the host."""
        ...

    def drop(self, graph: fx.Graph, host: fx.Node, source: fx.Node, poisons: bool) -> fx.Node:
        """Waits for the copy, then frees ``source``. ``poisons``: nothing else holds it."""
        ...

    def load(self, graph: fx.Graph, host: fx.Node) -> fx.Node:
        """Begins the copy back. ``host.meta["host_copy_of"]`` is the original."""
        ...

    def wait(self, graph: fx.Graph, loaded: fx.Node, host: fx.Node) -> fx.Node:
        """Waits for the copy back."""
        ...


class Eager:
    """Emits calls of a HostMemory."""

    waits_before_backward = False

    def __init__(self, memory: HostMemory):
        self._memory = memory

    def out(self, graph: fx.Graph, source: fx.Node, offset: int) -> fx.Node:
        made = graph.call_function(self._memory.out, (source, offset))
        return _host_of(made, source)

    def drop(self, graph: fx.Graph, host: fx.Node, source: fx.Node, poisons: bool) -> fx.Node:
        return _same(graph.call_function(self._memory.drop, (host, source, poisons)), host)

    def load(self, graph: fx.Graph, host: fx.Node) -> fx.Node:
        device = host.meta["host_copy_of"].device
        return _loaded(graph.call_function(self._memory.load, (host, device)), host)

    def wait(self, graph: fx.Graph, loaded: fx.Node, host: fx.Node) -> fx.Node:
        return _same(graph.call_function(self._memory.wait, (loaded, host)), loaded)


class Compiled:
    """Emits PyTorch's operators, which manage their events and pinned memory themselves.

    They do not hold the memory that they copy into. If the backward pass never ran, that memory
    could be reused during the copy, so the forward module waits.
    """

    waits_before_backward = True

    def __init__(self) -> None:
        self._operators: Any = private.offload_operators()

    def out(self, graph: fx.Graph, source: fx.Node, offset: int) -> fx.Node:
        made = graph.call_function(self._operators.offload.default, (source,))
        return _host_of(made, source)

    def drop(self, graph: fx.Graph, host: fx.Node, source: fx.Node, poisons: bool) -> fx.Node:
        wait = self._operators.wait_tensor.default
        return _same(graph.call_function(wait, (host, source)), host)

    def load(self, graph: fx.Graph, host: fx.Node) -> fx.Node:
        like = host.meta["host_copy_of"]
        arguments = (host, like.device, list(like.shape), list(like.stride()))
        return _loaded(graph.call_function(self._operators.reload.default, arguments), host)

    def wait(self, graph: fx.Graph, loaded: fx.Node, host: fx.Node) -> fx.Node:
        return _same(graph.call_function(self._operators.wait_tensor.default, (loaded,)), loaded)


def kind_of(node: fx.Node) -> str | None:
    """Returns ``out`` for a node that makes a host copy, and ``in`` for one that copies back."""
    function = getattr(node.target, "__func__", None)
    names = {HostMemory.out: OUT, HostMemory.load: IN, "ao::offload": OUT, "ao::reload": IN}
    return names.get(function or schema_name(node))


def _host_of(made: fx.Node, source: fx.Node) -> fx.Node:
    value: torch.Tensor = source.meta["val"]
    made.meta["val"] = value.new_empty_strided(value.shape, value.stride(), device="cpu")
    made.meta["host_copy_of"] = value
    return made


def _loaded(made: fx.Node, host: fx.Node) -> fx.Node:
    """Gives a copy back the fake tensor of its original, because their views share its storage.

    For some views, only the shared storage reveals them: ``_unsafe_view`` declares none.
    """
    made.meta["val"] = host.meta["host_copy_of"]
    return made


def _same(made: fx.Node, source: fx.Node) -> fx.Node:
    """Gives a node the metadata of the node whose tensor it returns."""
    notes = ("val", "host_copy_of")
    made.meta.update({key: source.meta[key] for key in notes if key in source.meta})
    return made
