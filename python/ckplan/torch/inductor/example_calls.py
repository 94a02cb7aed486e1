"""Creates real arguments for the calls of a replayed step."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import torch

from ckplan.torch.inductor.replay import Form, KernelCall, OperatorCall


def machine(calls: Iterable[KernelCall | OperatorCall]) -> str:
    """Returns an id of the machine and of its settings that affect how calls run."""
    devices = sorted({form.device for call in calls for form in call.forms()})
    backends: Any = torch.backends
    facts = [torch.__version__, torch.get_num_threads(), backends.mkldnn.is_available()]
    if "cuda" in devices:
        facts += [torch.cuda.get_device_name(), torch.version.cuda]
        facts += [backends.cudnn.version(), backends.cudnn.benchmark]
    text = json.dumps([devices, *facts], default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def example_arguments(
    call: OperatorCall, is_random: bool = False
) -> tuple[list[Any], dict[str, Any]]:
    """Returns arguments of the forms of the call."""
    kwargs = {name: example_tensors(value, is_random=is_random) for name, value in call.kwargs}
    return example_tensors(call.args, is_random=is_random), kwargs


def example_tensors(value: Any, index: int = 0, is_random: bool = False) -> Any:
    """Returns a tensor for each form, filled with ``index`` if it may hold indices, or zeros.

    Zeros are valid indices for all operators, but not for all kernels. With ``is_random``, other
    tensors hold random numbers, because the time of a kernel with branches depends on them.
    """
    if isinstance(value, Form):
        count = 1 + sum((size - 1) * step for size, step in zip(value.shape, value.stride))
        memory = torch.zeros(max(0, count), dtype=value.dtype, device=value.device)
        if value.dtype in _OF_INDICES:
            memory.fill_(index)
        elif is_random:
            _randomize(memory)
        return memory.as_strided(value.shape, value.stride)
    return (
        [example_tensors(item, index, is_random) for item in value]
        if isinstance(value, tuple)
        else value
    )


def _randomize(memory: torch.Tensor) -> None:
    if memory.dtype is torch.bool:
        memory.bernoulli_(_TRUE)
    elif memory.dtype in _NORMAL:
        memory.normal_()


_TRUE = 0.9
"""The fraction of a mask that is true, typical of dropout, which affects branch prediction."""

_NORMAL = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})

_OF_INDICES = frozenset({torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64})
