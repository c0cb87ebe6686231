"""The simple words for rules say what the shipped book says."""

import itertools
import random

from simulation.invariants.access.team_rules import NAME_RULES, RULES
from simulation.invariants.access.verdicts import allows
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.authorizer import Authorizer
from sparklog.core.security.requester import Requester

ASKED = list(
    itertools.product(
        ("User:red", "User:blue", "User:office"),
        ("red-writer-0", "blue-writer-0"),
        (AclOperation.read, AclOperation.write, AclOperation.describe),
        (
            *((ResourceType.topic, name) for name in ("red-orders", "blue-orders", "quakes")),
            *((ResourceType.transactional_id, name) for name in ("write-1", "query-2", "red-orders")),
        ),
    )
)


def test_any_rules_of_a_run_mean_the_same_to_both():
    draw, verdicts = random.Random(4711), set()
    for _ in range(100):
        rules = {}
        for one in draw.sample((*RULES, *NAME_RULES), draw.randrange(8)):
            rules[one.pattern] = rules.get(one.pattern, frozenset()) | {one.rule}
        for without_rules in (True, False):
            shipped = Authorizer(allows_without_rules=without_rules)
            for pattern, of_pattern in rules.items():
                shipped.book.put(pattern, of_pattern)
            for principal, host, operation, (resource, name) in ASKED:
                question = (rules, principal, host, operation, name)
                expected = allows(*question, without_rules=without_rules, resource=resource)
                assert shipped.allows(Requester(principal, host), operation, resource, name) is expected
                verdicts.add(expected)
    assert verdicts == {True, False}
