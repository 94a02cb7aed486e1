"""Runs one graph of a model as eager operations: its two modules, and the memory they need.

The first step is measured: all calls of the graph that it makes, and their backward passes. After
it, it is known which results the caller dropped, and for which results no gradient came. If a plan
without these results needs less memory, later calls run by that plan (the *lean* one). The lean
plan saves one tensor through AOT autograd, because AOT autograd expects as many saved values as the
first plan has. Its own saved values are attached to that tensor. A plan for the graph's share of
a limit takes the place of the first one in the same way.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

import ckplan
from ckplan.torch import private
from ckplan.torch.capture import is_tangent
from ckplan.torch.dropping import (
    HELD_AFTER_ALL,
    NO_LOSS,
    Unused,
    beyond_the_loss,
    inputs_kept,
    random_devices,
    saving_again,
)
from ckplan.torch.errors import UnsupportedGraphError
from ckplan.torch.offload.host import settled
from ckplan.torch.randomness import generator_state, set_generator_state
from ckplan.torch.report import GraphReport
from ckplan.torch.tracker import Tracker
from ckplan.torch.waiting import Results, Waiting, first_made

if TYPE_CHECKING:
    from ckplan.torch.backend import Backend


@dataclass
class Built:
    """The modules that a plan was built into, and which gradients are counted apart."""

    forward: fx.GraphModule
    backward: fx.GraphModule
    apart: list[int]


@dataclass
class _Lean:
    """Another plan than the first: for a caller that does not use all results, or for a share."""

    forward: Callable[[list[Any]], Any]
    backward: Callable[[list[Any]], Any]
    apart: list[int]
    unused: Unused
    save_again: Callable[[list[Any]], Any] | None
    """Serves gradients that arrive although the plan has none; None if it has all."""
    inputs_read: list[int]
    """The positions of inputs whose values ``save_again`` needs."""
    devices: list[torch.device]


@dataclass
class _Call:
    """The values that one call of a lean forward module leaves for its backward pass."""

    lean: _Lean
    inputs: list[Any]
    states: list[torch.Tensor]
    saved: list[Any] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    input_versions: list[int] = field(default_factory=list)

    def save(self, tensors: list[Any]) -> None:
        self.saved = tensors
        self.versions = [_version(tensor) for tensor in tensors]
        self.input_versions = [_version(tensor) for tensor in self.inputs]

    def check(self) -> None:
        """Raises RuntimeError if a saved tensor has changed since forward, as PyTorch does."""
        _check_unchanged(zip(self.saved, self.versions))

    def check_inputs(self) -> None:
        """Raises RuntimeError if an input that a second run would read was changed."""
        pairs = list(zip(self.inputs, self.input_versions))
        _check_unchanged(pairs[position] for position in self.lean.inputs_read)


class Step:
    """Gives AOT autograd the modules of one graph of a model, and runs them.

    ``uses_loss_alone`` says that the caller has promised not to use other results.
    """

    def __init__(self, backend: Backend, part: int, uses_loss_alone: bool):
        self._backend = backend
        self._part = part
        self._uses_loss_alone = uses_loss_alone
        self._entry = GraphReport(part)
        self._first_entry: dict[str, Any] = {}
        self._apart: list[int] = []
        self._tracker: Tracker | None = None
        self._is_begun = False
        # Some of the saved values are sizes that depend on data. They are the first ones that
        # the backward module takes, and the last ones that the forward module returns.
        self._num_outputs = self._num_saved = self._num_numbers = 0
        self._first_made: int | None = None
        self._forward: fx.GraphModule | None = None
        self._tangents: list[torch.Tensor] = []
        self._is_open = False
        self._waiting = Waiting()
        self._latest: tuple[int, Results] | None = None
        self._node_type: type[Any] | None = None
        # The joint graph and its options, as long as another plan of it may be made.
        self._joint: tuple[fx.GraphModule, dict[str, Any]] | None = None
        self._unused: Unused | None = None
        self._lean: _Lean | None = None
        self._has_left = False
        # The division of the limit that the present plan is for, and whether there was another.
        self._parts = backend.parts
        self._has_share = False

    def is_waiting(self) -> bool:
        """Returns whether a forward pass waits for its backward pass."""
        return self._waiting.count() > 0

    def partition(self, joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        self._num_outputs = options["num_fwd_outputs"]
        modules = self._plan_for_loss(joint, options) if self._uses_loss_alone else None
        if modules is None:
            self._uses_loss_alone = False
            modules, self._entry, self._apart = self._backend.plan(
                self._part, joint, inputs, **options
            )
            if self._entry.plan is not None:
                self._begin(modules[0])
                self._joint = joint, options
        return modules

    def _begin(self, forward: fx.GraphModule) -> None:
        self._forward = forward
        self._first_made = first_made(forward, self._num_outputs)
        (output,) = forward.graph.find_nodes(op="output")
        saved = output.args[0][self._num_outputs :]
        self._num_saved = len(saved)
        self._num_numbers = sum(_is_number(node) for node in saved)
        self._tracker = Tracker()

    def _plan_for_loss(self, joint: fx.GraphModule, options: dict[str, Any]) -> Any:
        """Returns the modules for a caller that uses only the loss; None without such a plan."""
        unused = beyond_the_loss(joint, self._num_outputs)
        if unused is None:
            self._backend.report.say(NO_LOSS)
        if not unused or unused == Unused():
            return None
        found = self._backend.plan_for_loss(self._part, joint, options, unused)
        if found is None:
            return None
        everything, self._entry, planned = found
        self._apart = everything.apart
        self._begin(everything.forward)
        self._lean = self._make_lean(planned, unused)
        self._joint = joint, options
        if self._lean is None:  # Forward could not run again for other results.
            self._backend.report.graphs.remove(self._entry)
            return None
        return everything.forward, everything.backward

    def compile_forward(self, module: fx.GraphModule, _: Any) -> Callable[[list[Any]], Any]:
        call = settled(private.box(module))

        def run(arguments: list[Any]) -> Any:
            self._choose()
            lean = self._lean
            results = self._run_lean(lean, arguments) if lean else self._measure(call, arguments)
            if self._first_made is not None:
                made = results[self._num_outputs + self._first_made]
                self._latest = private.storage_key(made), Results(results[: self._num_outputs])
                self._waiting.begin(made, self._latest[1])
            return results

        return private.mark_boxed(run)

    def compile_backward(self, module: fx.GraphModule, _: Any) -> Callable[[list[Any]], Any]:
        call = settled(private.box(module))
        inputs = module.graph.find_nodes(op="placeholder")
        self._tangents = [node.meta["val"] for node in inputs if is_tangent(node)]
        sizes = [size for tangent in self._tangents for size in tangent.shape]
        self._is_open = not all(isinstance(size, int) for size in sizes)
        self._num_saved = next((i for i, n in enumerate(inputs) if is_tangent(n)), len(inputs))

        def run(arguments: list[Any]) -> Any:
            self._backend.constraints.check()  # Now all graphs of a call are known.
            self._entry.calls = max(self._entry.calls, self._waiting.count())
            if self._tracker is not None:
                self._tracker.forget_dead()
            gradients = self._run_backward(call, arguments)
            if self._tracker is not None and not self.is_waiting():
                self._entry.measured_peak_bytes = self._tracker.peak_bytes()
                self._entry.measured_host_peak_bytes = self._tracker.host_peak_bytes()
                self._tracker = None
                _warn_above_plan(self._entry)
            return gradients

        return private.mark_boxed(run)

    def returned(self, outputs: Sequence[Any]) -> None:
        """Records which results of the last forward pass the caller got."""
        if self._latest is None:
            return
        (made, results), self._latest = self._latest, None
        results.returned(outputs)
        if private.uses_compiled_autograd():
            return
        for node in private.compiled_nodes(outputs):
            if self._is_open:
                return  # Zeros for gradients that do not arrive could not be made.
            if self._node_type is None and _has_saved(node, self._first_made, made):
                self._node_type = type(node)
            if type(node) is self._node_type:
                node.set_materialize_grads(False)  # Shows which gradients do not arrive.

    def _measure(self, call: Callable[[list[Any]], Any], arguments: list[Any]) -> Any:
        """Calls a forward module; measures anew if earlier calls had no backward pass."""
        if self._tracker is None:
            return call(arguments)
        if self._is_begun and not self.is_waiting():
            self._tracker = Tracker()
        self._is_begun = True
        return self._tracker.run(call, arguments)

    def _choose(self) -> None:
        """Changes the plan between two steps, if the caller uses less or more than planned."""
        if self.is_waiting():
            return
        if self._has_left:
            self._has_left = False
            self._measure_anew()
            # In these cases the first modules have no plan, or one for another limit.
            if self._uses_loss_alone or self._has_share:
                self._plan_anew(Unused())
        elif self._parts is not self._backend.parts:
            self._plan_share()
        elif self._unused is not None and self._tracker is None and not self._uses_loss_alone:
            self._use_lean(self._unused)

    def _use_lean(self, unused: Unused) -> None:
        """Uses a plan for a caller that does not use all results, if that saves memory."""
        if self._joint is None or unused == Unused():
            return
        joint, options = self._take_joint()
        first = dict(vars(self._entry))
        built = self._backend.plan_again(self._entry, joint, options, unused)
        if built is not None:
            self._first_entry = first
            self._lean = self._make_lean(built, unused)
            self._measure_anew()

    def _plan_share(self) -> None:
        """Plans the graph for its share of the limit, and for the results that are used."""
        self._parts, self._has_share = self._backend.parts, True
        unused = self._lean.unused if self._lean is not None else self._unused
        with contextlib.suppress(UnsupportedGraphError):
            if unused is not None and self._plan_anew(unused):
                return
        self._plan_anew(Unused())

    def _plan_anew(self, unused: Unused) -> bool:
        """Plans the graph within its present limit. Returns whether there is such a plan."""
        if self._joint is None or self._first_made is None:
            return False
        self._first_entry = self._first_entry or dict(vars(self._entry))
        self._entry.note = ""
        joint, options = self._take_joint()
        built = self._backend.plan_anew(self._entry, joint, options, unused)
        lean = self._make_lean(built, unused)
        if lean is None:
            return False
        self._lean = lean
        self._measure_anew()
        return True

    def _take_joint(self) -> tuple[fx.GraphModule, dict[str, Any]]:
        """Returns the joint graph, and keeps it only if it may be planned once more."""
        assert self._joint is not None
        found = self._joint
        if not self._backend.may_share():
            self._joint = None
        return found

    def _measure_anew(self) -> None:
        self._tracker, self._is_begun = Tracker(), False
        self._entry.measured_peak_bytes = self._entry.measured_host_peak_bytes = None

    def _make_lean(self, built: Built, unused: Unused) -> _Lean | None:
        """Returns None if the first forward module would have to run again, and must not."""
        assert self._forward is not None
        modules = settled(private.box(built.forward)), settled(private.box(built.backward))
        if not unused.absent:
            return _Lean(*modules, built.apart, unused, None, [], [])
        try:
            again = saving_again(self._forward, self._num_outputs)
        except UnsupportedGraphError:
            return None
        return _Lean(
            *modules,
            built.apart,
            unused,
            settled(private.box(again)),
            inputs_kept(self._forward),
            random_devices(self._forward),
        )

    def _run_lean(self, lean: _Lean, arguments: list[Any]) -> list[Any]:
        inputs = [] if lean.save_again is None else list(arguments)
        call = _Call(lean, inputs, [generator_state(device) for device in lean.devices])
        results = self._measure(lean.forward, arguments)
        kept = _apart_from(results[: self._num_outputs], results[self._num_outputs :])
        call.save(_numbers_first(kept))
        nothing: Any = torch.empty(0)
        saved = [nothing] * (self._num_saved - self._num_numbers) + [0] * self._num_numbers
        assert self._first_made is not None
        saved[self._first_made] = made = torch.empty(0)
        made.ckplan_call = call  # type: ignore[attr-defined]
        return [*results[: self._num_outputs], *saved]

    def _run_backward(self, first: Callable[[list[Any]], Any], arguments: list[Any]) -> Any:
        # Nothing here may hold the saved values, because the backward module frees them as it runs.
        saved, brought = arguments[: self._num_saved], arguments[self._num_saved :]
        arguments.clear()
        absent = frozenset(i for i in range(len(self._tangents)) if brought[i] is None)
        lean = self._take_lean(saved, absent)
        for i in absent:
            brought[i] = _zeros_like(self._tangents[i])
        if lean is not None:
            brought = [tensor for i, tensor in enumerate(brought) if i not in lean.unused.absent]
        saved += brought
        if self._tracker is None:
            return (lean.backward if lean else first)(saved)
        self._tracker.hold(brought)
        del brought
        gradients = self._tracker.run(lean.backward if lean else first, saved)
        self._tracker.leave_out(gradients[i] for i in (lean.apart if lean else self._apart))
        return gradients

    def _take_lean(self, saved: list[Any], absent: frozenset[int]) -> _Lean | None:
        """Moves the values that forward saved into ``saved``, and returns the plan that it ran by.

        None stands for the first plan. The gradients ``absent`` did not arrive.
        """
        if self._first_made is None:
            return None
        made = saved[self._num_numbers + self._first_made]
        results = self._waiting.end(made)
        call: _Call | None = getattr(made, "ckplan_call", None)
        del made
        dropped = frozenset(results.dropped(call.saved if call else saved) if results else ())
        if call is None:
            unused = Unused(absent, dropped)
            if results is not None:
                self._unused = unused if self._unused is None else self._unused & unused
            return None
        lean = call.lean
        if results is not None and not lean.unused <= Unused(absent, dropped):
            self._leave_lean()
        if lean.unused.absent <= absent:
            call.check()
            saved[:] = call.saved
            return lean
        saved[:] = self._save_again(call)
        return None

    def _leave_lean(self) -> None:
        """Plans for all results from the next step on, because the caller uses more than before."""
        if self._lean is None:
            return
        self._lean, self._has_left, self._tracker = None, True, None
        for name in ("plan", "operations", "saved_bytes", "saved_host_bytes", "recomputed", "note"):
            if name in self._first_entry:
                setattr(self._entry, name, self._first_entry[name])
        self._backend.report.say(HELD_AFTER_ALL)

    def _save_again(self, call: _Call) -> list[Any]:
        """Runs the forward pass again, to save the values that the first plan saves."""
        assert call.lean.save_again is not None
        call.check_inputs()
        before = [generator_state(device) for device in call.lean.devices]
        for device, state in zip(call.lean.devices, call.states):
            set_generator_state(device, state)
        inputs = list(call.inputs)
        try:
            if self._tracker is None:
                return _numbers_first(call.lean.save_again(inputs))
            return _numbers_first(self._tracker.run(call.lean.save_again, inputs))
        finally:
            for device, state in zip(call.lean.devices, before):
                set_generator_state(device, state)


def _warn_above_plan(entry: GraphReport) -> None:
    if entry.is_above_plan:
        assert entry.plan is not None
        on_host = (
            f", and {entry.measured_host_peak_bytes} on the host, where "
            f"{entry.step_host_peak_bytes} were planned"
        )
        warnings.warn(
            f"the first step of graph {entry.part} needed {entry.measured_peak_bytes} bytes, where "
            f"{entry.step_peak_bytes} were planned{on_host if entry.plan.transfer_bytes else ''}; a "
            "graph that is retained for a second backward pass keeps more, all else is a fault of "
            "ckplan.torch: please report it",
            ckplan.PlanWarning,
            stacklevel=2,
        )


def _apart_from(returned: Sequence[Any], saved: Sequence[Any]) -> list[Any]:
    """Returns the saved values as other objects than the results, in the same memory.

    Otherwise it would seem that the caller held them, and a result would keep itself in memory
    through the autograd graph that leads to it.
    """
    ids = {id(result) for result in returned if isinstance(result, torch.Tensor)}
    return [tensor.detach() if id(tensor) in ids else tensor for tensor in saved]


def _numbers_first(saved: Sequence[Any]) -> list[Any]:
    """Returns the values that a forward module saves in the order in which backward takes them."""
    numbers = [value for value in saved if not isinstance(value, torch.Tensor)]
    return numbers + [value for value in saved if isinstance(value, torch.Tensor)]


def _is_number(node: fx.Node) -> bool:
    return not isinstance(node.meta.get("val"), torch.Tensor)


def _check_unchanged(pairs: Iterable[tuple[Any, int]]) -> None:
    if any(_version(tensor) != version for tensor, version in pairs):
        raise RuntimeError(
            "a tensor that the backward pass needs was changed in place after the forward pass"
        )


def _version(tensor: Any) -> int:
    is_counted = isinstance(tensor, torch.Tensor) and not tensor.is_inference()
    return tensor._version if is_counted else 0


def _zeros_like(tensor: torch.Tensor) -> torch.Tensor:
    """Returns zeros in the form of a fake tensor."""
    return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def _has_saved(node: Any, position: int | None, key: int) -> bool:
    """Returns whether a node of autograd's graph saves the storage ``key`` at this position."""
    saved = node.saved_tensors
    if position is None or position >= len(saved):
        return False
    return private.storage_key(saved[position]) == key
