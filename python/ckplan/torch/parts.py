"""Divides a limit in bytes among the parts of a model.

Graph breaks divide a model into parts, as DistributedDataParallel's buckets do, and each part is a
graph of its own. PyTorch compiles and runs a part before the next, so the needs of later parts are
unknown at first. In the first call of the model, each part is therefore planned for the least
memory that greedy eviction (``dtr``) reaches, and its keep-all peak is recorded. For the second
call, each
part is planned again for its share: the memory that earlier parts leave is divided in proportion to
keep-all peaks.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field

from ckplan.torch.graph import JointGraph
from ckplan.torch.request import Request


@dataclass
class Part:
    """One part of a model. All figures are of its latest graph, or 0 without a plan."""

    input_bytes: int = 0
    """Bytes of parameters and buffers; for the first part also of inputs."""
    trained_bytes: int = 0
    """Bytes of parameters that get a gradient."""
    trained: list[tuple[int, int, int]] = field(default_factory=list)
    """Those parameters, as in ``JointGraph.trained``."""
    keep_all_peak_bytes: int = 0
    saved_bytes: int = 0
    """Bytes that its plan saves for backward."""
    saved_host_bytes: int = 0
    """Bytes that its plan keeps on the host between the passes."""
    calls: int = 0
    """How many of its runs wait for backward at the same time, in one call of the model."""


class Parts:
    """The parts of a model in the order of their first runs.

    ``known``: all parts, as found in the first call of the model; None during that call.
    """

    def __init__(self, request: Request, known: list[Part] | None = None):
        self.found: list[Part] = []
        self._request = request
        self._known = known or []
        self._is_least = False
        self._keys: list[tuple[int, int]] = []
        # How many graphs of each frame were compiled in this call of the model.
        self._compiled: Counter[int] = Counter()

    def shared(self) -> Parts:
        """Returns the same parts, for steps in which each gets its share."""
        parts = Parts(self._request, self.found)
        parts.found = [dataclasses.replace(part, calls=0) for part in self.found]
        parts._keys = self._keys
        return parts

    def begin_call(self) -> None:
        """Records that a call of the model begins."""
        self._compiled.clear()
        for part in self.found:
            part.calls = 0

    def enter(self, frame: int) -> int:
        """Returns the number of the part whose graph is compiled now.

        ``frame`` is TorchDynamo's number of the compiled function. Graphs of it within one call of
        the model are different parts; in another call, for instance with another batch size, they
        are the same parts again.
        """
        key = (frame, self._compiled[frame])
        self._compiled[frame] += 1
        if key not in self._keys:
            self._keys.append(key)
            self.found.append(Part())
        return self._keys.index(key)

    def describe(self, number: int, graph: JointGraph) -> None:
        """Records what a part needs besides activations."""
        part = self.found[number]
        part.input_bytes = graph.parameter_bytes if number else graph.constant_bytes()
        part.trained_bytes = graph.trained_bytes
        part.trained = graph.trained

    def limit(self, number: int, is_divided: bool) -> int | str:
        """Returns a part's limit: bytes, or ``"min"``.

        ``is_divided`` means that the part is known to be one of several.
        """
        if self.is_known(number):
            return self.share_bytes(number)
        if not is_divided:
            return self.left_bytes(number)
        self._is_least = True
        return "min"

    def note_calls(self, number: int, calls: int) -> None:
        """Records how many calls of a part waited for backward at the same time."""
        self.found[number].calls = max(self.found[number].calls, calls)

    def are_found(self) -> bool:
        """Returns whether a call has revealed several parts, or more calls, that share a limit."""
        if self._request.is_relative:
            return False
        if self._known:
            return any(new.calls > old.calls for new, old in zip(self.found, self._known))
        planned = [part for part in self.found if part.keep_all_peak_bytes]
        runs = sum(part.calls for part in planned)
        return self._is_least or len(planned) > 1 or runs > len(planned)

    def is_known(self, number: int) -> bool:
        """Returns whether the first call found this part."""
        return number < len(self._known)

    def left_bytes(self, number: int) -> int:
        """Returns the bytes that the limit leaves for a part while others keep theirs."""
        left = self._request.limit_bytes - self._reserved_bytes(number)
        return left - sum(self._kept_bytes(earlier) for earlier in range(number))

    def host_left_bytes(self, number: int) -> int | None:
        """Returns the host bytes left for each call of a part; None without a limit.

        Earlier parts, and the part's own waiting calls, keep their copies while it runs.
        """
        limit = self._request.host_limit_bytes
        if limit is None:
            return None
        calls = [max(1, part.calls) for part in (self._known or self.found)]
        earlier = zip(self.found[:number], calls)
        left = limit - sum(part.saved_host_bytes * count for part, count in earlier)
        return max(0, left) // (calls[number] if self.is_known(number) else 1)

    def share_bytes(self, number: int) -> int:
        """Returns a known part's share of the memory that earlier parts leave."""
        later = self._known[number:]
        weights = [part.keep_all_peak_bytes * max(1, part.calls) for part in later]
        return self.left_bytes(number) * later[0].keep_all_peak_bytes // max(1, sum(weights))

    def _kept_bytes(self, number: int) -> int:
        """Returns the bytes that an earlier part keeps while later ones run."""
        saved = self.found[number].saved_bytes
        if self.is_known(number) and any(part.calls > 1 for part in self._known):
            # Parts take turns, so a later one may be waiting while an earlier one has its peak:
            # each has its share throughout.
            return self._known[number].calls * max(saved, self.share_bytes(number))
        # A part may not have run yet: all buckets of DistributedDataParallel are compiled before
        # the first one runs.
        return max(1, self.found[number].calls) * saved

    def _reserved_bytes(self, number: int) -> int:
        """Returns the bytes of a total limit taken by inputs, parameters and optimizer state.

        The backward pass begins with the last part, so when a part's own begins, the gradients of
        later parts' parameters exist.
        """
        if not self._request.counts_tensors:
            return 0
        parts = self.found + self._known[len(self.found) :]
        trained = [part.trained_bytes for part in parts]
        state = self._request.optimizer_state(row for part in parts for row in part.trained)
        return sum(part.input_bytes for part in parts) + state + sum(trained[number + 1 :])
