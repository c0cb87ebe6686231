"""Requests with nothing but their required fields."""

import dataclasses
from typing import get_args, get_origin, get_type_hints

from sparklog.wire.codec import message_class


def least_request(key):
    """A request of the API with numbers of 1, names of one letter, no bytes and empty lists."""
    return _least_of(message_class(key, "request"))


def least(key, field, name):
    """An entry of the list ``field`` of the API's request, about the topic or the resource ``name``."""
    (cls,) = get_args(get_type_hints(message_class(key, "request"))[field])
    names = {one.name for one in dataclasses.fields(cls)} & {"name", "topic", "resource_name"}
    return dataclasses.replace(_least_of(cls), **dict.fromkeys(names, name))


def _least_of(cls):
    hints = get_type_hints(cls)
    required = [
        field.name
        for field in dataclasses.fields(cls)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return cls(**{name: _least(hints[name]) for name in required})


def _least(hint):
    if get_origin(hint) is list:
        return []
    if hint == bytes | memoryview:
        return b""
    return "x" if hint is str else 1
