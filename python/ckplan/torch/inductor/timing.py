"""Times each kernel and operator of a step once, on its device."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ckplan.torch import cache
from ckplan.torch.costs import barrier
from ckplan.torch.inductor import private, private_kernels
from ckplan.torch.inductor.example_calls import example_arguments, example_tensors, machine
from ckplan.torch.inductor.replay import KernelCall, OperatorCall

_RUNS = 7

_INDICES = range(9)
"""The values that index tensors are filled with, in turn, until a kernel accepts one.

A kernel for the gradient of a pooling takes offsets within its windows. In a window at the border,
the first offsets lie outside of the image; the middle of a 3 x 3 window is the fifth one.
"""

_UNTIMED = -1
"""Stands for the time of a kernel that accepts none of these values."""

_LONGEST_NS = 10**12
"""The longest plausible time. A file with a longer one is rejected."""

_ON_GPU_CHECK = "tl.device_assert("
"""A check of indices in a GPU kernel. After it fails, the process can no longer use the GPU."""

_known: dict[str, dict[str, int]] = {}
"""By machine: the times of calls in nanoseconds, by hashes of their keys."""


def times(calls: Iterable[KernelCall | OperatorCall]) -> dict[str, int]:
    """Returns the time of each call in nanoseconds, by its key. Measures unknown ones.

    Omits kernels that cannot run on arbitrary values.
    """
    calls_by_key = {call.key: call for call in calls}
    name = f"call-times-{machine(calls_by_key.values())}"
    known = _known.setdefault(name, {})
    hashes = {key: hashlib.sha256(key.encode()).hexdigest()[:24] for key in calls_by_key}
    if any(hashed not in known for hashed in hashes.values()):
        known.update(cache.load_numbers(name, _UNTIMED, _LONGEST_NS))
    missing = [call for key, call in calls_by_key.items() if hashes[key] not in known]
    if missing:
        with torch.no_grad(), private.real_tensors(), torch.random.fork_rng():
            runs = _compiled(missing)
            for call in missing:
                known[hashes[call.key]] = _measure(call, runs)
        cache.store_numbers(name, known)
    found = {key: known[hashed] for key, hashed in hashes.items()}
    return {key: time for key, time in found.items() if time != _UNTIMED}


def _compiled(calls: list[KernelCall | OperatorCall]) -> dict[str, Callable[..., Any]]:
    """Returns the functions of the kernels that can be timed, by their texts."""
    kernels = [call.kernel.text for call in calls if isinstance(call, KernelCall)]
    texts = [text for text in dict.fromkeys(kernels) if _ON_GPU_CHECK not in text]
    return dict(zip(texts, private_kernels.compiled_kernels(texts)))


def _measure(call: KernelCall | OperatorCall, runs: dict[str, Callable[..., Any]]) -> int:
    if isinstance(call, OperatorCall):
        return _least_time(call, call.operator, lambda: example_arguments(call, is_random=True))
    run = runs.get(call.kernel.text)
    if run is None:
        return _UNTIMED
    for index in _INDICES:
        # A kernel for CPUs raises an error before it uses an index that is out of bounds.
        with contextlib.suppress(RuntimeError):
            return _least_time(call, run, functools.partial(_numbers, call, index))
    return _UNTIMED


def _numbers(call: KernelCall, index: int) -> tuple[list[Any], dict[str, Any]]:
    return example_tensors(call.args, index, is_random=True), {}


def _least_time(
    call: KernelCall | OperatorCall,
    run: Callable[..., Any],
    arguments: Callable[..., tuple[list[Any], dict[str, Any]]],
) -> int:
    """Returns the shortest time of several runs."""
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
