"""Implements ``ckplan.torch.policy``: finds plans that other runtimes can run."""

from __future__ import annotations

import collections
import functools
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

from ckplan.invocation import run_program
from ckplan.torch.estimation.answer import Estimate
from ckplan.torch.report import GraphReport, Report, percent, size


@dataclass(frozen=True)
class Region:
    """Modules checkpointed together, and the operations whose results are saved in them."""

    modules: list[str]
    operations: int
    run_again: int
    saved: dict[str, list[int]]
    """By operator: which of its calls in the region are saved, counted from 0."""
    calls: dict[str, int]
    """By saved operator: how many calls of it the region has."""


@dataclass(frozen=True)
class Policy:
    """The best plan within a budget that a runtime can run, compared with ckplan's own plan."""

    kind: str
    budget_bytes: int
    keep_all_peak_bytes: int
    plan_peak_bytes: int
    plan_added_share: float
    """Added time as a share of a step that keeps everything."""
    peak_bytes: int
    added_share: float
    fits: bool
    is_exact: bool
    """Whether it is proven best among the plans of its kind."""
    layers: int
    """How many repeated blocks the model has."""
    setting: dict[str, Any]
    """For kinds with one setting for all layers: ``layers``, ``method`` and ``modules``."""
    regions: list[Region]
    paste: str
    """What to paste into the runtime's configuration: flags, JSON or Python."""

    @property
    def lost_share(self) -> float:
        """The time that the runtime loses compared with the plan, as a share of a step."""
        return self.added_share - self.plan_added_share

    def apply(self, model: nn.Module) -> None:
        """Applies the policy to the model, in place.

        Works for the kinds ``checkpoint``, ``sac`` and ``transformers``. Raises ValueError for
        other kinds, and for a model that does not match.
        """
        if self.kind == "transformers":
            self._apply_to_transformers(model)
        elif self.kind in ("checkpoint", "sac"):
            for region in self.regions:
                _wrap(model, region, saves=self.kind == "sac")
        else:
            raise ValueError(
                f"apply() does not support {self.kind}: paste .paste into its configuration"
            )

    def _apply_to_transformers(self, model: nn.Module) -> None:
        if not self.regions:
            return
        enable = getattr(model, "activation_checkpointing_enable", None)
        enable = enable or getattr(model, "gradient_checkpointing_enable", None)
        if enable is None:
            raise ValueError(f"{type(model).__name__} has no gradient_checkpointing_enable")
        every = self.setting["layers"]
        found = sum(hasattr(module, "gradient_checkpointing") for module in model.modules())
        if found < self.layers:
            raise ValueError(f"the model has {found} layers to checkpoint, not {self.layers}")
        # Older versions of transformers checkpoint all layers or none.
        further = {} if every == 1 else {"every_n_layers": every}
        enable({"use_reentrant": False}, **further)

    def __str__(self) -> str:
        """Returns the figures and the text to paste."""
        found = "fits" if self.fits else "comes nearest"
        search = "of all plans" if self.is_exact else "of the plans that were tried"
        lines = [
            f"ckplan: for {self.kind}, {search} this one {found} within {size(self.budget_bytes)}",
            _line("plan", self.plan_peak_bytes, self.keep_all_peak_bytes, self.plan_added_share),
            _line(self.kind, self.peak_bytes, self.keep_all_peak_bytes, self.added_share),
        ]
        return "\n".join([*lines, "", self.paste or "nothing needs to be recomputed\n"])


def policy(
    plan: Report | GraphReport | Estimate | Mapping[str, Any],
    kind: str,
    *,
    graph: bytes | Mapping[str, Any] | None = None,
) -> Policy:
    """Finds the best plan that another runtime can run within the budget of a plan.

    plan: ``model.ckplan`` after the first step, or one of its ``graphs``; a result of
        ``ckplan.torch.estimate``; or a result of ``ckplan.plan``.
    kind: the runtime: ``"checkpoint"``, ``"deepspeed"``, ``"megatron"``, ``"sac"``,
        ``"torchtitan"`` or ``"transformers"`` (docs/other-runtimes.md).
    graph: the planned joint graph; only with a result of ``ckplan.plan``.

    Raises ValueError for an unknown kind or a missing plan, and ckplan.PlanError if the runtime
    cannot recompute any part of the model.
    """
    document, content = _plan_and_graph(plan, graph)
    with _files(document, content) as (plan_path, graph_path):
        answer = run_program(
            "modules", plan_path, graph_path, f"--for={kind}", "--format=json", "--no-config"
        )
    if answer.exit_code != 0:
        refusal = answer.error()
        if refusal.kind == "usage":
            raise ValueError(str(refusal))
        raise refusal
    return _parse_policy(json.loads(answer.output))


