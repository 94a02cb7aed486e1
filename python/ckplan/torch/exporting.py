"""Implements ``ckplan.torch.export``: writes a model as an ONNX file for the program ``ckplan``."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import ckplan
from ckplan.torch import custom_operators, eager_notes, fixed_dimensions, private, private_export
from ckplan.torch.dimensions import Dims, OpenCall, open_call
from ckplan.torch.errors import ExportError

# The program ignores the contents of larger tensors (docs/loader.md). Integer tables are kept up to
# the second size, because ckexec cannot replace them by random numbers.
_LARGEST_KEPT_BYTES = 4 << 10
_LARGEST_TABLE_BYTES = 1 << 20


def export(
    model: nn.Module,
    args: Tensor | tuple[Any, ...],
    path: str | os.PathLike[str],
    *,
    kwargs: Mapping[str, Any] | None = None,
    batch: str | None = "N",
    dims: Dims | None = None,
    weights: bool = False,
    outputs: Sequence[int | str] | None = None,
    operators: Sequence[str] = (),
) -> Path:
    """Writes the model's graph as an ONNX file that ``ckplan`` plans, and returns its path.

    The graph is that of training: nothing is folded, it has dropout and batch statistics, and its
    nodes name their modules. The file also records in-place operations, copies of tensors that
    aren't contiguous, and parameters that don't require gradients. A model in evaluation mode is
    exported in training mode, and then switched back; modules in evaluation mode within a model in
    training mode stay so. Parameters, buffers and random generators do not change.

    model: a module, or what ``ckplan.torch.compile`` or ``torch.compile`` made of one. Its
        parameters may be on the device ``meta``, which takes no memory.
    args: the positional arguments of its ``forward``, as a tuple, or a single tensor. Their values
        do not matter, and neither do their sizes in symbolic dimensions.
    path: the file to write, in a folder that exists.
    kwargs: the keyword arguments of ``forward``.
    batch: the name of the first dimension of each tensor in the arguments. It becomes symbolic, and
        ``ckplan -D N=64`` binds it; its size must be the same in all tensors. None fixes it.
    dims: the symbolic dimensions of some arguments, by the argument's name:
        ``{"tokens": {0: "N", 1: "L"}, "table": {}}``. ``batch`` applies to the other arguments. If
        an argument contains several tensors, this applies to each tensor with such a dimension.
    weights: also write the weights. Plans do not depend on them. Without them the file is small;
        ``ckexec`` uses random weights, and other programs cannot run the file.
    outputs: where the step ends, among what ``forward`` returns: positions in a tuple, or keys of a
        dictionary or data class, as in ``["logits"]``; ``"states.0"`` is a part of a part. All of
        it by default, without what can't be trained. Patterns of ``ckplan --outputs`` end it at
        other tensors.
    operators: operators of your own, as in ``["acme::norm"]``, that the file keeps as nodes of that
        domain. ``ckplan --op-shape`` describes what their backward reads.

    Warns with a PlanWarning if an operation fixes the batch size.

    Raises ExportError, and writes nothing, if PyTorch cannot export the model, or only for the
    sizes of the arguments; TypeError if the arguments do not match ``forward``; ValueError if
    ``batch`` or ``dims`` do not match the arguments, ``outputs`` not what ``forward`` returns, or
    PyTorch lacks one of ``operators``; and ImportError without the packages
    ``onnx`` and ``onnxscript``.
    """
    private.check_version("eager")
    target = _checked_target(path)
    _check_packages()
    model = _checked_model(model, weights)
    opened = open_call(_on_meta(model, _bind(model, args, kwargs)), batch, dims)
    with _training(model):
        program = _trace(model, opened, operators)
    _name_dimensions(program, opened)
    if outputs is not None:
        _end_at(program, outputs)
    _add_unread_buffers(program, model)
    eager_notes.add(program, model)
    traced = program.exported_program
    for warning in fixed_dimensions.warnings_of(traced, opened) if traced is not None else []:
        warnings.warn(warning, ckplan.PlanWarning, stacklevel=2)
    _write(program.save if weights else _save_without_weights(program, target.name), target)
    return target


def _checked_target(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; pass the path of a file")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {target.name}: the folder {target.parent} does not exist"
        )
    return target


def _check_packages() -> None:
    needed = ("onnx", "onnxscript")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"exporting needs {' and '.join(missing)}: pip install {' '.join(missing)}"
        )


def _checked_model(model: Any, weights: bool) -> nn.Module:
    module = private.uncompiled(model)
    if not isinstance(module, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    if weights and any(parameter.is_meta for parameter in module.parameters()):
        raise ValueError("weights=True, but the model is on the meta device and has no weights")
    return module


def _bind(
    model: nn.Module, args: Tensor | tuple[Any, ...], kwargs: Mapping[str, Any] | None
) -> inspect.BoundArguments:
    if isinstance(args, Tensor):
        args = (args,)
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"args must be a tuple of forward's arguments, not {type(args).__name__}")
    try:
        return inspect.signature(model.forward).bind(*args, **(kwargs or {}))
    except TypeError as error:
        name = type(model).__name__
        raise TypeError(f"the arguments do not match {name}.forward: {error}") from None


def _on_meta(model: nn.Module, call: inspect.BoundArguments) -> inspect.BoundArguments:
    """Moves the arguments to the device ``meta`` if the model is there."""
    parameters = list(model.parameters())
    if parameters and all(parameter.is_meta for parameter in parameters):
        leaves, rebuild = private.flatten(dict(call.arguments))
        call.arguments.update(
            rebuild([leaf.to("meta") if isinstance(leaf, Tensor) else leaf for leaf in leaves])
        )
    return call


@contextlib.contextmanager
def _training(model: nn.Module) -> Iterator[None]:
    """Puts a model into training mode within this context."""
    modes = [(module, module.training) for module in model.modules()]
    if not model.training:
        model.train()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _trace(
    model: nn.Module, opened: OpenCall, operators: Sequence[str]
) -> torch.onnx.ONNXProgram:
    own = custom_operators.translations(operators)
    args, kwargs = opened.call.args, opened.call.kwargs
    if not kwargs and args and isinstance(args[-1], dict):
        args = (*args, {})  # Otherwise PyTorch would take the last one as kwargs.
    try:
        with private_export.quiet_exporter():
            program = torch.onnx.export(
                model,
                args,
                kwargs=kwargs,
                dynamo=True,
                optimize=False,
                dynamic_shapes=opened.shapes if opened.sizes() else None,
                custom_translation_table=own or None,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        raise ExportError(fixed_dimensions.reason(model, opened, error)) from error
    assert program is not None
    return program


def _name_dimensions(program: torch.onnx.ONNXProgram, opened: OpenCall) -> None:
    """Checks that the requested dimensions are symbolic, and names them."""
    inputs: list[Any] = list(program.model.graph.inputs)
    requested = set(opened.sizes())
    if requested and len(inputs) != len(opened.inputs):
        raise ExportError(
            f"PyTorch exported {len(inputs)} inputs for {len(opened.inputs)} tensors, so symbolic "
            "dimensions cannot be named"
        )
    values = {id(entry): value for entry, value in zip(opened.inputs, inputs)}
    renamed: dict[str, str] = {}
    for entry, dim, name in opened.open_dimensions():
        found = values[id(entry)].shape[dim]
        if isinstance(found, int):
            raise ExportError(fixed_dimensions.only_for(name, found))
        if found.value not in requested:
            renamed.setdefault(found.value, name)
        now = renamed.get(found.value, found.value)
        if now != name:
            warnings.warn(
                f'dimension "{name}" of {entry.where} always equals "{now}" in this model, so '
                "the file uses that name",
                ckplan.PlanWarning,
                stacklevel=3,
            )
    if renamed:
        private_export.rename_dimensions(program, renamed)


def _end_at(program: torch.onnx.ONNXProgram, outputs: Sequence[int | str]) -> None:
    """Leaves only these results of ``forward``; the program ignores what leads to no output."""
    values: list[Any] = list(program.model.graph.outputs)
    paths = private_export.result_paths(program)
    if len(paths) != len(values):
        raise ExportError(
            f"PyTorch exported {len(values)} outputs for {len(paths)} tensors, so they cannot be "
            "chosen; leave out outputs"
        )
    chosen: dict[int, Any] = {}
    for output in outputs:
        name = str(output)
        found = [i for i, path in enumerate(paths) if f"{path}.".startswith(f"{name}.")]
        if not found:
            raise ValueError(f"forward returns no {output!r}, but {', '.join(paths)}")
        chosen.update((i, values[i]) for i in found)
    if not chosen:
        raise ValueError("outputs is empty; name a result of forward, or leave it out")
    program.model.graph.outputs[:] = [chosen[i] for i in sorted(chosen)]


def _add_unread_buffers(program: torch.onnx.ONNXProgram, model: nn.Module) -> None:
    """Adds the buffers that no operation reads, because they take GPU memory too."""
    import onnx_ir

    graph: Any = program.model.graph
    for name, buffer in model.named_buffers():
        if name in graph.initializers or buffer.is_meta:
            continue
        tensor = onnx_ir.tensor(buffer.detach().cpu().contiguous(), name=name)
        graph.register_initializer(
            onnx_ir.Value(
                name=name,
                shape=onnx_ir.Shape(buffer.shape),
                type=onnx_ir.TensorType(tensor.dtype),
                const_value=tensor,
            )
        )


def _save_without_weights(program: torch.onnx.ONNXProgram, name: str) -> Callable[[Path], None]:
    """Returns a function that saves the graph without weights; they refer to a missing file."""
    import onnx_ir

    weights: list[Any] = list(program.model.graph.initializers.values())
    for value in weights:
        tensor = value.const_value
        if tensor is not None and _is_left_out(tensor):
            value.const_value = onnx_ir.ExternalTensor(
                f"{name}.weights-not-exported",
                None,
                tensor.nbytes,
                tensor.dtype,
                shape=tensor.shape,
                name=value.name,
            )
    return lambda path: onnx_ir.save(program.model, path)


def _is_left_out(tensor: Any) -> bool:
    is_table = not tensor.dtype.is_floating_point()
    largest = _LARGEST_TABLE_BYTES if is_table else _LARGEST_KEPT_BYTES
    return tensor.nbytes > largest or private_export.is_without_data(tensor)


def _write(save: Callable[[Path], None], target: Path) -> None:
    """Writes the file atomically; weights above 1.5 GiB go to a file of their own first."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".ckplan-") as folder:
        temporary = Path(folder) / target.name
        save(temporary)
        for beside in Path(folder).iterdir():
            if beside != temporary:
                os.replace(beside, target.parent / beside.name)
        os.replace(temporary, target)
