"""Reruns random operations with the random numbers of their first run.

The generator's state is saved before the first run of an operation that will run again. A later run
sets this state, and then restores the generator, so all other random numbers are those of eager
mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload


def generator_state(device: torch.device) -> torch.Tensor:
    """Returns the state of the device's default generator, as a tensor of bytes on the CPU."""
    if device.type == "cpu":
        return torch.get_rng_state()
    state: torch.Tensor = torch.get_device_module(device).get_rng_state(device)
    return state


def set_generator_state(device: torch.device, state: torch.Tensor) -> None:
    """Sets the state of the device's default generator.

    Hooks for saved tensors may have moved the state to another device, or converted it to another
    type, such as float16, which represents all byte values.
    """
    state = state.to("cpu", torch.uint8)
    if device.type == "cpu":
        torch.set_rng_state(state)
    else:
        torch.get_device_module(device).set_rng_state(state, device)


def replay(
    state: torch.Tensor,
    device: torch.device,
    operator: OpOverload,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
) -> Any:
    """Calls the operator with the generator in ``state``, and then restores the generator."""
    before = generator_state(device)
    set_generator_state(device, state)
    try:
        return operator(*arguments, **named)
    finally:
        set_generator_state(device, before)
