"""Each API, asked by each kind of principal at each kind of listener: who is served, what a denial hides."""

import itertools

import pytest

from sparklog.core.apis.api import Api, ListenerKind
from sparklog.core.apis.api_table import APIS, ROWS
from sparklog.core.security.acl import AclOperation, ResourceType, Right
from sparklog.core.security.conditions import Condition
from sparklog.core.security.rule_book import IMPLYING, RuleBook
from sparklog.core.security.rules import CLUSTER_NAME, Pattern, PatternType, Rule
from sparklog.model.ids import NO_TOPIC_ID
from sparklog.wire.codec import encode_request
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.transactions.list_transactions import ListTransactionsRequest
from tests.broker.access.conftest import CLOSED, PREFIXED
from tests.broker.access.samples import APP, GROUP, SAMPLES, TOPIC, TRANSACTION
from tests.broker.access.test_matrix import NOT_TOLD, denials_in, rights_in
from tests.waiting import until

LITERAL = PatternType.literal
CLUSTER, GROUPS, TOPICS = ResourceType.cluster, ResourceType.group, ResourceType.topic
TRANSACTIONS, USERS = ResourceType.transactional_id, ResourceType.user
OPS = AclOperation

UNDER_WAY = {"Ongoing", "PrepareCommit", "PrepareAbort"}

PERSONAS = {
    "anonymous": [],
    "other team": [
        (TOPICS, "other-", PREFIXED, OPS.all),
        (GROUPS, "other-", PREFIXED, OPS.all),
        (TRANSACTIONS, "other-", PREFIXED, OPS.all),
    ],
    "reader": [(TOPICS, TOPIC, LITERAL, OPS.read), (GROUPS, GROUP, LITERAL, OPS.read)],
    "writer": [
        (TOPICS, TOPIC, LITERAL, OPS.write),
        (TRANSACTIONS, TRANSACTION, LITERAL, OPS.write),
        (TRANSACTIONS, APP, LITERAL, OPS.write),
    ],
    "prefix owner": [
        (TOPICS, "matrix-", PREFIXED, OPS.all),
        (GROUPS, "matrix-", PREFIXED, OPS.all),
        (TRANSACTIONS, "matrix-", PREFIXED, OPS.all),
        (TRANSACTIONS, "app-matrix", PREFIXED, OPS.all),
    ],
    "administrator": [
        (CLUSTER, CLUSTER_NAME, LITERAL, OPS.all),
        (TOPICS, "*", LITERAL, OPS.all),
        (GROUPS, "*", LITERAL, OPS.all),
        (TRANSACTIONS, "*", LITERAL, OPS.all),
        (USERS, "*", LITERAL, OPS.all),
    ],
    "broker": [(CLUSTER, CLUSTER_NAME, LITERAL, OPS.cluster_action)],
}
SUPER = "User:ANONYMOUS"
"""The super user of the cluster under test."""

NAMED = {
    TOPICS: TOPIC,
    GROUPS: GROUP,
    CLUSTER: CLUSTER_NAME,
    USERS: "User:matrix-other",
}

OF_OWN_NAMES = {("OpenWrite", Condition.always), ("OpenWrite", Condition.under_own_name)}
"""The first of the principals owns the name; ``test_own_names`` has these."""

CASES = [
    (api, right.condition)
    for api in ROWS
    for right in api.rights
    if right.condition not in NOT_TOLD and api.name != "ListGroups"
]
CASES = list(dict.fromkeys(CASES))


def give_everybody_their_rules(servers) -> None:
    book = RuleBook()
    for persona, rules in PERSONAS.items():
        for resource, name, kind, operation in rules:
            pattern = Pattern(resource, name, kind)
            book.put(pattern, book.rules_of(pattern) | {Rule(f"User:{persona}", operation)})
    for control in servers.controls:
        control.authorizer.book = book


def has(persona: str, right: Right, name: str) -> bool:
    """By the words of the rules, without the book."""
    for resource, given, kind, operation in PERSONAS[persona]:
        covers = right.is_of_any or given in (name, "*") or (kind is PREFIXED and name.startswith(given))
        if resource is right.resource and covers and operation in IMPLYING[right.operation]:
            return True
    return False


def is_served(persona: str, api: Api, case: Condition) -> bool:
    created = Condition.created_automatically
    left_out = set(NOT_TOLD) if case is created else {*NOT_TOLD, created}
    if api.name == "OpenWrite" and case is not Condition.always:
        left_out.add(Condition.always)  # these samples name no topics
    needed = [one for one in rights_in(api, case) if one.condition not in left_out]
    return all(
        any(has(persona, one, name_of(one, api, case)) for one in right.alternatives) for right in needed
    )


