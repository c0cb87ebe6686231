"""A request whose rights are asked for, and what comes of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparklog.core.apis.api import Api
from sparklog.core.security.access import Access
from sparklog.model.ids import TopicId

Finish = Callable[[Any], Any]
"""Makes of a handler's response what this requester gets."""


@dataclass(frozen=True, slots=True)
class Question:
    api: Api
    request: Any
    version: int
    access: Access
    topic_name: Callable[[TopicId], str | None]
    """The name of the topic with this id, if there is one."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """What is served of a request. ``finish`` adds what is not to the response, and takes out of it what the
    requester may not see.
    """

    request: Any
    finish: Finish | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """Nothing of the request is served; this is its response."""

    response: Any


Verdict = Admitted | Denied
