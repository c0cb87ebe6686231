"""How a handler asks the coordinator of a group, and what it refuses before it asks.

Names are stored with a length of two bytes, but arrive with up to four. A name that could not be stored is
refused here.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sparklog.broker.call import Call
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC

STORED_BYTES_MAX: Final = 32_767
"""The longest string that a record of ``__consumer_offsets`` and an old response can have, in UTF-8."""

NAME_BYTES_MAX: Final = STORED_BYTES_MAX - 64
"""The longest name. A member id is a name followed by a UUID, and must fit too."""


def is_too_long(*names: str | None) -> bool:
    """Whether one of ``names`` could not be stored."""
    return any(name is not None and len(name.encode()) > NAME_BYTES_MAX for name in names)


def ask(call: Call, request: Any, answer: Callable[[Any], Any]) -> None:
    """Ask the coordinator of the request's group; ``answer`` makes its response one of the wire."""
    call.broker.coordinators.submit(
        GROUP_OFFSETS_TOPIC,
        request,
        lambda response: call.carefully(lambda: call.reply(answer(response))),
    )


def ask_coordinator_of_each(
    call: Call,
    requests: Sequence[Any],
    answer: Callable[[list[Any]], Any],
    *,
    topic: str = GROUP_OFFSETS_TOPIC,
) -> None:
    """Ask the coordinator of each request, of the kind that writes to ``topic``; ``answer`` gets the
    responses in the order of ``requests``.
    """
    responses: dict[int, Any] = {}
    guard = call.broker.new_guard()

    def keep(number: int, response: Any) -> None:
        with guard:
            responses[number] = response
            if len(responses) < len(requests):
                return
        call.carefully(lambda: call.reply(answer([responses[n] for n in range(len(requests))])))

    if not requests:
        call.reply(answer([]))
    for number, request in enumerate(requests):
        call.broker.coordinators.submit(topic, request, _keeper(keep, number))


def _keeper(keep: Callable[[int, Any], None], number: int) -> Callable[[Any], None]:
    return lambda response: keep(number, response)


def without_repetitions(names: Iterable[str]) -> list[str]:
    """``names``, each once, in the order of their first appearance."""
    return list(dict.fromkeys(names))
