"""The backend of ``torch.compile``: plans each joint graph, and runs the modules built from it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from torch import fx

from ckplan.torch import obstacles, operators, private, private_autograd
from ckplan.torch.errors import MissingKernelError
from ckplan.torch.graph_planner import GraphPlanner
from ckplan.torch.inductor import private as inductor
from ckplan.torch.inductor import private_kernels
from ckplan.torch.inductor.part_decision import ChosenStep, Key, PartDecision
from ckplan.torch.parts import Part
from ckplan.torch.report import Report
from ckplan.torch.request import Request
from ckplan.torch.step import Step


class Backend(GraphPlanner):
    """The callable that ``torch.compile`` gives each graph of a model."""

    def __init__(self, request: Request, report: Report, known: list[Part] | None = None):
        super().__init__(request, report, known)
        self._decided: dict[Key, ChosenStep] = {}  # By graph and limit, for later compilations.
        self._roots: set[str] = set()
        self._steps: list[Step] = []

    def __call__(self, module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        """Compiles one graph."""
        self._is_part = private.ends_in_graph_break(module)
        # After a graph break, the rest of a method is compiled as a plain function.
        self._roots.add(private.first_module_argument() or "self")
        for name in self._roots:
            operators.call_root_self(module, name)
        missing = obstacles.missing_kernel(private.why_it_ends(module))
        if missing is not None:
            raise MissingKernelError(missing)
        self._before_part()
        part = self.parts.enter(private.compiled_frame())
        step = None
        if self.request.compiler == "inductor":
            moves = self.request.offload is not None
            with private_kernels.keeping_order() if moves else contextlib.nullcontext():
                compiled = inductor.compile(module, inputs, PartDecision(self, part, self._decided))
        else:
            uses_loss_alone = self.request.returns == "loss" and not self._is_part
            step = Step(self, part, uses_loss_alone)
            self._steps.append(step)
            compiler = private_autograd.aot_autograd(
                fw_compiler=step.compile_forward,
                bw_compiler=step.compile_backward,
                inference_compiler=lambda graph, _: private_autograd.box(graph),
                partition_fn=step.partition,
                keep_inference_input_mutations=True,
            )
            compiled = compiler(module, inputs)
        return self._count_calls(part, compiled, step)

    def _before_part(self) -> None:
        """A hook before a part is compiled or runs."""

    def is_waiting(self) -> bool:
        """Returns whether a forward pass waits for its backward pass."""
        return any(step.is_waiting() for step in self._steps)

    def should_share(self) -> bool:
        """Returns whether the steps so far show that several graphs or calls share the limit."""
        for entry in self.report.graphs:
            self.parts.note_calls(entry.part, entry.calls)
        return self.parts.are_found() and not self.is_waiting()

    def with_shares(self) -> Backend:
        """Returns a backend that plans each part again, within its share of the limit."""
        self.report.graphs.clear()
        return Backend(self.request, self.report, self.parts.found)

    def _count_calls(
        self, part: int, compiled: Callable[..., Any], step: Step | None
    ) -> Callable[..., Any]:
        """Counts how often the part runs, and passes what it returns to its step."""

        def call(*arguments: Any) -> Any:
            # PyTorch calls a bucket of DistributedDataParallel with fake tensors while it compiles.
            if not private.is_any_fake(arguments):
                self._before_part()
                self.parts.found[part].calls += 1
            results = compiled(*arguments)
            if step is not None:
                step.returned(results)
            return results

        return call