def name_of(right: Right, api: Api, case: Condition) -> str:
    if right.resource is TRANSACTIONS:
        return APP if api.name in ("OpenWrite", "EndWrite") else TRANSACTION
    if right.resource is TOPICS and case in (
        Condition.created_automatically,
        Condition.of_clients,
        Condition.of_internal_topics,
    ):
        return "__consumer_offsets" if case is Condition.of_internal_topics else "matrix-new"
    if right.resource is TOPICS and api.name == "DeleteTopics" and case is Condition.always:
        return "matrix-no-topic"
    return NAMED[right.resource]


def asked(servers, api: Api, case: Condition, principal: str, listener: str = "PLAINTEXT"):
    sample = SAMPLES[api.name, case]
    version = min(api.max, sample.last)
    return servers.ask(api, sample.make(servers.topic_id()), version, principal, listener=listener)


def state_of(servers):
    """All that requests could change: ZooKeeper's nodes, and the ends of logs."""
    tree = servers.cluster._memory.tree.copy()
    nodes = {path: (node.data, node.stat.version) for path, node in tree._nodes.items()}
    (broker,) = servers.cluster.brokers.values()
    ends = {one.topic_partition: one.log_end_offset for one in broker.body.replicas.partitions()}
    # Replicas of a topic that has just been created may get their roles meanwhile, and are empty.
    ends = {partition: end for partition, end in ends.items() if end}
    return nodes, ends


def open_transactions(servers) -> list[str]:
    """Those that a coordinator may still end by itself, once their time is up."""
    found = servers.ask(APIS[66], ListTransactionsRequest(), 0, SUPER).transaction_states
    return [one.transactional_id for one in found if one.transaction_state in UNDER_WAY]


def test_every_denied_request_is_denied_and_all_of_them_together_change_nothing(servers) -> None:
    servers.topic_id()
    give_everybody_their_rules(servers)
    until(lambda: not open_transactions(servers), "the end of what other tests have begun")
    before = state_of(servers)
    wrong = [
        (api.name, case.name, persona, listener)
        for (api, case), persona, listener in itertools.product(CASES, PERSONAS, ("PLAINTEXT", "OUTSIDE"))
        if not is_served(persona, api, case)
        and not denials_in(answer := asked(servers, api, case, f"User:{persona}", listener))
        and not (answer is CLOSED and listener == "OUTSIDE" and not api.is_for_clients)
    ]
    assert wrong == []
    (nodes, ends), (nodes_before, ends_before) = state_of(servers), before
    assert nodes.items() ^ nodes_before.items() == set()
    assert ends.items() ^ ends_before.items() == set()


def test_whoever_has_the_rights_is_served_at_each_listener_that_the_table_names(servers) -> None:
    wrong = []
    for (api, case), persona in itertools.product(CASES, (*PERSONAS, "super")):
        if persona != "super" and not is_served(persona, api, case):
            continue
        if (api.name, case) in OF_OWN_NAMES:
            continue
        principal = SUPER if persona == "super" else f"User:{persona}"
        servers.topic_id()
        give_everybody_their_rules(servers)
        if denials := denials_in(asked(servers, api, case, principal)):
            wrong.append((api.name, case.name, persona, denials))
    assert wrong == []


@pytest.mark.parametrize(
    "api", [api for api in ROWS if api.listeners == {ListenerKind.brokers}], ids=lambda api: api.name
)
def test_a_request_of_brokers_closes_a_clients_listener_whoever_asks(servers, api) -> None:
    assert asked(servers, api, Condition.always, SUPER, "OUTSIDE") is CLOSED


def test_a_name_that_is_there_and_one_that_is_not_get_one_answer(servers) -> None:
    """Each request is sent twice: as it is, and with other names of the same length in its frame."""
    servers.topic_id()
    give_everybody_their_rules(servers)
    swaps = [
        (name.encode(), name.encode().replace(b"matrix", b"absent")) for name in (TOPIC, GROUP, TRANSACTION)
    ]
    differing = []
    for api, case in CASES:
        if case in (Condition.named_by_id, Condition.without_transactional_id) or not api.is_for_clients:
            continue  # ids may tell; and a producer id is another each time
        sample = SAMPLES[api.name, case]
        version = min(api.max, sample.last)
        frame = encode_request(sample.make(NO_TOPIC_ID), version, 7, "matrix")[FRAME_PREFIX.size :]
        other = frame
        for there, absent in swaps:
            other = other.replace(there, absent)
        first, second = (servers.reply_to(api, one, "User:other team") for one in (frame, other))
        if first is CLOSED or second is CLOSED:
            differing += [] if first is second else [api.name]
            continue
        for there, absent in swaps:
            second = second.replace(absent, there)
        differing += [] if first == second else [(api.name, case.name, first, second)]
    assert differing == []
