"""Makes a model of fake tensors, whatever its constructor does: convert, move, copy, load, wrap."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from ckplan.torch import private

_CPU = torch.device("cpu")

_RANGES = (torch.linspace, torch.logspace, torch.arange, torch.tensor)
_READS = (Tensor.item, Tensor.tolist, Tensor.__float__, Tensor.__int__, Tensor.__bool__)
_FEW = 4096
"""Larger tensors have no known numbers, so that they take no time and memory."""


class Making(TorchFunctionMode):
    """While a model is made: all tensors are on the CPU, and the types of parameters are noted.

    A constructor may move its model to a GPU, which this machine need not have.
    """

    def __init__(self) -> None:
        super().__init__()
        self._types: dict[tuple[nn.Module, str], torch.dtype] = {}
        """The type that each parameter was made with."""
        self._values: dict[int, tuple[Tensor, Tensor]] = {}
        """Tensors whose numbers are known, with these, by the tensors' ids."""
        self._hook: Any = None

    def __enter__(self) -> Making:
        self._hook = register_module_parameter_registration_hook(self._note)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._hook.remove()

    def _note(self, module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None:
            self._types.setdefault((module, name), parameter.dtype)

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if function in _READS and id(args[0]) in self._values:
            with private.real_tensors():
                return function(self._values[id(args[0])][1], *args[1:], **kwargs)
        found = self._called(function, args, kwargs)
        self._note_values(function, args, kwargs, found)
        return found

    def _called(
        self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        if function is Tensor.cuda:
            function, args, kwargs = Tensor.to, (args[0], _CPU), {}
        elif function in (Tensor.share_memory_, Tensor.pin_memory):
            return args[0]
        elif function is Tensor.__deepcopy__ and not private.is_fake(args[0]):
            args[1][id(args[0])] = made = args[0].clone()
            return made
        elif function is Tensor.to and len(args) > 1 and isinstance(args[1], (str, int)):
            args = args[0], _CPU, *args[2:]
        args = [_CPU if isinstance(arg, torch.device) else arg for arg in args]
        if kwargs.get("device") is not None:
            kwargs["device"] = _CPU
        return function(*args, **kwargs)

    def _note_values(
        self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any], found: Any
    ) -> None:
        """Notes the values of a few numbers, computed from numbers, for those that read them.

        A constructor may have the rates of its layers from ``torch.linspace(0, 0.1, 12).tolist()``.
        """
        leaves, back = private.flatten((args, kwargs))
        given = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        if function.__name__.endswith("_") or "out" in kwargs:
            for tensor in given:
                self._values.pop(id(tensor), None)
            return
        made = [leaf for leaf in private.flatten(found)[0] if isinstance(leaf, Tensor)]
        is_known = function in _RANGES or (given and all(id(row) in self._values for row in given))
        if not is_known or not made or any(row.numel() > _FEW for row in made):
            return
        known = self._values
        real = back([known[id(row)][1] if isinstance(row, Tensor) else row for row in leaves])
        with private.real_tensors():
            values = function(*real[0], **real[1])
        rows = [leaf for leaf in private.flatten(values)[0] if isinstance(leaf, Tensor)]
        known.update({id(row): (row, value) for row, value in zip(made, rows)})

    def is_converted(self, model: nn.Module) -> bool:
        """Returns whether a parameter has another type than the one that it was made with."""
        return any(
            self._types.get((module, name), row.dtype) != row.dtype
            for module in model.modules()
            for name, row in module.named_parameters(recurse=False, remove_duplicate=False)
        )


def convert(model: nn.Module, dtype: torch.dtype) -> None:
    """Gives all floating parameters the type. Buffers stay as the model made them."""
    for parameter in model.parameters():
        if parameter.is_floating_point() and parameter.dtype != dtype:
            parameter.data = parameter.data.to(dtype)


def first_type(model: nn.Module, default: torch.dtype) -> torch.dtype:
    """Returns the type of the first floating parameter, which inputs should have."""
    return next((row.dtype for row in model.parameters() if row.is_floating_point()), default)


def without_memory(model: nn.Module, mode: Any) -> nn.Module:
    """Returns the model with fake tensors for all parameters and buffers that have memory.

    It is a copy where there are any: they may be those of a model that the caller goes on to use.
    """
    held = [*model.parameters(), *model.buffers()]
    if all(private.is_fake(tensor) for tensor in held):
        return model
    return copy.deepcopy(model, {id(tensor): _fake(tensor, mode) for tensor in held})


def _fake(tensor: Tensor, mode: Any) -> Tensor:
    if private.is_fake(tensor):
        return tensor
    with mode:
        made = torch.empty_strided(
            tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device=_CPU
        )
    if not isinstance(tensor, nn.Parameter):
        return made
    return nn.Parameter(made, requires_grad=tensor.requires_grad)
