"""Times each kernel and operator of a step once, on the device that it is for."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ckplan.torch import cache
from ckplan.torch.costs import barrier
from ckplan.torch.inductor import private
from ckplan.torch.inductor.examples import example, machine, made
from ckplan.torch.inductor.replay import KernelCall, OperatorCall

_RUNS = 7

_known: dict[str, dict[str, int]] = {}
"""For each machine, the times of calls in nanoseconds, by hashes of their keys."""


def times(calls: Iterable[KernelCall | OperatorCall]) -> dict[str, int]:
    """Returns the time of each call in nanoseconds, by its key; what is not known is measured."""
    wanted = {call.key: call for call in calls}
    name = f"times-{machine(wanted.values())}"
    known = _known.setdefault(name, {})
    hashes = {key: hashlib.sha256(key.encode()).hexdigest()[:24] for key in wanted}
    if any(hashed not in known for hashed in hashes.values()):
        known.update(cache.numbers(name))
    missing = [call for key, call in wanted.items() if hashes[key] not in known]
    if missing:
        with torch.no_grad(), private.real_tensors(), torch.random.fork_rng():
            for call in missing:
                known[hashes[call.key]] = _measure(call)
        cache.store_numbers(name, known)
    return {key: known[hashed] for key, hashed in hashes.items()}


def _measure(call: KernelCall | OperatorCall) -> int:
    """Returns the least time of some runs."""
    run, arguments = _runner(call)
    device = next((form.device for form in call.forms()), "cpu")
    wait = barrier(torch.device(device))
    best = math.inf
    for _ in range(_RUNS):
        args, kwargs = arguments()
        wait()
        before = time.perf_counter_ns()
        run(*args, **kwargs)
        wait()
        best = min(best, time.perf_counter_ns() - before)
    return round(best)


def _runner(
    call: KernelCall | OperatorCall,
) -> tuple[Callable[..., Any], Callable[[], tuple[list[Any], dict[str, Any]]]]:
    if isinstance(call, OperatorCall):
        return call.operator, lambda: example(call)
    return private.compiled_kernel(call.kernel.text), lambda: (made(call.args), {})
