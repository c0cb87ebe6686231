"""Whose a transaction is: that of a Kafka client, or of a write of DataFrames, and then of which.

The data source names the writes: ``query-ID`` those of a streaming query, ``app-NAME`` those of the jobs with
``txnAppId=NAME``, ``write-ID`` a batch write alone.
"""

from typing import Final

from sparklog.model.write_ids import is_of_a_write

KAFKA_CLIENT: Final = "Kafka client"
_KINDS: Final = (
    ("query-", "streaming query", "the streaming query with id {}"),
    ("app-", "txnAppId", "the batch writes with txnAppId={}"),
    ("write-", "batch write", "one batch write, which names no txnAppId"),
)


def kind_of(transactional_id: str, producer_id: int) -> str:
    """Whose it is, in a word or two."""
    if not is_of_a_write(producer_id):
        return KAFKA_CLIENT
    return next((kind for prefix, kind, _ in _KINDS if transactional_id.startswith(prefix)), "atomic write")


def owner_of(transactional_id: str, producer_id: int) -> str | None:
    """The owner of an atomic write, with the query's id or the user's name; None if neither is known."""
    if not is_of_a_write(producer_id):
        return None
    for prefix, _, words in _KINDS:
        if transactional_id.startswith(prefix):
            return words.format(transactional_id.removeprefix(prefix))
    return None


def app_id_of(transactional_id: str, producer_id: int) -> str | None:
    """The app id of an atomic write; None for a transaction of a Kafka client."""
    return transactional_id if is_of_a_write(producer_id) else None
