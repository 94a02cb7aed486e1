"""Runs one graph of a model as eager operations: its two modules, and the memory they need.

The first step is measured: all its calls of the graph, and their backward passes. It shows which
results the caller drops, and for which no gradient comes. If a plan without these results needs
less memory, later calls run by that plan (the *lean* one). A plan for the graph's share of a limit
replaces the first one in the same way, and so does one for a graph that is retained.

AOT autograd saves the values of all plans in autograd's graph, so that hooks for saved tensors see
them. Each plan saves another number of tensors (``slots``), by which the backward pass knows its
plan, whatever such hooks have made of the tensors. Anything that is not known of a call, such as
which gradients arrive, counts as used: then the first plan stays, or takes over again.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx

import ckplan
from ckplan.torch import private, slots
from ckplan.torch.capture import is_held_by_caller, is_tangent, tensors_in
from ckplan.torch.dropping import (
    DROPPED,
    GRADIENT_HELD,
    HELD_AFTER_ALL,
    HOOKED,
    LEAN_NOTE,
    NO_LOSS,
    RETAINED,
    Unused,
    beyond_the_loss,
    inputs_kept,
    random_devices,
    refused,
    saving_again,
)
from ckplan.torch.errors import ReplayError, UnsupportedGraphError
from ckplan.torch.graph_planner import GraphPlanner
from ckplan.torch.judge import replay_built
from ckplan.torch.lean import (
    Built,
    Lean,
    apart_from,
    has_saved,
    numbers_first,
    warn_above_plan,
    zeros_like,
)
from ckplan.torch.offload.host import settled
from ckplan.torch.randomness import generator_state, set_generator_state
from ckplan.torch.report import GraphReport
from ckplan.torch.tracker import Tracker
from ckplan.torch.waiting import Call, Waiting, first_made



class Step:
    """Gives AOT autograd the modules of one graph of a model, and runs them.

    ``uses_loss_alone`` says that the caller has promised not to use other results.
    """

    def __init__(self, backend: GraphPlanner, part: int, uses_loss_alone: bool):
        self._backend = backend
        self._part = part
        self._uses_loss_alone = uses_loss_alone
        self._entry = GraphReport(part)
        self._first_entry: dict[str, Any] = {}
        self._tracker: Tracker | None = None
        self._is_begun = self._has_backward = False
        # Some of the saved values are sizes that depend on data. They are the first ones that
        # the backward module takes, and the last ones that the forward module returns.
        self._num_outputs = self._num_brought = self._num_numbers = 0
        self._first_made: int | None = None
        self._updated: list[int] = []
        self._first: Built | None = None
        self._tangents: list[torch.Tensor] = []
        self._held: set[int] = set()  # The positions of gradients that the caller holds.
        self._is_open = False
        self._waiting = Waiting()
        self._latest: tuple[Any, Call] | None = None
        self._node_type: type[Any] | None = None
        # The joint graph and its options, as long as another plan of it may be made.
        self._joint: tuple[fx.GraphModule, dict[str, Any]] | None = None
        self._unused: Unused | None = None
        self._lean: Lean | None = None
        # The plans by the number of tensors that they save.
        self._slots: slots.Slots | None = None
        self._leans: dict[int, Lean] = {}
        self._has_left = self._is_retained = self._is_planned_retained = self._is_hooked = False
        # The division of the limit that the present plan is for, and whether there was another.
        self._parts = backend.parts
        self._has_share = False

    def is_waiting(self) -> bool:
        """Returns whether a forward pass waits for its backward pass."""
        return self._waiting.count() > 0

    def partition(self, joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        self._num_outputs = options["num_fwd_outputs"]
        modules = self._plan_for_loss(joint, options) if self._uses_loss_alone else None
        if modules is not None:
            return modules
        self._uses_loss_alone = False
        (forward, backward), self._entry, apart = self._backend.plan(
            self._part, joint, inputs, **options
        )
        if self._entry.plan is not None:
            self._begin(Built(forward, backward, apart))
            self._joint = joint, options
        return forward, backward

    def _begin(self, built: Built) -> None:
        self._first = built
        self._first_made = first_made(built.forward, self._num_outputs)
        self._slots = slots.add(built.forward, built.backward, self._num_outputs)
        self._num_numbers = self._slots.num_numbers
        self._updated = slots.updated_inputs(built.forward, self._num_outputs)
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
        lean = self._make_lean(planned, unused, everything.forward)
        if lean is None:  # Forward could not run again for other results.
            self._backend.report.graphs.remove(self._entry)
            return None
        self._begin(everything)
        self._joint = joint, options
        if not self._use(lean):
            self._backend.report.graphs.remove(self._entry)
            self._first = self._joint = self._tracker = None
            return None
        return everything.forward, everything.backward

    def compile_forward(self, module: fx.GraphModule, _: Any) -> Callable[[list[Any]], Any]:
        if self._slots is not None and self._first is not None:
            self._slots.remove_from_forward(module)
            self._slots.remove_from_forward(self._first.forward)  # AOT autograd may have copied it.
            self._slots.remove_from_backward(self._first.backward)  # Compiled autograd traces it.
            private.leave_saved_sizes_open()
        call = settled(private.box(module))

        def run(arguments: list[Any]) -> Any:
            self._choose()
            if private.has_saved_tensor_hooks():
                self._leave_for_hooks()
            # Compiled autograd runs the backward module of the first plan.
            lean = None if private.uses_compiled_autograd() else self._lean
            return self._forward(lean, call, arguments)

        return private.mark_boxed(run)

    def _forward(
        self, lean: Lean | None, first: Callable[[list[Any]], Any], arguments: list[Any]
    ) -> list[Any]:
        can_run_again = lean is not None and lean.save_again is not None
        inputs = list(arguments) if can_run_again else []
        states = [generator_state(device) for device in lean.devices] if lean else []
        given = [] if self._node_type else [private.storage_key(t) for t in tensors_in(arguments)]
        results: list[Any] = list(self._measure(lean.forward if lean else first, arguments))
        for updated in lean.updated if lean else self._updated:
            results[updated] = results[updated].data  # The next call may update the buffer again.
        call = Call(results[: self._num_outputs], inputs, states, given)
        if lean is not None:
            results = self._in_slots(lean, results)
        position = lean.first_made if lean else self._first_made
        if position is not None:
            made = results[self._num_outputs + position]
            self._latest = private.storage_key(made), call
            self._waiting.begin(made, call)
        return results

    def _in_slots(self, lean: Lean, results: list[Any]) -> list[Any]:
        """Returns results and saved values, of which there are as many as only this plan has."""
        returned, saved = results[: self._num_outputs], results[self._num_outputs :]
        tensors = apart_from(returned, saved[: lean.num_saved])
        numbers = saved[lean.num_saved :] + [0] * (self._num_numbers - lean.num_numbers)
        tensors += [torch.zeros(1) for _ in range(lean.slots - lean.num_saved)]
        return [*returned, *tensors, *numbers]

    def compile_backward(self, module: fx.GraphModule, _: Any) -> Callable[[list[Any]], Any]:
        if self._slots is not None and self._first is not None:
            self._slots.remove_from_backward(module)
        call = settled(private.box(module))
        private.keep_saved_tensors()
        inputs = module.graph.find_nodes(op="placeholder")
        self._tangents = [node.meta["val"] for node in inputs if is_tangent(node)]
        sizes = [size for tangent in self._tangents for size in tangent.shape]
        self._is_open = not all(isinstance(size, int) for size in sizes)
        saved = next((i for i, n in enumerate(inputs) if is_tangent(n)), len(inputs))
        self._num_brought = len(inputs) - saved

        def run(arguments: list[Any]) -> Any:
            self._backend.constraints.check()  # Now all graphs of a call are known.
            self._entry.calls = max(self._entry.calls, self._waiting.count())
            if self._tracker is not None:
                self._tracker.forget_dead()
            gradients = self._run_backward(call, arguments)
            if not self.is_waiting():
                self._end_measuring()
            return gradients

        return private.mark_boxed(run)

    def returned(self, outputs: Sequence[Any]) -> None:
        """Records which results of the last forward pass the caller got."""
        if self._latest is None:
            return
        (made, call), self._latest = self._latest, None
        call.returned(outputs)
        if private.uses_compiled_autograd() or self._is_open:
            return  # Zeros for gradients that do not arrive could not be made.
        nodes = private.compiled_nodes(outputs)
        if self._node_type is None:
            self._node_type = self._find_node_type(outputs, nodes, call, made)
        for node in nodes:
            if type(node) is self._node_type:
                node.set_materialize_grads(False)  # Shows which gradients do not arrive.
                private.mark(node, call)
                call.shows_absent = True

    def _find_node_type(
        self, outputs: Sequence[Any], nodes: list[Any], call: Call, made: Any
    ) -> type[Any] | None:
        """Returns the class of this graph's nodes among those of autograd's graph, if it is known.

        Either the node leads to a tensor that the call made, or it saves the tensor ``made``, which
        is not seen where hooks replace what is saved.
        """
        direct = [t.grad_fn for t in tensors_in(list(outputs)) if call.has_made(t)]
        found = [node for node in nodes if any(node is maker for maker in direct)]
        if not found and not private.has_saved_tensor_hooks():
            position = self._lean.first_made if self._lean else self._first_made
            found = [node for node in nodes if has_saved(node, position, made)]
        return type(found[0]) if found else None

    def _measure(self, call: Callable[[list[Any]], Any], arguments: list[Any]) -> Any:
        """Calls a forward module; measures anew if earlier calls had no backward pass."""
        if self._tracker is None:
            return call(arguments)
        if self._is_begun and not self.is_waiting():
            self._tracker = Tracker()
        self._is_begun = True
        return self._tracker.run(call, arguments)

    def _end_measuring(self) -> None:
        """Notes what the step has needed that has ended."""
        tracker, self._tracker = self._tracker, None
        if tracker is None:
            return
        self._entry.measured_peak_bytes = tracker.peak_bytes()
        self._entry.measured_host_peak_bytes = tracker.host_peak_bytes()
        if tracker.is_hooked and self._entry.is_above_plan:
            return self._measure_anew()  # Hooks hold tensors of their own.
        warn_above_plan(self._entry)

    def _choose(self) -> None:
        """Changes the plan between two steps, if the caller uses less or more than planned."""
        if self.is_waiting():
            return
        if self._has_backward:  # Its graph was retained, and then dropped.
            self._end_measuring()
        if self._has_left:
            self._has_left = False
            self._measure_anew()
            # In these cases the first modules have no plan, or one for another limit.
            if self._uses_loss_alone or self._has_share:
                self._plan_for_all()
        elif self._parts is not self._backend.parts:
            self._plan_share()
        elif self._unused is not None and self._tracker is None and not self._uses_loss_alone:
            self._use_lean(self._unused)
        if self._is_retained and not self._is_planned_retained:
            self._plan_retained()

    def _use_lean(self, unused: Unused) -> None:
        """Uses a plan for a caller that does not use all results, if that saves memory."""
        if self._is_hooked:
            unused = Unused(frozenset(), unused.dropped)
        if self._joint is None or unused == Unused():
            return
        joint, options = self._joint if self._is_retained else self._take_joint()
        self._unused = None
        self._first_entry = self._first_entry or dict(vars(self._entry))
        with self._optional():
            built = self._backend.plan_again(self._entry, joint, options, unused)
            lean = self._make_lean(built, unused) if built is not None else None
            if built is not None and (lean is None or not self._use(lean)):
                raise UnsupportedGraphError("the forward pass cannot run again for other results")
            if built is not None:
                self._entry.note = LEAN_NOTE
                self._backend.report.say(DROPPED)
                self._measure_anew()
                self._note_staying(lean)
                self._is_planned_retained = False

    def _plan_retained(self) -> None:
        """Uses a plan for a graph that is retained for another backward pass."""
        self._is_planned_retained = True
        if self._joint is None or self._entry.plan is None:
            return
        joint, options = self._take_joint()
        unused = self._lean.unused if self._lean is not None else Unused()
        self._first_entry = self._first_entry or dict(vars(self._entry))
        with self._optional():
            built = self._backend.plan_retained(self._entry, joint, options, unused)
            lean = self._make_lean(built, unused) if built is not None else None
            if lean is not None and self._use(lean):
                self._note_staying(lean)
                self._measure_anew()

    def _plan_for_all(self) -> None:
        """Uses a plan for all results; without one, the first modules run and are not measured."""
        self._tracker = None
        with self._optional():
            self._plan_anew(Unused())

    @contextlib.contextmanager
    def _optional(self, *fatal: type[Exception]) -> Iterator[None]:
        """Keeps the present plan, and warns, where a better one cannot be made or used."""
        before, lean = dict(vars(self._entry)), self._lean
        try:
            yield
        except fatal:
            raise
        except Exception as error:
            vars(self._entry).update(before)
            self._lean = lean
            self._backend.report.say(refused(error))

    def _plan_share(self) -> None:
        """Plans the graph for its share of the limit, and for the results that are used."""
        self._parts, self._has_share = self._backend.parts, True
        unused = self._lean.unused if self._lean is not None else self._unused
        with contextlib.suppress(UnsupportedGraphError, ReplayError):
            if unused is not None and self._plan_anew(unused):
                return
        with self._optional(ckplan.InfeasibleError):
            self._plan_anew(Unused())

    def _plan_anew(self, unused: Unused) -> bool:
        """Plans the graph within its present limit. Returns whether there is such a plan."""
        if self._joint is None:
            return False
        self._first_entry = self._first_entry or dict(vars(self._entry))
        self._entry.note = ""
        joint, options = self._take_joint()
        built = self._backend.plan_anew(self._entry, joint, options, unused)
        lean = self._make_lean(built, unused)
        if lean is None or not self._use(lean):
            return False
        self._note_staying(lean)
        self._measure_anew()
        return True

    def _take_joint(self) -> tuple[fx.GraphModule, dict[str, Any]]:
        """Returns the joint graph, and keeps it only if it may be planned once more."""
        assert self._joint is not None
        found = self._joint
        if not (self._backend.may_share() or self._uses_loss_alone):
            self._joint = None
        return found

    def _measure_anew(self) -> None:
        self._tracker, self._is_begun, self._has_backward = Tracker(), False, False
        self._entry.measured_peak_bytes = self._entry.measured_host_peak_bytes = None

    def _use(self, lean: Lean) -> bool:
        """Uses another plan from now on. Returns False where it saves more than fits."""
        assert self._slots is not None
        count = self._slots.number_for(lean.num_saved + (lean.first_made is None), self._leans)
        if count is None or lean.num_numbers > self._num_numbers:
            return False
        if lean.first_made is None:  # The first tensor that fills the slots identifies its calls.
            lean.first_made = lean.num_saved
        lean.slots = count
        self._leans[count] = self._lean = lean
        return True

    def _make_lean(
        self, built: Built, unused: Unused, first: fx.GraphModule | None = None
    ) -> Lean | None:
        """Returns None if the first forward module would have to run again, and must not."""
        if first is None:
            assert self._first is not None
            first = self._first.forward
        again, read, devices = None, [], []
        if unused.absent:
            try:
                again = settled(private.box(saving_again(first, self._num_outputs)))
            except UnsupportedGraphError:
                return None
            read, devices = inputs_kept(first), random_devices(first)
        saved = slots.saved_by(built.forward, self._num_outputs)
        numbers = sum(slots.is_number(node) for node in saved)
        return Lean(
            settled(private.box(built.forward)),
            settled(private.box(built.backward)),
            built,
            unused,
            first_made(built.forward, self._num_outputs),
            len(saved) - numbers,
            numbers,
            0,
            again,
            read,
            devices,
            slots.updated_inputs(built.forward, self._num_outputs),
        )

    def _run_backward(self, first: Callable[[list[Any]], Any], arguments: list[Any]) -> Any:
        # Nothing here may hold the saved values, because the backward module frees them as it runs.
        cut = len(arguments) - self._num_brought
        saved, brought = arguments[:cut], arguments[cut:]
        arguments.clear()
        lean = self._leans.get(cut - self._num_numbers)
        call = self._call_of(saved)
        absent = self._absent(call, lean, brought)
        self._note_pass(call, lean, saved, absent)
        for i in absent:
            brought[i] = zeros_like(self._tangents[i])
        if lean is not None and not lean.unused.absent <= absent:
            saved[:] = self._save_again(call, lean)
            lean = None
        elif lean is not None:
            # Numbers come first, then the plan's tensors, and last what fills the slots.
            tensors = saved[self._num_numbers : self._num_numbers + lean.num_saved]
            saved[:] = [*saved[: lean.num_numbers], *tensors]
            del tensors
            brought = [tensor for i, tensor in enumerate(brought) if i not in lean.unused.absent]
        saved += brought
        if self._tracker is not None:
            self._tracker.hold(brought)
        watches = self._watches(lean, brought)
        del brought
        if self._tracker is None:
            gradients = (lean.backward if lean else first)(saved)
            self._note_gradients(lean, watches)
            return gradients
        gradients = self._tracker.run(lean.backward if lean else first, saved)
        self._note_gradients(lean, watches)
        self._has_backward = True
        if self._first is not None:
            apart = lean.built.apart if lean else self._first.apart
            self._tracker.leave_out(gradients[i] for i in apart)
        return gradients

    def _call_of(self, saved: list[Any]) -> Call | None:
        """Returns the call whose backward pass begins, if it can be known."""
        marked = private.mark_of_running_node()
        return marked if isinstance(marked, Call) else self._waiting.find(saved)

    def _absent(
        self, call: Call | None, lean: Lean | None, brought: list[Any]
    ) -> frozenset[int]:
        """Returns which gradients did not arrive: those that are None.

        Where autograd makes zeros of them, zeros are taken for absent if only that serves a plan
        without them: gradients that are zero add nothing.
        """
        absent = frozenset(i for i in range(len(self._tangents)) if brought[i] is None)
        missing = lean.unused.absent - absent if lean is not None else frozenset()
        if missing and (call is None or not call.shows_absent):
            return absent | {i for i in missing if not brought[i].any()}
        return absent

    def _note_pass(
        self, call: Call | None, lean: Lean | None, saved: list[Any], absent: frozenset[int]
    ) -> None:
        """Notes what a backward pass uses, and leaves the lean plan if it uses more."""
        if private.retains_graph():
            self._retain()
        elif call is not None:
            self._waiting.end(call)
        if call is not None:
            call.note_pass(absent, saved)
        unused = call.unused if call is not None and call.unused is not None else Unused()
        if lean is None:
            self._unused = unused if self._unused is None else self._unused & unused
        elif not lean.unused <= unused:
            self._leave_lean(lean)

    def _watches(
        self, lean: Lean | None, brought: list[torch.Tensor]
    ) -> dict[int, Callable[[], bool]]:
        """Watches the gradients from the caller that are planned as freed in the backward pass."""
        if self._entry.plan is None or self._first is None:
            return {}
        rows = zip(self._present(lean), brought)
        return {
            i: private.storage_watch(tensor)
            for i, tensor in rows
            if i not in self._held and not is_held_by_caller(self._tangents[i])
        }

    def _present(self, lean: Lean | None) -> list[int]:
        """Returns the positions of the gradients that a plan takes."""
        absent = lean.unused.absent if lean is not None else frozenset[int]()
        return [i for i in range(len(self._tangents)) if i not in absent]

    def _note_gradients(self, lean: Lean | None, watches: dict[int, Callable[[], bool]]) -> None:
        """Has the planned peak count gradients that the caller turns out to hold."""
        held = {i for i, lives in watches.items() if lives()}
        if not held:
            return
        self._held |= held
        self._note_staying(self._lean)
        self._backend.report.say(GRADIENT_HELD)

    def _retain(self) -> None:
        """Notes that a graph is retained, which has its saved values stay for another pass."""
        if self._is_retained or self._entry.plan is None or self._first is None:
            return
        self._is_retained = True
        self._note_staying(self._lean)
        self._backend.report.say(RETAINED)

    def _note_staying(self, lean: Lean | None) -> None:
        """Has the planned peak count saved values and gradients that stay, if any do."""
        built, plan = lean.built if lean is not None else self._first, self._entry.plan
        if built is None or plan is None or not (self._is_retained or self._held):
            return
        replay = replay_built(
            built.forward,
            built.backward,
            self._num_outputs,
            built.apart,
            lean.unused.dropped if lean is not None else (),
            self._is_retained,
            {k for k, i in enumerate(self._present(lean)) if i in self._held},
        )
        if self._is_retained:
            self._entry.retained_peak_bytes = replay.peak_bytes
        self._entry.plan = dataclasses.replace(
            plan,
            peak_bytes=max(replay.peak_bytes, plan.peak_bytes),
            host_peak_bytes=max(replay.host_peak_bytes, plan.host_peak_bytes),
        )

    def _leave_for_hooks(self) -> None:
        """Plans for all gradients from now on if a call may not be recognized under hooks.

        Hooks for saved tensors may replace tensors. If nodes of autograd's graph are not known
        either, gradients may arrive for which the call's plan has no place.
        """
        if self._node_type is not None:
            return
        lean, self._is_hooked = self._lean, True
        if lean is None or lean.save_again is None or self._uses_loss_alone:
            return
        self._leave_lean(lean, HOOKED)
        self._choose()

    def _leave_lean(self, lean: Lean, why: str = HELD_AFTER_ALL) -> None:
        """Plans for all results from the next step on, because the caller uses more than before."""
        if self._lean is not lean or lean.unused == Unused():
            return
        self._lean, self._has_left, self._tracker, self._unused = None, True, None, Unused()
        self._entry.measured_peak_bytes = self._entry.measured_host_peak_bytes = None
        for name in ("plan", "operations", "saved_bytes", "saved_host_bytes", "recomputed", "note"):
            if name in self._first_entry:
                setattr(self._entry, name, self._first_entry[name])
        if not self._uses_loss_alone:
            self._note_staying(None)
        self._backend.report.say(why)

    def _save_again(self, call: Call | None, lean: Lean) -> list[Any]:
        """Runs the forward pass again, to save the values that the first plan saves."""
        if call is None or lean.save_again is None or not call.inputs:
            raise RuntimeError(
                "a gradient arrives for a result that was planned as unused, in a call that hooks "
                'for saved tensors hide: leave out returns="loss"'
            )
        call.check_inputs(lean.inputs_read)
        before = [generator_state(device) for device in lean.devices]
        for device, state in zip(lean.devices, call.states):
            set_generator_state(device, state)
        inputs = list(call.inputs)
        try:
            if self._tracker is None:
                return numbers_first(lean.save_again(inputs))
            return numbers_first(self._tracker.run(lean.save_again, inputs))
        finally:
            for device, state in zip(lean.devices, before):
                set_generator_state(device, state)
