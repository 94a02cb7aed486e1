"""Creates models of fake tensors, even by constructors that convert, move, copy or load them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from ckplan.torch import private
from ckplan.torch.errors import EstimateError
from ckplan.torch.estimation.private import (
    asks_for_gpu,
    device_constructors,
    is_fake,
    is_in_fake_mode,
    reads_values,
    sizes_by_values,
)

_CPU = torch.device("cpu")

_RANGES = (
    torch.linspace, torch.logspace, torch.arange, torch.tensor, torch.as_tensor,
    torch.zeros, torch.ones, torch.full, torch.eye, torch.tril_indices, torch.triu_indices,
)  # fmt: skip
_OF_MEMORY = (torch.frombuffer, torch.asarray)
"""Functions that may wrap existing memory, such as a file of weights, in a tensor."""
_CONDITIONS = (
    Tensor.__bool__, Tensor.is_nonzero, torch.is_nonzero, Tensor.equal, torch.equal,
    Tensor.allclose, torch.allclose,
)  # fmt: skip
"""Constructors use these to check initial values, as in ``if isnan(weight).any()``."""
_AS_ARRAYS = (Tensor.numpy, Tensor.__array__)
_READS = (
    Tensor.item, Tensor.tolist, Tensor.__float__, Tensor.__int__, Tensor.__index__,
    *_AS_ARRAYS, *_CONDITIONS,
)  # fmt: skip
_DRAWS = (torch.rand, torch.randn, torch.randint, torch.randperm)
_IN_PLACE = {"__setitem__", *(f"__i{name}__" for name in (
    "add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "and", "or", "xor",
    "lshift", "rshift", "matmul",
))}  # fmt: skip
_FEW = 4096
"""Values of larger tensors are not computed, to save time and memory."""


class Construction(TorchFunctionMode):
    """Keeps all tensors on the CPU while a model is created, and records the types of parameters.

    A constructor may move its model to a GPU that this machine does not have.
    """

    def __init__(self) -> None:
        super().__init__()
        self._types: dict[tuple[nn.Module, str], torch.dtype] = {}
        """The type with which each parameter was created."""
        self._values: dict[int, tuple[Tensor, Tensor]] = {}
        """Tensors with known values, and these values, by the tensors' ids."""
        self.are_assumed = False
        """A condition on a tensor's values, which are unknown, was assumed to be false."""
        self._hook: Any = None

    def __enter__(self) -> Construction:
        self._hook = register_module_parameter_registration_hook(self._note)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._hook.remove()

    def construct(self, make_model: Callable[[], nn.Module]) -> nn.Module:
        """Calls ``make_model``. Raises EstimateError if it needs values of tensors or a GPU."""
        try:
            return make_model()
        except EstimateError:
            raise
        except Exception as error:
            name = reads_values(error)
            if name:
                raise _reading_error(name) from error
            name = sizes_by_values(error)
            if name:
                raise EstimateError(
                    f"make_model calls {name}(), whose result size depends on values of a tensor, "
                    "which an estimate does not have; compute it from Python numbers, or omit this"
                ) from error
            if asks_for_gpu(error):
                raise EstimateError(
                    f"make_model requires a GPU, but an estimate runs without one "
                    f"({_first_line(error)}); omit this, because device= names the GPU"
                ) from error
            if "pickle" in str(error):
                raise EstimateError(
                    f"make_model saves tensors, but an estimate has no values to save ({error}); "
                    "omit this"
                ) from error
            if not self.are_assumed:
                raise
            raise EstimateError(
                f"make_model raises {type(error).__name__} after a condition on values of a tensor, "
                "which an estimate does not have and assumes to be false; omit the condition"
            ) from error

    def _note(self, module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None:
            self._types.setdefault((module, name), parameter.dtype)

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if not is_in_fake_mode():
            return function(*args, **kwargs)  # PyTorch itself calls it, to make a fake tensor.
        if function in _READS:
            return self._read(function, args, kwargs)
        function, args, kwargs = _on_cpu(function, args, kwargs)
        if function in _OF_MEMORY and not any(map(is_fake, _tensors((args, kwargs)))):
            with private.real_tensors():
                return function(
                    *args, **kwargs | ({"device": _CPU} if kwargs.get("device") else {})
                )
        try:
            found = self._call(function, args, kwargs)
        except RuntimeError as error:
            values = self._compute_known(function, args, kwargs) if sizes_by_values(error) else None
            if values is None:
                raise
            return self._fake_like(values)
        self._note_values(function, args, kwargs, found)
        return found

    def _fake_like(self, values: Any) -> Any:
        """Returns fake tensors for results whose sizes depend on values."""
        leaves, back = private.flatten(values)
        made = [
            torch.empty_strided(tuple(leaf.shape), leaf.stride(), dtype=leaf.dtype, device=_CPU)
            if isinstance(leaf, Tensor)
            else leaf
            for leaf in leaves
        ]
        self._keep([leaf for leaf in made if isinstance(leaf, Tensor)], values)
        return back(made)

    def _read(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        known: list[Any] = [
            self._known_values(arg) if isinstance(arg, Tensor) else arg for arg in args
        ]
        if not any(row is None for row, arg in zip(known, args) if isinstance(arg, Tensor)):
            with private.real_tensors():
                known = [row.detach() if isinstance(row, Tensor) else row for row in known]
                if function in _AS_ARRAYS and known[0].dtype == torch.bfloat16:
                    known[0] = known[0].float()  # NumPy has no such type.
                return function(*known, **kwargs)
        if function in _CONDITIONS:
            self.are_assumed = True
            return False
        raise _reading_error(function.__name__.strip("_"))

    def _known_values(self, tensor: Tensor) -> Tensor | None:
        """Returns the tensor with its values, if they are known."""
        if not is_fake(tensor):
            return tensor
        return self._values[id(tensor)][1] if id(tensor) in self._values else None

    def _call(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        if function in (Tensor.share_memory_, Tensor.pin_memory):
            return args[0]
        elif function is Tensor.__deepcopy__ and not is_fake(args[0]):
            args[1][id(args[0])] = made = args[0].clone()
            return made
        return function(*args, **kwargs)

    def _note_values(
        self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any], found: Any
    ) -> None:
        """Records values that were computed from known ones, in case the constructor reads them.

        For example, it may compute dropout rates by ``torch.linspace(0, 0.1, 12).tolist()``.
        """
        given = _tensors((args, kwargs))
        if _changes_arguments(function, kwargs):
            for tensor in given:
                self._values.pop(id(tensor), None)
            return
        made = [row for row in _tensors(found) if is_fake(row)]
        if not made or any(row.numel() > _FEW for row in made):
            return
        values = self._compute_known(function, args, kwargs)
        if values is not None:
            self._keep(made, values)

    def _compute_known(
        self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Calls the function with known values. Returns None if some values are unknown."""
        given = _tensors((args, kwargs))
        if function in _DRAWS and not given:
            with private.real_tensors(), torch.random.fork_rng(devices=()):
                torch.manual_seed(0)  # So that the model is the same each time.
                kwargs = {key: row for key, row in kwargs.items() if key != "generator"}
                return function(*args, **kwargs)
        known = [self._known_values(row) for row in given]
        if any(row is None for row in known) or not (given or function in _RANGES):
            return None
        leaves, back = private.flatten((args, kwargs))
        numbers = iter(known)
        real = back([next(numbers) if isinstance(row, Tensor) else row for row in leaves])
        with private.real_tensors():
            return function(*real[0], **real[1])

    def _keep(self, made: list[Tensor], values: Any) -> None:
        self._values.update({id(row): (row, value) for row, value in zip(made, _tensors(values))})

    def is_converted(self, model: nn.Module) -> bool:
        """Returns whether any parameter changed its type after it was created."""
        return any(
            self._types.get((module, name), row.dtype) != row.dtype
            for module in model.modules()
            for name, row in module.named_parameters(recurse=False, remove_duplicate=False)
        )


def _on_cpu(
    function: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], Any, dict[str, Any]]:
    """Returns a call whose results are on the CPU, whatever device it names."""
    if function is Tensor.cuda:
        return Tensor.to, (args[0], _CPU), {}
    if function is Tensor.to and len(args) > 1 and isinstance(args[1], (str, int)):
        args = args[0], _CPU, *args[2:]
    args = [_CPU if isinstance(arg, torch.device) else arg for arg in args]
    if kwargs.get("device") is not None or function in device_constructors():
        kwargs = kwargs | {"device": _CPU}
    return function, args, kwargs


def _changes_arguments(function: Callable[..., Any], kwargs: dict[str, Any]) -> bool:
    name = function.__name__
    return "out" in kwargs or name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__).partition(". ")[0]


def _reading_error(name: str) -> EstimateError:
    return EstimateError(
        f"make_model reads values of a tensor by {name}(), but an estimate does not have them; "
        "compute them from Python numbers, or omit this"
    )


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in private.flatten(value)[0] if isinstance(leaf, Tensor)]


def convert(model: nn.Module, dtype: torch.dtype) -> None:
    """Converts all floating-point parameters to the type. Buffers keep theirs."""
    for parameter in model.parameters():
        if parameter.is_floating_point() and parameter.dtype != dtype:
            parameter.data = parameter.data.to(dtype)


def first_type(model: nn.Module, default: torch.dtype) -> torch.dtype:
    """Returns the type of the first floating-point parameter, which inputs should have."""
    return next((row.dtype for row in model.parameters() if row.is_floating_point()), default)


def without_memory(model: nn.Module, mode: Any) -> nn.Module:
    """Returns the model with fake tensors in place of parameters and buffers that have memory.

    If there are any, it is a copy, because the caller may still use the model.
    """
    held = [*model.parameters(), *model.buffers()]
    if all(is_fake(tensor) for tensor in held):
        return model
    return copy.deepcopy(model, {id(tensor): _fake(tensor, mode) for tensor in held})


def _fake(tensor: Tensor, mode: Any) -> Tensor:
    if is_fake(tensor):
        return tensor
    with mode:
        made = torch.empty_strided(
            tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device=_CPU
        )
    if not isinstance(tensor, nn.Parameter):
        return made
    return nn.Parameter(made, requires_grad=tensor.requires_grad)
