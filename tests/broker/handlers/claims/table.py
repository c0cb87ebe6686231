"""Every request that names somebody, with what it is answered for a name that is not the sender's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sparklog.wire.messages.data.fetch import FetchRequest
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.data.lean_fetch import LeanFetchRequest
from sparklog.wire.messages.data.list_offsets import ListOffsetsRequest
from sparklog.wire.messages.data.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from sparklog.wire.messages.data.produce import ProduceRequest
from sparklog.wire.messages.groups.heartbeat import HeartbeatRequest
from sparklog.wire.messages.groups.join_group import JoinGroupRequest
from sparklog.wire.messages.groups.leave_group import LeaveGroupRequest
from sparklog.wire.messages.groups.offset_commit import OffsetCommitRequest
from sparklog.wire.messages.groups.sync_group import SyncGroupRequest
from sparklog.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from sparklog.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest
from sparklog.wire.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from sparklog.wire.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from sparklog.wire.messages.transactions.end_txn import EndTxnRequest
from sparklog.wire.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from sparklog.wire.messages.transactions.write_txn_markers import WriteTxnMarkersRequest
from sparklog.wire.messages.writes.describe_visibility import DescribeVisibilityRequest
from sparklog.wire.messages.writes.end_write import EndWriteRequest
from sparklog.wire.messages.writes.open_write import OpenWriteRequest
from tests.broker.handlers.claims.of_fetchers import (
    MovedPartition,
    OpenSession,
    ReplicatedPartition,
    SessionOfAFollower,
)
from tests.broker.handlers.claims.of_groups import LivingMember, StaticMember
from tests.broker.handlers.claims.of_tokens import NoToken
from tests.broker.handlers.claims.of_transactions import OpenTransaction
from tests.broker.handlers.claims.of_writes import IdempotentProducer, OpenWriteOfApp


@dataclass(frozen=True)
class Row:
    """One request, sent by the method ``ask`` of ``owner`` with each claim.

    ``answers`` by claim: the owner goes on behind them. ``believed``: claims that are answered as their
    owner's, on Kafka too, so that the owner need not go on; each with its reason.
    """

    request: type[Any]
    owner: type[Any]
    ask: str
    answers: Mapping[str, str]
    believed: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.request.__name__.removesuffix('Request')} of {self.owner.__name__}.{self.ask}"


_OF_PRODUCERS: Final = {
    "an id that was never given": "invalid_producer_id_mapping",
    "an epoch that was never given": "producer_fenced",
    "the owner's id under another name": "invalid_producer_id_mapping",
    "another's id under the owner's name": "invalid_producer_id_mapping",
    "an old epoch": "producer_fenced",
}
_OF_MEMBERS: Final = {
    "a member that was never given": "unknown_member_id",
    "a member of another group": "unknown_member_id",
    "a member that has left": "unknown_member_id",
    "an instance that was never given": "unknown_member_id",
}
_OF_STATIC_MEMBERS: Final = {
    "a member that was never given": "fenced_instance_id",
    "a member of another group": "fenced_instance_id",
    "the member before it": "fenced_instance_id",
    "an instance that was never given": "unknown_member_id",
}
_OF_GENERATIONS: Final = {
    "a generation that was never given": "illegal_generation",
    "an old generation": "illegal_generation",
}
_NO_MEMBER: Final = {"no member": "unknown_member_id"}
_OF_LEADER_EPOCHS: Final = {
    "an epoch that was never given": "unknown_leader_epoch",
    "an old epoch": "fenced_leader_epoch",
}
_OF_ATTEMPTS: Final = dict.fromkeys(
    ("an id that was never given", "an id of another attempt", "an id of another app", "an old id"),
    "MEMBER_ENDED",
)

_OF_TOKENS: Final = {"a token that was never given": "delegation_token_request_not_allowed"}

_BATCH: Final = (
    "a batch has no other name than its producer id and epoch; those of an open transaction count, and who "
    "sends them is what an authorizer decides"
)
_MARKER: Final = "markers are the coordinators' own, and need CLUSTER_ACTION"
_MEMBER: Final = "a member is known by the id that it was given, which nobody else knows; as the owner's own"
_OUTSIDE: Final = "older consumers commit in transactions without saying who they are"
_SESSION: Final = "a session is known by its id and its next epoch; the owner is told, and opens another"
_REPLICA: Final = "replicas are the brokers' own, and need CLUSTER_ACTION"


def _of_members(request: type[Any], ask: str, *, has_generation: bool = True) -> tuple[Row, Row]:
    """The rows of a dynamic and of a static member."""
    more = {**_OF_GENERATIONS, **_NO_MEMBER} if has_generation else {}
    believed = {"the owner as a whole": _MEMBER}
    return (
        Row(request, LivingMember, ask, {**_OF_MEMBERS, **more}, believed),
        Row(request, StaticMember, ask, {**_OF_STATIC_MEMBERS, **more}, believed),
    )


TABLE: Final = (
    # without a transactional id
    Row(
        InitProducerIdRequest,
        IdempotentProducer,
        "init_producer_id",  # what is named is ignored, and a fresh id given
        dict.fromkeys(
            (
                "an id that was never given",
                "an epoch that was never given",
                "an old epoch",
                "the owner as a whole",
            ),
            "none",
        ),
    ),
    Row(
        ProduceRequest,
        IdempotentProducer,
        "produce",
        {"an id that was never given": "none", "an old epoch": "invalid_producer_epoch"},
        {"an epoch that was never given": _BATCH, "the owner as a whole": _BATCH},
    ),
    # under a transactional id
    Row(
        InitProducerIdRequest,
        OpenTransaction,
        "init_producer_id",
        dict.fromkeys(_OF_PRODUCERS, "producer_fenced"),
    ),
    Row(AddPartitionsToTxnRequest, OpenTransaction, "add_partitions", _OF_PRODUCERS),
    Row(AddPartitionsToTxnRequest, OpenTransaction, "verify_partitions", _OF_PRODUCERS),
    Row(AddOffsetsToTxnRequest, OpenTransaction, "add_offsets", _OF_PRODUCERS),
    Row(
        TxnOffsetCommitRequest,
        OpenTransaction,
        "commit_offsets",
        {
            "an id that was never given": "invalid_producer_id_mapping",
            "an epoch that was never given": "invalid_producer_epoch",
            "another's id under the owner's name": "invalid_producer_id_mapping",
            "an old epoch": "invalid_producer_epoch",
        },
        {"the owner's id under another name": _BATCH},
    ),
    Row(
        ProduceRequest,
        OpenTransaction,
        "produce",
        {
            "an id that was never given": "invalid_producer_id_mapping",
            "an epoch that was never given": "out_of_order_sequence_number",
            "another's id under the owner's name": "invalid_producer_id_mapping",
            "an old epoch": "invalid_producer_epoch",
        },
        {"the owner's id under another name": _BATCH},
    ),
    Row(EndTxnRequest, OpenTransaction, "end", _OF_PRODUCERS),
    Row(
        WriteTxnMarkersRequest,
        OpenTransaction,
        "marker",
        {
            "an id that was never given": "none",
            "another's id under the owner's name": "none",
            "an old epoch": "invalid_producer_epoch",
        },
        {"an epoch that was never given": _MARKER, "the owner's id under another name": _MARKER},
    ),
    # in a group
    *_of_members(JoinGroupRequest, "join", has_generation=False),
    *_of_members(SyncGroupRequest, "sync"),
    *_of_members(HeartbeatRequest, "heartbeat"),
    *_of_members(LeaveGroupRequest, "leave", has_generation=False),
    *_of_members(OffsetCommitRequest, "commit"),
    Row(
        TxnOffsetCommitRequest,
        LivingMember,
        "commit_in_transaction",
        {**_OF_MEMBERS, **_OF_GENERATIONS},
        {"no member": _OUTSIDE, "the owner as a whole": _MEMBER},
    ),
    Row(
        TxnOffsetCommitRequest,
        StaticMember,
        "commit_in_transaction",
        {**_OF_STATIC_MEMBERS, **_OF_GENERATIONS},
        {"no member": _OUTSIDE, "the owner as a whole": _MEMBER},
    ),
    # sessions, replicas, leader epochs
    Row(
        FetchRequest,
        OpenSession,
        "fetch_session",
        {
            "a session that was never given": "fetch_session_id_not_found",
            "an epoch that was never given": "invalid_fetch_session_epoch",
            "an old session": "fetch_session_id_not_found",
            "an old epoch": "invalid_fetch_session_epoch",
        },
        {"the owner as a whole": _SESSION},
    ),
    Row(
        FetchRequest,
        ReplicatedPartition,
        "fetch_as_replica",
        {"a replica that was never given": "not_leader_or_follower", "an old epoch": "stale_broker_epoch"},
        {"the owner as a whole": _REPLICA},
    ),
    Row(
        LeanFetchRequest,
        SessionOfAFollower,
        "lean_fetch",
        {
            "a session that was never given": "fetch_session_id_not_found",
            "a session of a consumer": "fetch_session_id_not_found",
            "an epoch that was never given": "invalid_fetch_session_epoch",
            "an old epoch": "invalid_fetch_session_epoch",
        },
        {"the owner as a whole": _SESSION},
    ),
    Row(
        ListOffsetsRequest,
        ReplicatedPartition,
        "list_as_replica",  # it is told the end of the log, and nothing is kept of it
        {"a replica that was never given": "none", "the owner as a whole": "none"},
    ),
    Row(
        OffsetForLeaderEpochRequest,
        ReplicatedPartition,
        "epoch_end_as_replica",
        {"a replica that was never given": "none", "the owner as a whole": "none"},
    ),
    Row(FetchRequest, MovedPartition, "fetch", _OF_LEADER_EPOCHS),
    Row(ListOffsetsRequest, MovedPartition, "list_offsets", _OF_LEADER_EPOCHS),
    Row(OffsetForLeaderEpochRequest, MovedPartition, "epoch_end", _OF_LEADER_EPOCHS),
    Row(DescribeVisibilityRequest, MovedPartition, "visibility", _OF_LEADER_EPOCHS),
    # atomic writes
    Row(OpenWriteRequest, OpenWriteOfApp, "open_write", _OF_ATTEMPTS, {"the owner as a whole": _MEMBER}),
    Row(
        OpenWriteRequest,
        OpenWriteOfApp,
        "open_later_write",
        {**_OF_ATTEMPTS, "the owner as a whole": "MEMBER_ENDED"},
    ),
    Row(OpenWriteRequest, OpenWriteOfApp, "open_version", {"an old version": "ALREADY_COMMITTED"}),
    Row(
        EndWriteRequest,
        OpenWriteOfApp,
        "end_write",
        {
            "an id that was never given": "LOST_MEMBER",
            "an id of another app": "LOST_MEMBER",
            "an old id": "LOST_MEMBER",
            "the owner as a whole": "LOST_MEMBER",  # it has not finished
        },
        {"an id of another attempt": "whoever drives the write chooses its winners among all attempts"},
    ),
    Row(
        EndWriteRequest,
        OpenWriteOfApp,
        "end_version",
        {"a version that was never given": "NOT_OPEN", "an old version": "ALREADY_COMMITTED"},
    ),
    Row(EndWriteRequest, OpenWriteOfApp, "abort_run", {"a run that was never given": "ABORTED"}),
    Row(
        ProduceRequest,
        OpenWriteOfApp,
        "produce",
        {
            "an id that was never given": "invalid_producer_id_mapping",
            "an id of another app": "invalid_producer_id_mapping",
            "an old id": "invalid_producer_id_mapping",
        },
        {"an id of another attempt": _BATCH, "the owner as a whole": _BATCH},
    ),
    Row(
        ProduceRequest,
        OpenWriteOfApp,
        "produce_in_epoch",
        {"an epoch that was never given": "invalid_txn_state"},
    ),
    # delegation tokens
    Row(RenewDelegationTokenRequest, NoToken, "renew", _OF_TOKENS),
    Row(ExpireDelegationTokenRequest, NoToken, "expire", _OF_TOKENS),
)
