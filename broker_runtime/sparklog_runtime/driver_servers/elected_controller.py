"""The active controller of a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ElectedController:
    """The active controller, as the ``/controller`` node names it."""

    pid: int
    host: str
    port: int
    application: str
    topic_defaults: Mapping[str, str] = field(default_factory=dict)
    """Its settings of topics that name none, as far as it tells them."""
