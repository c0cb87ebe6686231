"""The kinds of operations on brokers."""

from enum import StrEnum


class OperationKind(StrEnum):
    start = "start"
    stop = "stop"
    restart = "restart"
    drain = "drain"
    fill = "fill"
    remove = "remove"
    reassign = "reassign"
