"""A step that Inductor has lowered, and the interface for deciding how to partition a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import fx

Partition = Callable[..., Any]
"""A partitioner: takes a joint graph's module, its inputs and options."""


class KnownPartition:
    """A partitioner with known results, for which Inductor's passes can be skipped."""

    def __init__(self, modules: Callable[[], tuple[fx.GraphModule, fx.GraphModule]]):
        self._modules = modules

    def __call__(self, *_: Any, **__: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        return self._modules()


Call = Callable[[list[Any]], Any]


class NotReplayedError(Exception):
    """Inductor's code for a graph cannot be replayed. The text says why."""


@dataclass(frozen=True)
class Flags:
    """How Inductor may fuse."""

    near: bool = False
    """Fuse only operations that are close to each other, and only if no peak grows."""
    worth_bytes: int = 0
    """End a CPU kernel where at least this many bytes can be freed; 0 leaves it to Inductor."""


class Module:
    """Replaces the module of a wrapper for Inductor; ``run`` may be replaced.

    Kernels are compiled when it is loaded, possibly after Inductor has finished.
    """

    def __init__(self, make: Callable[[], Any]):
        self.__file__ = ""
        self.runner: Any = None
        self.names: dict[str, Any] = {}
        """The module's namespace. Inductor caches modules, so equal wrappers share it."""
        self.run: Call = _is_not_loaded
        self._make: Callable[[], Any] | None = make

    def load(self) -> None:
        assert self._make is not None, "it is loaded once"
        module = self._make()
        self._make = None  # It keeps Inductor's graph alive.
        self.__file__, self.names, self.run = module.__file__, vars(module), module.call
        self.runner = getattr(module, "runner", None)

    def call(self, arguments: list[Any]) -> Any:
        return self.run(arguments)


def _is_not_loaded(_: list[Any]) -> Any:
    raise AssertionError("this wrapper was never loaded")


@dataclass
class Wrapper:
    """The code that Inductor generated for one graph."""

    text: str
    is_backward: bool
    inputs: list[Any]
    """Tensors without memory, with the sizes and strides of its inputs."""
    constants: dict[str, Any]
    """What it reads besides its inputs, by name."""
    module: Module | None = None
    """The module that runs it, once loaded; hand-written wrappers have none."""


@dataclass
class UnloadedStep:
    """A lowered step that only needs to be loaded."""

    function: Any
    metadata: dict[str, Any]
    """AOT autograd's metadata for this step."""


@dataclass
class Step:
    """The two wrappers of a step, and AOT autograd's facts about them."""

    wrappers: list[Wrapper] = field(default_factory=list)
    num_outputs: int = 0
    """How many outputs of the forward wrapper, which come first, are not saved for backward."""
    num_updated: int = 0
    """How many of these are new values of inputs, which are freed once they are copied."""
    reused: list[int] = field(default_factory=list)
    """The positions of saved tensors whose memory the backward wrapper may write to."""
    finished: UnloadedStep | None = None
    """The function that runs the step, if AOT autograd has finished too."""

    @property
    def forward(self) -> Wrapper:
        return self._wrapper(False)

    @property
    def backward(self) -> Wrapper:
        return self._wrapper(True)

    def _wrapper(self, is_backward: bool) -> Wrapper:
        found = [row for row in self.wrappers if row.is_backward == is_backward]
        if len(found) != 1:
            name = "backward" if is_backward else "forward"
            raise NotReplayedError(f"Inductor generated {len(found)} {name} wrappers; expected 1")
        return found[0]


Lower = Callable[[Partition, Flags], Step]


class Decision:
    """Decides how ``compile`` partitions each joint graph."""

    is_to_run = True
    """Whether a lowered step may later run."""

    def decide(self, lower: Lower) -> Step | Partition:
        """Returns a step to run, from ``lower``, or a partitioner.

        ``lower`` shows what Inductor would make of the graph.
        """
        raise NotImplementedError

    def compiled(self, step: Step) -> None:
        """A hook that gets the wrappers that will run."""
        raise NotImplementedError


class FixedPartition(Decision):
    """Always uses one partitioner, without trying others."""

    def __init__(self, partition: Partition):
        self._partition = partition

    def decide(self, lower: Lower) -> Partition:
        return self._partition

    def compiled(self, step: Step) -> None:
        pass
