"""``ckplan.torch.compile``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

import ckplan
from ckplan.torch import private
from ckplan.torch.backend import Backend
from ckplan.torch.errors import ReplayError
from ckplan.torch.request import Request


def compile(
    model: Callable[..., Any],
    budget: int | str | None = None,
    *,
    total: int | str | None = None,
    algo: str = "best",
    compiler: str = "eager",
    costs: str = "roofline",
    effort: str = "normal",
    optimizer: str = "sgd",
    time_limit: str | None = None,
    fullgraph: bool = False,
) -> Any:
    """Returns the model, or function, so that calling it trains within a memory budget.

    Like ``torch.compile`` it returns another module with the same parameters; the model itself is
    unchanged. ``.ckplan`` of the result is a Report, whose ``summary()`` says after the first step
    what was planned and measured. Under ``torch.no_grad()`` the model runs untouched.

    budget: a bound on activations, their gradients and workspace: bytes, ``"16GiB"``, ``"60%"`` of
        what the step needs if it keeps everything, or ``"min"``.
    total: instead of it, a bound on these together with parameters, their gradients as they arrive,
        inputs and the state of ``optimizer`` (``"sgd"``, ``"momentum"`` or ``"adam"``).
    compiler: ``"eager"`` runs PyTorch's own operators, with the very bits of eager mode;
        ``"inductor"`` compiles the planned graphs.
    costs: ``"roofline"`` of the device, ``"roofline:a100"``, ``"flops"``, or ``"measure"``, which
        runs each operation a few times when a graph is first seen.
    algo, effort, time_limit: as the options of ``ckplan plan``.
    fullgraph: raise an error where the model does not make one graph.

    A call raises InfeasibleError if no plan fits; a graph that cannot be planned trains as eager
    PyTorch would, with a PlanWarning.
    """
    request = Request(budget, total, algo, effort, optimizer, costs, compiler, time_limit)
    private.check_version(compiler)
    backend = Backend(request)
    compiled = torch.compile(model, backend=backend, dynamic=False, fullgraph=fullgraph)
    if isinstance(model, torch.nn.Module):
        compiled.forward = _with_gradients(model, compiled.forward)
        compiled.ckplan = backend.report
        return compiled
    call = _with_gradients(model, compiled)
    functools.update_wrapper(call, model)
    call.ckplan = backend.report  # type: ignore[attr-defined]
    return call


def _with_gradients(eager: Callable[..., Any], planned: Callable[..., Any]) -> Callable[..., Any]:
    """Calls ``planned`` where gradients are wanted, else ``eager``; and says errors as they are."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return eager(*args, **kwargs)
        try:
            return planned(*args, **kwargs)
        except private.compiler_failure() as failure:
            inner = getattr(failure, "inner_exception", None)
            if isinstance(inner, (ckplan.PlanError, ReplayError, ValueError)):
                raise inner from None
            raise

    return call
