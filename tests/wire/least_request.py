"""Requests with nothing but their required fields."""

import dataclasses
from typing import get_origin, get_type_hints

from sparklog.wire.codec import message_class


def least_request(key):
    """A request of the API with numbers of 1, names of one letter, no bytes and empty lists."""
    cls = message_class(key, "request")
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
