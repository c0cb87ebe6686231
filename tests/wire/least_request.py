"""Requests with nothing but their required fields."""

import dataclasses
from typing import get_origin, get_type_hints

from sparklog.wire.codec import message_class


def least_request(key):
    """A request of the API with numbers of 1 and empty lists."""
    cls = message_class(key, "request")
    hints = get_type_hints(cls)
    required = [
        field.name
        for field in dataclasses.fields(cls)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return cls(**{name: [] if get_origin(hints[name]) is list else 1 for name in required})
