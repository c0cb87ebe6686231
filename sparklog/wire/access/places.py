"""What each right of an API is about: the whole request, its items, or what the response shows.

The places of an API stand in the order of its rights in the table of APIs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from sparklog.core.security.rules import CLUSTER_NAME


def _name(item: Any) -> str:
    return item if isinstance(item, str) else str(item.name)


@dataclass(frozen=True, slots=True)
class Whole:
    """Without the right nothing is served. ``name``: of the resource in the request."""

    name: Callable[[Any], str] = lambda _: CLUSTER_NAME


@dataclass(frozen=True, slots=True)
class Items:
    """Each item of a list needs the right. Those that lack it are answered with its error in ``answers``, a
    list of the response.
    """

    items: str
    answers: str
    name: Callable[[Any], str] = _name


@dataclass(frozen=True, slots=True)
class Shown:
    """The response leaves out items of a list, or of a list in each item of ``within``."""

    answers: str
    name: Callable[[Any], str] = _name
    within: str = ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The right is asked for by other code; ``where`` says which."""

    where: str


Place = Whole | Items | Shown | Elsewhere

_group: Final = Whole(lambda request: request.group_id)
_transaction: Final = Whole(lambda request: request.transactional_id)
_write: Final = Whole(lambda request: request.app_id)
_cluster: Final = Whole()
_topics: Final = Items("topics", "topics")
_topics_by_topic: Final = Items("topics", "topics", lambda item: item.topic)
_resources: Final = Items("resources", "results", lambda item: item.resource_name)
_changed: Final = Items("resources", "responses", lambda item: item.resource_name)
_no_token: Final = Elsewhere("there are no tokens that could be listed")
_by_module: Final = Elsewhere("wire/access/partly")
_by_handler: Final = Elsewhere("the handler")

_BETWEEN: Final = (
    "LeaderAndIsr",
    "StopReplica",
    "UpdateMetadata",
    "ControlledShutdown",
    "AlterPartition",
    "Envelope",
    "AllocateProducerIds",
    "AssignReplicasToDirs",
    "LeanFetch",
)
"""Requests between brokers and the controller."""

PLACES: Final[Mapping[str, tuple[Place, ...]]] = MappingProxyType(
    {
        "Produce": (_by_module, _transaction),
        "Fetch": (_by_handler, _by_handler),
        "ListOffsets": (_topics,),
        "Metadata": (_by_module, Elsewhere("CreateTopics, at the controller"), _by_handler),
        "OffsetCommit": (_group, _topics),
        "OffsetFetch": (_by_module, _by_module),
        "FindCoordinator": (_by_module, _by_module),
        "JoinGroup": (_group,),
        "Heartbeat": (_group,),
        "LeaveGroup": (_group,),
        "SyncGroup": (_group,),
        "DescribeGroups": (Items("groups", "groups"),),
        "ListGroups": (Shown("groups", lambda group: group.group_id),),
        "CreateTopics": (_topics, _topics, _by_module),
        "DeleteTopics": (_by_module, _by_module),
        "DeleteRecords": (_topics,),
        "InitProducerId": (_transaction, _cluster),
        "OffsetForLeaderEpoch": (_topics_by_topic,),
        "AddPartitionsToTxn": (_by_module, _by_module, _cluster),
        "AddOffsetsToTxn": (_transaction, _group),
        "EndTxn": (_transaction,),
        "WriteTxnMarkers": (_cluster,),
        "TxnOffsetCommit": (_transaction, _group, _topics),
        "DescribeAcls": (_cluster,),
        "CreateAcls": (_cluster,),
        "DeleteAcls": (_cluster,),
        "DescribeConfigs": (_resources, _resources),
        "AlterConfigs": (_changed, _changed),
        "DescribeLogDirs": (_cluster,),
        "CreatePartitions": (Items("topics", "results"),),
        "CreateDelegationToken": (
            Whole(lambda request: f"{request.owner_principal_type}:{request.owner_principal_name}"),
        ),
        "DescribeDelegationToken": (_no_token,),
        "DeleteGroups": (Items("groups_names", "results"),),
        "ElectLeaders": (_cluster,),
        "IncrementalAlterConfigs": (_changed, _changed),
        "AlterPartitionReassignments": (_cluster,),
        "ListPartitionReassignments": (_cluster,),
        "OffsetDelete": (_group, _topics),
        "DescribeClientQuotas": (_cluster,),
        "AlterClientQuotas": (_cluster,),
        "DescribeUserScramCredentials": (_cluster,),
        "AlterUserScramCredentials": (_by_module,),
        "DescribeCluster": (_by_handler,),
        "ClusterReport": (_cluster,),
        "BrokerReport": (_cluster, _cluster),
        "OperateBrokers": (_cluster,),
        "DescribeProducers": (_topics,),
        "DescribeTransactions": (
            Items("transactional_ids", "transaction_states"),
            Shown("topics", lambda topic: topic.topic, within="transaction_states"),
        ),
        "ListTransactions": (Shown("transaction_states", lambda one: one.transactional_id),),
        "OpenWrite": (_by_module, _write, _by_module),
        "EndWrite": (_write,),
        "DescribeVisibility": (_topics,),
        "DescribeSchema": (_topics,),
        "AlterSchema": (Whole(lambda request: request.topic),),
        **dict.fromkeys(_BETWEEN, (_cluster,)),
    }
)