def _plan_and_graph(plan: Any, graph: bytes | Mapping[str, Any] | None) -> tuple[Any, bytes]:
    if isinstance(plan, Report):
        planned = [entry for entry in plan.graphs if entry.plan is not None]
        if len(planned) != 1:
            raise ValueError(
                f"the model has {len(planned)} planned graphs: train a step first, or choose one "
                "of model.ckplan.graphs"
            )
        plan = planned[0]
    if isinstance(plan, GraphReport):
        if plan.plan is None:
            raise ValueError(f"graph {plan.part} is not planned: {plan.refusal}")
        return plan.plan.document, plan.plan.graph
    if isinstance(plan, Estimate):
        if plan.plan is None:
            raise ValueError("the estimate has no plan: either everything fits, or no plan does")
        return plan.plan, plan.graph
    if not isinstance(plan, Mapping) or graph is None:
        raise ValueError("plan must be model.ckplan, an estimate, or a plan with its graph")
    return plan, graph if isinstance(graph, bytes) else json.dumps(graph).encode()


@contextmanager
def _files(document: Any, content: bytes) -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="ckplan-") as folder:
        plan_path, graph_path = Path(folder) / "plan.json", Path(folder) / "graph.json"
        plan_path.write_text(json.dumps(document))
        graph_path.write_bytes(content)
        yield str(plan_path), str(graph_path)


def _parse_policy(found: dict[str, Any]) -> Policy:
    step = found["step_cost"] or 1
    return Policy(
        kind=found["kind"],
        budget_bytes=found["budget_bytes"],
        keep_all_peak_bytes=found["keep_all"]["peak_bytes"],
        plan_peak_bytes=found["plan"]["peak_bytes"],
        plan_added_share=found["plan"]["overhead_cost"] / step,
        peak_bytes=found["runtime"]["peak_bytes"],
        added_share=found["runtime"]["overhead_cost"] / step,
        fits=found["fits"],
        is_exact=found["is_exact"],
        layers=found["layers"],
        setting=found["setting"],
        regions=[_parse_region(row) for row in found["regions"]],
        paste=found["paste"],
    )


def _parse_region(row: dict[str, Any]) -> Region:
    return Region(
        modules=row["modules"],
        operations=row["operations"],
        run_again=row["run_again"],
        saved={saved["op"]: saved["calls"] for saved in row["saved"]},
        calls={saved["op"]: saved["of"] for saved in row["saved"]},
    )


def _line(name: str, peak: int, keep_all: int, added: float) -> str:
    share = percent(peak, keep_all)
    return f"  {name}: peak {size(peak)}, {share} of keep-all's, {100 * added:+.1f}% time"


def _wrap(model: nn.Module, region: Region, saves: bool) -> None:
    options: dict[str, Any] = {"use_reentrant": False}
    if saves:
        options["context_fn"] = functools.partial(_contexts, region)
    (path,) = region.modules
    module: Any = model.get_submodule(path)
    module.forward = functools.partial(checkpoint, module.forward, **options)


def _contexts(region: Region) -> Any:
    """Returns the contexts for one call of the region; they count its operations."""
    seen: collections.Counter[tuple[bool, str]] = collections.Counter()

    def choose(context: Any, operator: Any, *_: Any, **__: Any) -> CheckpointPolicy:
        name = str(operator)
        call = seen[context.is_recompute, name]
        seen[context.is_recompute, name] += 1
        is_saved = call in region.saved.get(name, ())
        return CheckpointPolicy.MUST_SAVE if is_saved else CheckpointPolicy.PREFER_RECOMPUTE

    make: Any = create_selective_checkpoint_contexts  # It has no type annotations.
    first, recomputation = make(choose)
    return _check_calls(first, region, seen), recomputation


@contextmanager
def _check_calls(
    context: Any, region: Region, seen: Mapping[tuple[bool, str], int]
) -> Iterator[None]:
    """Raises RuntimeError if a module does not run the planned operations."""
    with context:
        yield
    for name, planned in region.calls.items():
        if seen[False, name] != planned:
            raise RuntimeError(
                f"{region.modules[0]} runs {name} {seen[False, name]} times in eager mode, but "
                f"{planned} times in the plan: this is another model, or it works in place where "
                'the traced step does not; kind="checkpoint" does not depend on operations'
            )
