"""Fetches that name columns: which are refused, and why.

A fetch names the ids of columns for each partition, and does so outside fetch sessions, which would have to
keep them.
"""

from collections.abc import Collection

from sparklog.broker.partition.partition import Partition
from sparklog.model.errors import ErrorCode, SchemaError
from sparklog.model.schema.predicates.packed import unpack
from sparklog.model.schema.schema_limits import FIELDS_MAX
from sparklog.records.payload_kinds import TYPED_ARROW_VERSION, takes_arrow
from sparklog.wire.messages.data.fetch import CLOSING_EPOCH, FetchRequest


def misplaced(request: FetchRequest) -> str:
    """Why this request as a whole may not name columns, as it does; empty if it may, or does not."""
    asked = [asked for topic in request.topics for asked in topic.partitions]
    if any(one.condition and one.columns is None for one in asked):
        return "it has a condition on rows, and names no columns"
    if all(one.columns is None for one in asked):
        return ""
    if request.replica_id >= 0:
        return f"it names columns as replica {request.replica_id}: followers get whole batches"
    if request.session_epoch != CLOSING_EPOCH:
        return f"it names columns within a session, at epoch {request.session_epoch}: name them outside (-1)"
    if not takes_arrow(request.payload_kinds, TYPED_ARROW_VERSION):
        return f"it names columns without the payload kind arrow, version {TYPED_ARROW_VERSION}"
    return ""


def refused(columns: Collection[int], partition: Partition, condition: bytes = b"") -> tuple[ErrorCode, str]:
    """The error of a partition of which these ids are wanted, and why; NONE if it gives them. ``condition``
    says which rows, packed.

    An id beyond those that this broker knows may be of a version that is on its way here: the error is one
    upon which clients ask again.
    """
    if not partition.is_typed:
        return ErrorCode.invalid_request, "it has no columns: its topic is not typed"
    if len(set(columns)) < len(columns):
        return ErrorCode.invalid_request, f"of {len(columns)} ids of columns some are repeated"
    if (topic := partition.columns) is None:
        return ErrorCode.not_leader_or_follower, "the topic's columns are on their way here"
    if condition:
        try:
            unpack(condition)
        except SchemaError as error:
            return ErrorCode.invalid_request, str(error)
    unknown = sorted(set(columns) - topic.document.column_ids)
    if not unknown:
        return ErrorCode.none, ""
    if unknown[0] >= topic.document.next_id and len(columns) <= FIELDS_MAX:
        return ErrorCode.not_leader_or_follower, f"id {unknown[0]} is not known here yet"
    return ErrorCode.invalid_request, f"id {unknown[0]} is that of no column"
