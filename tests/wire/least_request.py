"""Requests with nothing but their required fields."""

import dataclasses

from sparklog.wire.codec import message_class


def least_request(key):
    """A request of the API with nothing but its required fields."""
    cls = message_class(key, "request")
    required = [
        one.name
        for one in dataclasses.fields(cls)
        if one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
    ]
    numbers = {"broker_id", "broker_epoch"}
    return cls(**{name: 1 if name in numbers else [] for name in required})
