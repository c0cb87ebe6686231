"""The rights that requests need. They are Kafka's (KIP-11, KIP-140 and the KIP of each API).

A Spark job needs no right on names that it draws at random, because no rule can grant these. To open a write
under such a name is what InitProducerId without an id is to a producer.
"""

from typing import Final

from sparklog.core.security.acl import AclOperation, ResourceType, Right
from sparklog.core.security.conditions import Condition

READ_TOPIC: Final = Right(AclOperation.read, ResourceType.topic, Condition.of_consumers)
WRITE_TOPIC: Final = Right(AclOperation.write, ResourceType.topic)
ALTER_TOPIC: Final = Right(AclOperation.alter, ResourceType.topic)
DELETE_TOPIC: Final = Right(AclOperation.delete, ResourceType.topic)
DESCRIBE_TOPIC: Final = Right(AclOperation.describe, ResourceType.topic)
ALTER_CLUSTER: Final = Right(AclOperation.alter, ResourceType.cluster)
DESCRIBE_CLUSTER: Final = Right(AclOperation.describe, ResourceType.cluster)
CLUSTER_ACTION: Final = Right(AclOperation.cluster_action, ResourceType.cluster)
OF_REPLICAS: Final = Right(AclOperation.cluster_action, ResourceType.cluster, Condition.of_replicas)
AS_TRANSACTION: Final = Right(
    AclOperation.write, ResourceType.transactional_id, Condition.with_transactional_id
)
IN_TRANSACTION: Final = Right(
    AclOperation.write, ResourceType.transactional_id, Condition.in_named_transaction
)
WRITE_ANY_TOPIC: Final = Right(AclOperation.write, ResourceType.topic, is_of_any=True)
AS_IDEMPOTENT: Final = Right(
    AclOperation.idempotent_write,
    ResourceType.cluster,
    Condition.without_transactional_id,
    or_else=WRITE_ANY_TOPIC,
)
WRITE_TRANSACTION: Final = Right(AclOperation.write, ResourceType.transactional_id)
DESCRIBE_TRANSACTION: Final = Right(AclOperation.describe, ResourceType.transactional_id)
LIST_TRANSACTIONS: Final = Right(AclOperation.describe, ResourceType.transactional_id, Condition.listed)
DESCRIBE_TRANSACTIONS: Final = (
    DESCRIBE_TRANSACTION,
    Right(AclOperation.describe, ResourceType.topic, Condition.listed),
)
WRITE_MARKERS: Final = Right(AclOperation.alter, ResourceType.cluster, or_else=CLUSTER_ACTION)
OF_VERIFIERS: Final = Right(AclOperation.cluster_action, ResourceType.cluster, Condition.of_verifiers)
CREATE_TOPIC: Final = Right(AclOperation.create, ResourceType.topic)
CREATE_TOPICS: Final = (
    Right(AclOperation.create, ResourceType.cluster, Condition.of_clients, or_else=CREATE_TOPIC),
    Right(
        AclOperation.cluster_action,
        ResourceType.cluster,
        Condition.of_internal_topics,
        or_else=Right(AclOperation.create, ResourceType.cluster),
    ),
    Right(AclOperation.describe_configs, ResourceType.topic, Condition.with_settings),
)
CREATE_MISSING: Final = Right(
    AclOperation.create,
    ResourceType.cluster,
    Condition.created_automatically,
    or_else=CREATE_TOPIC,
)
DESCRIBE_OPERATIONS: Final = Right(AclOperation.describe, ResourceType.cluster, Condition.with_operations)
METADATA: Final = (DESCRIBE_TOPIC, CREATE_MISSING, DESCRIBE_OPERATIONS)
DELETE_BY_ID: Final = Right(AclOperation.describe, ResourceType.topic, Condition.named_by_id)
FIND_GROUP: Final = Right(AclOperation.describe, ResourceType.group, Condition.for_group)
FIND_TRANSACTION: Final = Right(
    AclOperation.describe, ResourceType.transactional_id, Condition.for_transactional_id
)
DESCRIBE_CONFIGS: Final = (
    Right(AclOperation.describe_configs, ResourceType.topic, Condition.for_topic),
    Right(AclOperation.describe_configs, ResourceType.cluster, Condition.for_broker),
)
ALTER_CONFIGS: Final = (
    Right(AclOperation.alter_configs, ResourceType.topic, Condition.for_topic),
    Right(AclOperation.alter_configs, ResourceType.cluster, Condition.for_broker),
)
READ_GROUP: Final = Right(AclOperation.read, ResourceType.group)
DESCRIBE_GROUP: Final = Right(AclOperation.describe, ResourceType.group)
DELETE_GROUP: Final = Right(AclOperation.delete, ResourceType.group)
CONSUME_TOPIC: Final = Right(AclOperation.read, ResourceType.topic)
LIST_GROUPS: Final = Right(
    AclOperation.describe,
    ResourceType.cluster,
    or_else=Right(AclOperation.describe, ResourceType.group, Condition.listed),
)
DESCRIBE_QUOTAS: Final = Right(AclOperation.describe_configs, ResourceType.cluster)
ALTER_QUOTAS: Final = Right(AclOperation.alter_configs, ResourceType.cluster)
CREATE_TOKENS: Final = Right(AclOperation.create_tokens, ResourceType.user, Condition.for_another_owner)
DESCRIBE_TOKENS: Final = Right(
    AclOperation.describe,
    ResourceType.delegation_token,
    Condition.of_another_owner,
    or_else=Right(AclOperation.describe_tokens, ResourceType.user),
)
"""The user is the token's owner."""
DESCRIBE_OFFSETS: Final = Right(AclOperation.cluster_action, ResourceType.cluster, or_else=DESCRIBE_TOPIC)
"""Followers ask for them too, before they fetch."""
ADD_PARTITIONS: Final = (
    Right(AclOperation.write, ResourceType.transactional_id, Condition.of_producers),
    Right(AclOperation.write, ResourceType.topic, Condition.of_producers),
    OF_VERIFIERS,
)
COMMIT_IN_TRANSACTION: Final = (WRITE_TRANSACTION, READ_GROUP, CONSUME_TOPIC)
DESCRIBE_SCHEMA: Final = Right(AclOperation.cluster_action, ResourceType.cluster, or_else=DESCRIBE_TOPIC)
"""Brokers ask the controller for schemas that they lack."""
READ_REPORTS: Final = Right(AclOperation.describe, ResourceType.cluster, or_else=CLUSTER_ACTION)
"""Brokers ask the controller for their copy of the report."""
DESCRIBE_BROKER: Final = (
    DESCRIBE_CLUSTER,
    Right(AclOperation.alter, ResourceType.cluster, Condition.with_warnings),
)
"""A broker's warnings name what is other people's, so they are for those who look after the cluster."""
END_WRITE: Final = Right(AclOperation.write, ResourceType.transactional_id, Condition.under_other_name)
OPEN_WRITE: Final = (
    WRITE_TOPIC,
    END_WRITE,
    Right(
        AclOperation.idempotent_write,
        ResourceType.cluster,
        Condition.under_own_name,
        or_else=WRITE_ANY_TOPIC,
    ),
)
