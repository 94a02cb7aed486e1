"""Judges JSON by the keywords of JSON Schema that this package's schemas use."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
_KNOWN = {
    "$schema", "$id", "title", "description", "definitions", "type", "required", "properties",
    "additionalProperties", "items", "enum", "minimum", "pattern", "oneOf", "$ref",
}


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], place: str = "") -> list[str]:
    """Returns the violations of the schema in ``value``, each with its place."""
    assert set(schema) <= _KNOWN, f"this judge does not know {set(schema) - _KNOWN}"
    if "$ref" in schema:
        return faults(value, root["definitions"][schema["$ref"].rsplit("/", 1)[1]], root, place)
    if "oneOf" in schema:
        fitting = [row for row in schema["oneOf"] if not faults(value, row, root, place)]
        return [] if len(fitting) == 1 else [f"{place}: fits {len(fitting)} of oneOf"]
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        kinds = tuple(kind for name in names for kind in _TYPES[name])
        if not isinstance(value, kinds) or isinstance(value, bool):
            return [f"{place}: {value!r} is no {names}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place}: {value!r} is none of {schema['enum']}")
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        found.append(f"{place}: {value} is below {schema['minimum']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{place}: {value!r} does not match")
    if isinstance(value, list):
        for position, item in enumerate(value):
            found += faults(item, schema.get("items", {}), root, f"{place}/{position}")
    if isinstance(value, dict):
        found += _faults_of_object(value, schema, root, place)
    return found


def _faults_of_object(
    value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], place: str
) -> list[str]:
    found = [f"{place}: no {key}" for key in schema.get("required", []) if key not in value]
    others = schema.get("additionalProperties", {})
    for key, item in value.items():
        row = schema.get("properties", {}).get(key, others)
        if row is False:
            found.append(f"{place}: {key} is not known")
        else:
            found += faults(item, row, root, f"{place}/{key}")
    return found
