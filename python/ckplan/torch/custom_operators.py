"""Exports operators of your own, which ONNX doesn't know, as nodes of their own domain.

``acme::norm`` becomes a node ``norm`` of the domain ``acme``: its tensors are the node's inputs,
and its numbers and texts are attributes. The exporter adds the shapes that PyTorch computes, so
``ckplan`` plans the node; ``--op-shape acme::norm=...`` tells it what backward reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_ATTRIBUTES = {
    "bool": "INT",
    "float": "FLOAT",
    "int": "INT",
    "str": "STRING",
    "List[float]": "FLOATS",
    "List[int]": "INTS",
}
_TENSORS = [
    f"tensor({name})"
    for name in (
        *("bfloat16", "bool", "complex64", "complex128", "double", "float", "float16"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
]


def translations(operators: Sequence[str]) -> dict[Callable[..., Any], Callable[..., Any]]:
    """Returns the exporter's ``custom_translation_table`` for operators such as "acme::norm".

    Raises ValueError for an operator that PyTorch doesn't have.
    """
    table: dict[Callable[..., Any], Callable[..., Any]] = {}
    for name in operators:
        for overload in _overloads(name):
            table[overload] = _translation(overload, *name.split("::"))
    return table


def _overloads(name: str) -> list[Any]:
    domain, _, operator = name.partition("::")
    packet: Any = getattr(getattr(torch.ops, domain, None), operator, None) if operator else None
    if not hasattr(packet, "overloads"):
        raise ValueError(f'operators: PyTorch has no operator "{name}"; name one as "acme::norm"')
    return [getattr(packet, overload) for overload in packet.overloads()]


def _is_tensor(argument: Any) -> bool:
    return str(argument.type) in ("Tensor", "Optional[Tensor]")


def _attribute_kind(argument: Any) -> str | None:
    kind = str(argument.type)
    if kind.startswith("Optional["):
        kind = kind.removeprefix("Optional[").removesuffix("]")
    return _ATTRIBUTES.get(kind)


def _translation(overload: Any, domain: str, operator: str) -> Callable[..., Any]:
    from onnx.defs import OpSchema
    from onnxscript.values import Op, Opset

    arguments = overload._schema.arguments
    inputs = [
        OpSchema.FormalParameter(
            argument.name, f"T{i}", param_option=OpSchema.FormalParameterOption.Optional
        )
        for i, argument in enumerate(arguments)
        if _is_tensor(argument)
    ]
    outputs = [
        OpSchema.FormalParameter(f"output{i}", f"R{i}")
        for i in range(len(overload._schema.returns))
    ]
    kinds = {argument.name: _attribute_kind(argument) for argument in arguments}
    schema = OpSchema(
        operator,
        domain,
        1,
        inputs=inputs,
        outputs=outputs,
        type_constraints=[
            (parameter.type_str, _TENSORS, "") for parameter in inputs + outputs
        ],
        attributes=[
            OpSchema.Attribute(name, getattr(OpSchema.AttrType, kind), required=False)
            for name, kind in kinds.items()
            if kind is not None
        ],
    )
    node = Op(Opset(domain, 1), operator, schema)

    def translate(*args: Any, **kwargs: Any) -> Any:
        given = {argument.name: value for argument, value in zip(arguments, args)} | kwargs
        tensors = [given.get(argument.name) for argument in arguments if _is_tensor(argument)]
        attributes = {
            name: given[name]
            for name, kind in kinds.items()
            if kind is not None and given.get(name) is not None
        }
        return node(*tensors, **attributes)

    return translate
