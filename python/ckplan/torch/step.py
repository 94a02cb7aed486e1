"""Runs one graph of a model as eager operations, and measures its memory.

The first step is measured: all its calls of the graph, and their backward passes. It shows which
results the caller drops, and which get no gradient. If a plan without these results needs less
memory, it replaces the first one. So does a plan for the graph's share of a limit, and one for a
retained graph.

AOT autograd saves the values of all plans in autograd's graph, so hooks for saved tensors see them.
Each plan saves a different number of tensors (``slots``), which identifies it in the backward pass
even if hooks replaced the tensors. If it is unknown whether a call uses something, it counts as
used: the first plan stays, or is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from ckplan.torch import private, private_autograd
from ckplan.torch.capture import is_held_by_caller, is_tangent, tensors_in
from ckplan.torch.offload.host import settled
from ckplan.torch.pending_calls import Call
from ckplan.torch.randomness import generator_state, set_generator_state
from ckplan.torch.replacement import (
    PlannedModules,
    Replacement,
    detached_from,
    has_saved,
    numbers_first,
    zeros_like,
)
from ckplan.torch.step_plans import StepPlans
from ckplan.torch.tracker import Tracker
from ckplan.torch.unused_results import GRADIENT_HELD, Unused


class Step(StepPlans):
    """Gives AOT autograd the modules of one graph of a model, and runs them.

    ``uses_loss_alone`` says that the caller has promised not to use other results.
    """

    def partition(self, joint: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        self._num_outputs = options["num_fwd_outputs"]
        modules = self._plan_for_loss(joint, options) if self._uses_loss_alone else None
        if modules is not None:
            return modules
        self._uses_loss_alone = False
        (forward, backward), self._entry, uncounted = self._backend.plan(
            self._part, joint, inputs, **options
        )
        if self._entry.plan is not None:
            self._begin(PlannedModules(forward, backward, uncounted))
            self._joint = joint, options
        return forward, backward

    def compile_forward(self, module: fx.GraphModule, _: Any) -> Callable[[list[Any]], Any]:
        if self._slots is not None and self._first is not None:
            self._slots.remove_from_forward(module)
            # AOT autograd may have copied forward, and compiled autograd traces backward.
            self._slots.remove_from_forward(self._first.forward)
            self._slots.remove_from_backward(self._first.backward)
            private_autograd.leave_saved_sizes_open()
        call = settled(private_autograd.box(module))

        def run(arguments: list[Any]) -> Any:
            self._choose()
            if private_autograd.has_saved_tensor_hooks():
                self._leave_for_hooks()
            # Compiled autograd runs the backward module of the first plan.
            replacement = None if private_autograd.uses_compiled_autograd() else self._replacement
            return self._forward(replacement, call, arguments)

        return private_autograd.mark_boxed(run)

    def _forward(
        self,
        replacement: Replacement | None,
        first: Callable[[list[Any]], Any],
        arguments: list[Any],
    ) -> list[Any]:
        can_run_again = replacement is not None and replacement.rerun_forward is not None
        inputs = list(arguments) if can_run_again else []
        states = [generator_state(device) for device in replacement.devices] if replacement else []
        given = [] if self._node_type else [private.storage_key(t) for t in tensors_in(arguments)]
        results: list[Any] = list(
            self._measure(replacement.forward if replacement else first, arguments)
        )
        for updated in replacement.updated if replacement else self._updated:
            # Detached, because the next call may update the buffer again.
            results[updated] = results[updated].data
        call = Call(results[: self._num_outputs], inputs, states, given)
        if replacement is not None:
            results = self._pad(replacement, results)
        position = replacement.first_made if replacement else self._first_made
        if position is not None:
            made = results[self._num_outputs + position]
            self._latest = private.storage_key(made), call
            self._waiting.begin(made, call)
        return results

    def _pad(self, replacement: Replacement, results: list[Any]) -> list[Any]:
        """Returns results and saved values, padded to the number that identifies the plan."""
        returned, saved = results[: self._num_outputs], results[self._num_outputs :]
        tensors = detached_from(returned, saved[: replacement.num_saved])
        numbers = saved[replacement.num_saved :] + [0] * (
            self._num_numbers - replacement.num_numbers
        )
        tensors += [torch.zeros(1) for _ in range(replacement.slots - replacement.num_saved)]
        return [*returned, *tensors, *numbers]

    def compile_backward(self, module: fx.GraphModule, _: Any) -> Callable[[list[Any]], Any]:
        if self._slots is not None and self._first is not None:
            self._slots.remove_from_backward(module)
        call = settled(private_autograd.box(module))
        private_autograd.keep_saved_tensors()
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

        return private_autograd.mark_boxed(run)

    def returned(self, outputs: Sequence[Any]) -> None:
        """Records which results of the last forward pass the caller got."""
        if self._latest is None:
            return
        (made, call), self._latest = self._latest, None
        call.returned(outputs)
        if private_autograd.uses_compiled_autograd() or self._is_open:
            return  # Zeros for gradients that do not arrive could not be made.
        nodes = private_autograd.compiled_nodes(outputs)
        if self._node_type is None:
            self._node_type = self._find_node_type(outputs, nodes, call, made)
        for node in nodes:
            if type(node) is self._node_type:
                node.set_materialize_grads(False)  # Shows which gradients do not arrive.
                private_autograd.mark(node, call)
                call.shows_absent = True

    def _find_node_type(
        self, outputs: Sequence[Any], nodes: list[Any], call: Call, made: Any
    ) -> type[Any] | None:
        """Returns the class of this graph's autograd nodes, if it can be determined.

        The node leads to a tensor that the call made, or it saves the tensor ``made``, unless hooks
        replaced that tensor.
        """
        direct = [t.grad_fn for t in tensors_in(list(outputs)) if call.has_made(t)]
        found = [node for node in nodes if any(node is producer for producer in direct)]
        if not found and not private_autograd.has_saved_tensor_hooks():
            position = self._replacement.first_made if self._replacement else self._first_made
            found = [node for node in nodes if has_saved(node, position, made)]
        return type(found[0]) if found else None

    def _measure(self, call: Callable[[list[Any]], Any], arguments: list[Any]) -> Any:
        """Runs a forward module; restarts the measurement if earlier calls had no backward pass."""
        if self._tracker is None:
            return call(arguments)
        if self._is_begun and not self.is_waiting():
            self._tracker = Tracker()
        self._is_begun = True
        return self._tracker.run(call, arguments)

    def _run_backward(self, first: Callable[[list[Any]], Any], arguments: list[Any]) -> Any:
        # No local variable may hold the saved values: the backward module frees them as it runs.
        cut = len(arguments) - self._num_brought
        saved, brought = arguments[:cut], arguments[cut:]
        arguments.clear()
        replacement = self._replacements.get(cut - self._num_numbers)
        call = self._find_call(saved)
        absent = self._absent_gradients(call, replacement, brought)
        self._note_pass(call, replacement, saved, absent)
        for i in absent:
            brought[i] = zeros_like(self._tangents[i])
        if replacement is not None and not replacement.unused.absent <= absent:
            saved[:] = self._rerun_forward(call, replacement)
            replacement = None
        elif replacement is not None:
            # Numbers come first, then the plan's tensors, and last what fills the slots.
            tensors = saved[self._num_numbers : self._num_numbers + replacement.num_saved]
            saved[:] = [*saved[: replacement.num_numbers], *tensors]
            del tensors
            brought = [
                tensor for i, tensor in enumerate(brought) if i not in replacement.unused.absent
            ]
        saved += brought
        if self._tracker is not None:
            self._tracker.hold(brought)
        watches = self._watches(replacement, brought)
        del brought
        if self._tracker is None:
            gradients = (replacement.backward if replacement else first)(saved)
            self._note_gradients(replacement, watches)
            return gradients
        gradients = self._tracker.run(replacement.backward if replacement else first, saved)
        self._note_gradients(replacement, watches)
        self._has_backward = True
        if self._first is not None:
            uncounted = replacement.built.uncounted if replacement else self._first.uncounted
            self._tracker.leave_out(gradients[i] for i in uncounted)
        return gradients

    def _find_call(self, saved: list[Any]) -> Call | None:
        """Returns the call whose backward pass begins; None if unknown."""
        marked = private_autograd.mark_of_running_node()
        return marked if isinstance(marked, Call) else self._waiting.find(saved)

    def _absent_gradients(
        self, call: Call | None, replacement: Replacement | None, brought: list[Any]
    ) -> frozenset[int]:
        """Returns the positions of gradients that did not arrive, those that are None.

        Autograd may replace them by zeros. Zeros count as absent if the plan needs that: they add
        nothing.
        """
        absent = frozenset(i for i in range(len(self._tangents)) if brought[i] is None)
        missing = replacement.unused.absent - absent if replacement is not None else frozenset()
        if missing and (call is None or not call.shows_absent):
            return absent | {i for i in missing if not brought[i].any()}
        return absent

    def _note_pass(
        self,
        call: Call | None,
        replacement: Replacement | None,
        saved: list[Any],
        absent: frozenset[int],
    ) -> None:
        """Records what a backward pass uses; drops a replacement plan that lacks some of it."""
        if private_autograd.retains_graph():
            self._retain()
        elif call is not None:
            self._waiting.end(call)
        if call is not None:
            call.note_pass(absent, saved)
        unused = call.unused if call is not None and call.unused is not None else Unused()
        if replacement is None:
            self._unused = unused if self._unused is None else self._unused & unused
        elif not replacement.unused <= unused:
            self._leave_replacement(replacement)

    def _watches(
        self, replacement: Replacement | None, brought: list[torch.Tensor]
    ) -> dict[int, Callable[[], bool]]:
        """Watches the caller's gradients that the plan expects to be freed in the backward pass."""
        if self._entry.plan is None or self._first is None:
            return {}
        rows = zip(self._present(replacement), brought)
        return {
            i: private.storage_watch(tensor)
            for i, tensor in rows
            if i not in self._held and not is_held_by_caller(self._tangents[i])
        }

    def _note_gradients(
        self, replacement: Replacement | None, watches: dict[int, Callable[[], bool]]
    ) -> None:
        """Adds gradients to the planned peak that the caller turns out to hold."""
        held = {i for i, lives in watches.items() if lives()}
        if not held:
            return
        self._held |= held
        self._note_staying(self._replacement)
        self._backend.report.say(GRADIENT_HELD)

    def _rerun_forward(self, call: Call | None, replacement: Replacement) -> list[Any]:
        """Runs the forward pass again, to get the values that the first plan saves."""
        if call is None or replacement.rerun_forward is None or not call.inputs:
            raise RuntimeError(
                "a gradient arrived for a result that was planned as unused, and hooks for saved "
                'tensors make recovery impossible: remove returns="loss"'
            )
        call.check_inputs(replacement.inputs_read)
        before = [generator_state(device) for device in replacement.devices]
        for device, state in zip(replacement.devices, call.states):
            set_generator_state(device, state)
        inputs = list(call.inputs)
        try:
            if self._tracker is None:
                return numbers_first(replacement.rerun_forward(inputs))
            return numbers_first(self._tracker.run(replacement.rerun_forward, inputs))
        finally:
            for device, state in zip(replacement.devices, before):
                set_generator_state(device, state)
