"""Open writes as Kafka's transactions: listed and described under their app id (KIP-664).

So ``find-hanging``, ours and Kafka's, does not report batches of a member whose end will come. A member with
its marker is not listed, because a batch that it still has open does hang. A transactional id of the same
name is described instead of the app.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sparklog.core.transaction_coordinator.records import TransactionTopic, TransactionValue
from sparklog.core.transaction_coordinator.requests import ListTransactions
from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.core.write_coordinator.app import App
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.ids import TopicId
from sparklog.model.write_ids import MEMBER_EPOCH

_STATES: Final[Mapping[AppState, TransactionState]] = {
    AppState.OPEN: TransactionState.ONGOING,
    AppState.PREPARED_COMMIT: TransactionState.PREPARE_COMMIT,
    AppState.PREPARED_ABORT: TransactionState.PREPARE_ABORT,
}


def described(app: App | None) -> TransactionValue | None:
    """The app's open write with the partitions of its members; None without one."""
    if app is None or app.head.state is AppState.IDLE:
        return None
    unmarked = _unmarked(app)
    return _value(app, unmarked[0] if unmarked else 0, unmarked)


def listed(apps: Iterable[App], request: ListTransactions) -> Iterator[tuple[str, TransactionValue]]:
    """The open writes that ``request`` asks for: each once, or once for each producer id that it names."""
    for app in apps:
        if app.head.state is AppState.IDLE:
            continue
        if request.states and _STATES[app.head.state] not in request.states:
            continue
        unmarked = _unmarked(app)
        if not request.producer_ids:
            yield app.name, _value(app, unmarked[0] if unmarked else 0, unmarked)
        for number in unmarked:
            if app.producer_id(number) in request.producer_ids:
                yield app.name, _value(app, number, [number])


def _unmarked(app: App) -> list[int]:
    return [number for number in app.members if number not in app.marked]


def _value(app: App, number: int, members: Iterable[int]) -> TransactionValue:
    """The write with the producer id of the member ``number``, and the partitions of ``members``."""
    partitions: dict[tuple[str, TopicId], set[int]] = {}
    for member_number in members:
        for topic in app.members[member_number].topics:
            partitions.setdefault((topic.name, topic.topic_id), set()).update(topic.partitions)
    return TransactionValue(
        app.producer_id(number),
        MEMBER_EPOCH,
        app.head.timeout_ms,
        _STATES[app.head.state],
        tuple(
            TransactionTopic(name, topic_id, tuple(sorted(numbers)))
            for (name, topic_id), numbers in sorted(partitions.items())
        ),
        app.head.last_update_ms,
        app.head.start_ms,
    )
