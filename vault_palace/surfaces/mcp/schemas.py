"""Output schemas from the answers' own types: keys and types only, since every client loads them."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

Schema = dict[str, Any]
_PLAIN: Mapping[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def output_schema(*answers: type) -> Schema:
    """The schema of a tool that answers one of *answers*, TypedDicts all.

    With several, only the keys that all of them require are required: one flat object is what every
    client understands, alternatives are not.
    """
    schemas = [_of(answer) for answer in answers]
    properties: Schema = {}
    for schema in schemas:
        for key, value in schema["properties"].items():
            if properties.setdefault(key, value) != value:
                raise TypeError(f"{key} has two types")
    shared = [key for key in properties if all(key in schema.get("required", ()) for schema in schemas)]
    return {"type": "object", "properties": properties, "required": shared}


def map_schema(of: type) -> Schema:
    """The schema of an object with any keys whose values are *of* that TypedDict."""
    return {"type": "object", "additionalProperties": _of(of)}


def _of(hint: Any) -> Schema:
    if is_typeddict(hint):
        hints = get_type_hints(hint, include_extras=True)
        return {
            "type": "object",
            "properties": {key: _of(value) for key, value in hints.items()},
            # `__required_keys__` does not see NotRequired in annotations that are still text.
            "required": [key for key, value in hints.items() if get_origin(value) is not NotRequired],
        }
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return _of(arguments[0])
    if origin in (Union, types.UnionType):
        return {"type": [_PLAIN[argument] for argument in arguments]}
    if origin is list:
        return {"type": "array", "items": _of(arguments[0])}
    if origin is dict:
        values = {} if arguments[1] is object else {"additionalProperties": _of(arguments[1])}
        return {"type": "object"} | values
    return {"type": _PLAIN[hint]}
