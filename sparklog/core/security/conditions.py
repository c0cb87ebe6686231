"""The cases in which a request needs a right."""

import enum


class Condition(enum.Enum):
    """A case of a request. The values are words for people, which the page of the protocol shows."""

    always = ""
    """Every request."""

    of_consumers = "of consumers"
    """The request names no replica: its ``replica_id`` is negative."""
    of_replicas = "of replicas"
    """The request names the follower that asks, by its ``replica_id``."""
    of_producers = "of producers"
    """AddPartitionsToTxn before version 4."""
    of_verifiers = "of brokers that verify"
    """AddPartitionsToTxn in version 4 or above, which brokers alone send."""

    with_transactional_id = "with a transactional id"
    """InitProducerId of a producer that has transactions."""
    without_transactional_id = "without a transactional id"
    """InitProducerId of a producer that is idempotent alone."""
    in_named_transaction = "in a transaction that is no write of sparklog's"
    """A batch that is produced is of a transaction, and the transactional id is none of sparklog's names."""

    for_group = "for a group"
    """FindCoordinator with key type 0."""
    for_transactional_id = "for a transactional id, but for sparklog's names"
    """FindCoordinator with key type 1."""

    under_own_name = "under one of sparklog's names"
    """The write's ``app_id`` is one that a job draws at random: no rule can grant it."""
    under_other_name = "under another name, or another's"
    """The write's ``app_id`` is none of sparklog's names, or another principal opened a write under it."""

    for_topic = "for a topic"
    """A resource of type 2 in a request about settings."""
    for_broker = "for a broker"
    """A resource of type 4 or 8 in a request about settings: a broker, all brokers, a broker's loggers."""

    of_clients = "not internal"
    """A topic that brokers do not create by themselves."""
    of_internal_topics = "internal"
    """A topic of coordinators, which brokers create when it is needed first."""
    named_by_id = "named by its id"
    """The request names the topic by its id, and the response by its name."""
    created_automatically = "that is created automatically"
    """Metadata of a missing topic, where neither the request nor the broker forbids to create it."""
    with_settings = "with its settings"
    """Nothing is refused without this right: the response has no settings of the new topic."""
    with_warnings = "for its warnings"
    """The request asks for lines of the broker's log."""
    with_operations = "to show the operations on it"
    """Nothing is refused without this right: the response has no operation on the cluster."""
    listed = "that is listed"
    """Nothing is refused without this right: the response lacks the resource."""

    for_another_owner = "for another owner"
    """The token's owner is to be another user than the requester."""
    of_another_owner = "of another owner"
    """The token's owner is another user than the requester."""
