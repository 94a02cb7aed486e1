"""How a limit in bytes is divided among the parts of a model.

Graph breaks divide a model into parts, as DistributedDataParallel's buckets do, and each part is a
graph of its own. PyTorch compiles a part and runs it before it comes to the next, so at the first
part nobody knows what the others need. In the first call of the model each part is therefore
planned for the least memory that greedy eviction (``dtr``) reaches, and what it needs to keep
everything is noted. For the second call all parts are planned again, each for its share: in
proportion to what it needs to keep everything, of what the parts before it have left.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field

from ckplan.torch.graph import JointGraph
from ckplan.torch.request import Request


@dataclass
class Part:
    """One part of a model. All figures are of its latest graph, and 0 where that has no plan."""

    input_bytes: int = 0
    """Parameters, buffers and inputs; but for the first part without what other parts make."""
    trained_bytes: int = 0
    """Parameters that it makes a gradient for."""
    trained: list[tuple[int, int, int]] = field(default_factory=list)
    """These parameters as JointGraph lists them."""
    keep_all_peak_bytes: int = 0
    saved_bytes: int = 0
    """What its plan keeps between the passes."""
    saved_host_bytes: int = 0
    """What its plan keeps on the host between the passes."""
    calls: int = 0
    """How often it ran in this call of the model, or waited at once for its backward pass."""


class Parts:
    """The parts of a model in the order of their first runs.

    ``known`` are all parts as the first call of the model has shown them; without it this is that
    call.
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
        """Returns the same parts for the steps from now on, in which each gets its share."""
        parts = Parts(self._request, self.found)
        parts.found = [dataclasses.replace(part, calls=0) for part in self.found]
        parts._keys = self._keys
        return parts

    def begin_call(self) -> None:
        """Notes that the model is called."""
        self._compiled.clear()
        for part in self.found:
            part.calls = 0

    def enter(self, frame: int) -> int:
        """Returns the number of the part whose graph is compiled now.

        ``frame`` is TorchDynamo's number of the function that the graph is of. What is compiled of
        it in one call of the model are several parts; in another call, with another batch size,
        they are the same parts again.
        """
        key = (frame, self._compiled[frame])
        self._compiled[frame] += 1
        if key not in self._keys:
            self._keys.append(key)
            self.found.append(Part())
        return self._keys.index(key)

    def describe(self, number: int, graph: JointGraph) -> None:
        """Notes what a part needs beside activations."""
        part = self.found[number]
        part.input_bytes = graph.parameter_bytes if number else graph.constant_bytes()
        part.trained_bytes = graph.trained_bytes
        part.trained = graph.trained

    def limit(self, number: int, is_divided: bool) -> int | str:
        """A part's limit, as ``--budget`` takes it: bytes, or ``"min"``.

        ``is_divided`` says that the part is known to be one of several.
        """
        if self.is_known(number):
            return self.share_bytes(number)
        if not is_divided:
            return self.left_bytes(number)
        self._is_least = True
        return "min"

    def note_calls(self, number: int, calls: int) -> None:
        """Notes how many calls of a part waited at once for their backward passes."""
        self.found[number].calls = max(self.found[number].calls, calls)

    def are_found(self) -> bool:
        """Whether a call has shown several parts that a limit in bytes is for, or more calls."""
        if self._request.is_relative:
            return False
        if self._known:
            return any(new.calls > old.calls for new, old in zip(self.found, self._known))
        planned = [part for part in self.found if part.keep_all_peak_bytes]
        runs = sum(part.calls for part in planned)
        return self._is_least or len(planned) > 1 or runs > len(planned)

    def is_known(self, number: int) -> bool:
        """Whether the first call has shown this part."""
        return number < len(self._known)

    def left_bytes(self, number: int) -> int:
        """What the limit leaves for a part, beside all that others keep while it runs."""
        left = self._request.limit_bytes - self._reserved_bytes(number)
        return left - sum(self._kept_bytes(earlier) for earlier in range(number))

    def host_left_bytes(self, number: int) -> int | None:
        """What the limit on host memory leaves for each call of a part; None if there is none.

        Parts before it keep their copies while it runs, and so do its own calls that wait.
        """
        limit = self._request.host_limit_bytes
        if limit is None:
            return None
        calls = [max(1, part.calls) for part in (self._known or self.found)]
        earlier = zip(self.found[:number], calls)
        left = limit - sum(part.saved_host_bytes * count for part, count in earlier)
        return max(0, left) // (calls[number] if self.is_known(number) else 1)

    def share_bytes(self, number: int) -> int:
        """The share of a known part, of what those before it have left."""
        later = self._known[number:]
        weights = [part.keep_all_peak_bytes * max(1, part.calls) for part in later]
        return self.left_bytes(number) * later[0].keep_all_peak_bytes // max(1, sum(weights))

    def _kept_bytes(self, number: int) -> int:
        """What an earlier part keeps while later ones run."""
        saved = self.found[number].saved_bytes
        if self.is_known(number) and any(part.calls > 1 for part in self._known):
            # Parts take turns, so a later one may be waiting while an earlier one has its peak:
            # each has its share throughout.
            return self._known[number].calls * max(saved, self.share_bytes(number))
        # What is compiled in this call runs in it, if it has not yet: DistributedDataParallel's
        # buckets are all compiled before the first one runs.
        return max(1, self.found[number].calls) * saved

    def _reserved_bytes(self, number: int) -> int:
        """What a limit on the total leaves no room for: inputs, parameters, optimizer's state.

        The backward pass begins with the last part: when a part's own begins, the gradients of
        later parts' parameters are there.
        """
        if not self._request.counts_tensors:
            return 0
        parts = self.found + self._known[len(self.found) :]
        trained = [part.trained_bytes for part in parts]
        state = self._request.optimizer_state(row for part in parts for row in part.trained)
        return sum(part.input_bytes for part in parts) + state + sum(trained[number + 1 :])
