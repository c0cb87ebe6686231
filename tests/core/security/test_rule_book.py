"""Rules as Kafka's authorizer reads them; a question takes as long with a hundred thousand as with ten."""

import itertools
import random
import time
from collections.abc import Iterator

import pytest

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rule_book import REMEMBERED_MAX, ByPrincipal, RuleBook
from sparklog.core.security.rules import ANYBODY, CLOSED, Pattern, PatternType, Permission, Rule

ALICE, BOB, HOST = "User:alice", "User:bob", "10.0.0.1"
TOPIC, GROUP = ResourceType.topic, ResourceType.group
READ, WRITE, DESCRIBE, ALL = AclOperation.read, AclOperation.write, AclOperation.describe, AclOperation.all
DENY = Permission.deny
SALES = Pattern(TOPIC, "sales")


def prefix(name: str, resource: ResourceType = TOPIC) -> Pattern:
    return Pattern(resource, name, PatternType.prefixed)


def book(*rules: tuple[Pattern, Rule]) -> RuleBook:
    made = RuleBook()
    for pattern, rule in rules:
        made.put(pattern, made.rules_of(pattern) | {rule})
    return made


def verdict(made: RuleBook, operation: AclOperation, name: str, who: str = ALICE, host: str = HOST) -> object:
    return made.verdict(who, host, operation, TOPIC, name)


@pytest.mark.parametrize(
    "pattern", [Pattern(TOPIC, "sales"), Pattern(TOPIC, "*"), prefix("sa"), prefix("sales")]
)
def test_a_rule_covers_the_names_of_its_pattern(pattern: Pattern) -> None:
    made = book((pattern, Rule(ALICE, READ)))
    assert verdict(made, READ, "sales") is True
    assert verdict(made, WRITE, "sales") is False
    assert verdict(made, READ, "sales", BOB) is False
    assert made.verdict(ALICE, HOST, READ, GROUP, "sales") is None


def test_where_no_rule_is_about_a_name_there_is_no_verdict() -> None:
    made = book((prefix("sales-"), Rule(ALICE, READ)), (Pattern(TOPIC, "plans"), Rule(BOB, READ)))
    assert verdict(made, READ, "sale") is None
    assert verdict(made, READ, "plan") is None
    assert verdict(made, READ, "plans") is False


def test_a_prefix_is_no_literal_name_and_a_star_is_no_prefix() -> None:
    assert verdict(book((prefix("*"), Rule(ALICE, READ))), READ, "sales") is None
    assert verdict(book((Pattern(TOPIC, "sa"), Rule(ALICE, READ))), READ, "sales") is None


@pytest.mark.parametrize("denying", [Pattern(TOPIC, "sales"), Pattern(TOPIC, "*"), prefix("sa")])
@pytest.mark.parametrize("allowing", [Pattern(TOPIC, "sales"), Pattern(TOPIC, "*"), prefix("sa")])
@pytest.mark.parametrize("operation", [READ, ALL])
def test_a_denial_beats_any_allowance(denying: Pattern, allowing: Pattern, operation: AclOperation) -> None:
    made = book((allowing, Rule(ALICE, ALL)), (denying, Rule(ANYBODY, operation, DENY)))
    assert verdict(made, READ, "sales") is False
    assert verdict(made, WRITE, "sales") is (operation is READ)


@pytest.mark.parametrize("given", [READ, WRITE, AclOperation.delete, AclOperation.alter, ALL])
def test_what_implies_describe_allows_it_and_denies_nothing_but_itself(given: AclOperation) -> None:
    pattern = Pattern(TOPIC, "sales")
    assert verdict(book((pattern, Rule(ALICE, given))), DESCRIBE, "sales") is True
    made = book((pattern, Rule(ALICE, DESCRIBE)), (pattern, Rule(ALICE, given, DENY)))
    assert verdict(made, DESCRIBE, "sales") is (given is not ALL)


def test_altering_settings_implies_to_describe_them_and_nothing_else() -> None:
    made = book((Pattern(TOPIC, "sales"), Rule(ALICE, AclOperation.alter_configs)))
    assert verdict(made, AclOperation.describe_configs, "sales") is True
    assert verdict(made, DESCRIBE, "sales") is False


def test_a_rule_holds_for_its_host_alone() -> None:
    made = book((Pattern(TOPIC, "sales"), Rule(ALICE, READ, host=HOST)))
    assert verdict(made, READ, "sales") is True
    assert verdict(made, READ, "sales", host="10.0.0.2") is False


def test_rules_that_cannot_be_read_close_what_they_cover() -> None:
    made = book((Pattern(TOPIC, "sales"), Rule(ALICE, READ)), (prefix("sa"), *CLOSED))
    assert verdict(made, READ, "sales") is False
    assert verdict(made, DESCRIBE, "safe", BOB) is False


def test_a_pattern_without_rules_is_forgotten() -> None:
    made = book((prefix("sa"), Rule(ALICE, READ)))
    made.put(prefix("sa"), frozenset())
    assert verdict(made, READ, "sales") is None
    assert (len(made), made.patterns()) == (0, [])
    assert not made.allows_any(ALICE, HOST, READ, TOPIC)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([(Pattern(TOPIC, "sales"), Rule(ALICE, WRITE))], True),
        ([(Pattern(TOPIC, "sales"), Rule(ANYBODY, ALL))], True),
        ([(Pattern(GROUP, "sales"), Rule(ALICE, WRITE))], False),
        ([(SALES, Rule(ALICE, WRITE)), (Pattern(TOPIC, "*"), Rule(ALICE, WRITE, DENY))], False),
        ([(SALES, Rule(ALICE, WRITE)), (SALES, Rule(ALICE, ALL, DENY))], False),
        ([(Pattern(TOPIC, "sales"), Rule(ALICE, WRITE)), (prefix("sa"), Rule(ALICE, WRITE, DENY))], False),
        ([(Pattern(TOPIC, "sales"), Rule(ALICE, WRITE)), (prefix("sales-"), Rule(ALICE, WRITE, DENY))], True),
        ([(prefix("sales"), Rule(ALICE, WRITE)), (prefix("sa"), Rule(ALICE, WRITE, DENY))], False),
        ([(prefix("sales"), Rule(ALICE, WRITE)), (Pattern(TOPIC, "sales"), Rule(ALICE, WRITE, DENY))], True),
        ([(Pattern(TOPIC, "*"), Rule(ALICE, WRITE)), (prefix("sa"), Rule(ALICE, WRITE, DENY))], True),
        ([(Pattern(TOPIC, "sales"), Rule(ALICE, WRITE, host="10.9.9.9"))], False),
    ],
)  # fmt: skip
def test_a_right_on_any_topic_is_one_that_no_denial_covers(
    rules: list[tuple[Pattern, Rule]], expected: bool
) -> None:
    assert book(*rules).allows_any(ALICE, HOST, WRITE, TOPIC) is expected


def _plainly(made: RuleBook, who: str, operation: AclOperation, name: str) -> bool | None:
    """The verdict by looking at every rule."""
    covering = [
        rule
        for pattern in made.patterns()
        if pattern.resource is TOPIC
        and (
            name.startswith(pattern.name)
            if pattern.kind is PatternType.prefixed
            else pattern.name in (name, "*")
        )
        for rule in made.rules_of(pattern)
    ]
    if not covering:
        return None
    mine = [rule for rule in covering if rule.principal in (who, ANYBODY)]
    if any(one.permission is DENY and one.operation in (operation, ALL) for one in mine):
        return False
    implying = {operation, ALL} | ({READ, WRITE} if operation is DESCRIBE else set())
    return any(one.permission is Permission.allow and one.operation in implying for one in mine)


@pytest.mark.parametrize("seed", range(8))
def test_verdicts_are_those_of_a_reader_of_all_rules(seed: int) -> None:
    draw, made = random.Random(seed), RuleBook()
    names = ["".join(letters) for n in (1, 2) for letters in itertools.product("ab", repeat=n)]
    for _ in range(25):
        pattern = draw.choice(
            [Pattern(TOPIC, draw.choice(names)), prefix(draw.choice(names)), Pattern(TOPIC, "*")]
        )
        rule = Rule(
            draw.choice([ALICE, BOB, ANYBODY]),
            draw.choice([READ, WRITE, DESCRIBE, ALL]),
            draw.choices([Permission.allow, DENY], [4, 1])[0],
        )
        before = made.rules_of(pattern)
        made.put(
            pattern, before - {rule} if rule in before else before | {rule} if draw.random() < 0.7 else before
        )
        for who, operation, name in itertools.product((ALICE, BOB), (READ, WRITE, DESCRIBE), names):
            assert verdict(made, operation, name, who) == _plainly(made, who, operation, name)


def test_a_question_takes_as_long_with_many_rules_as_with_few() -> None:
    def seconds(count: int) -> float:
        made = RuleBook()
        for number in range(count):
            made.put(Pattern(TOPIC, f"topic-{number}"), frozenset({Rule(f"User:{number}", READ)}))
            made.put(prefix(f"team-{number}-"), frozenset({Rule(f"User:{number}", READ)}))
        best = []
        for _ in range(5):
            began = time.perf_counter()
            for number in range(2_000):
                made.verdict("User:7", HOST, READ, TOPIC, f"team-7-{number}")
            best.append(time.perf_counter() - began)
        return min(best)

    assert seconds(50_000) < 5 * seconds(10)


def test_a_change_while_a_question_is_looked_up_is_not_missed_by_the_next_one() -> None:
    class ChangesMeanwhile(RuleBook):
        def _look_up(self, resource: ResourceType, name: str) -> Iterator[ByPrincipal]:
            found = list(super()._look_up(resource, name))
            self.put(SALES, frozenset({Rule(ALICE, READ, DENY)}))
            return iter(found)

    made = ChangesMeanwhile()
    made.put(SALES, frozenset({Rule(ALICE, READ)}))
    assert verdict(made, READ, "sales") is True, "it began before the change"
    assert verdict(made, READ, "sales") is False


def test_names_that_strangers_ask_for_take_bounded_memory() -> None:
    made = book((SALES, Rule(ALICE, READ)))
    for number in range(REMEMBERED_MAX + 5):
        verdict(made, READ, f"no-such-{number}")
    assert len(made._remembered) == 5
    assert verdict(made, READ, "sales") is True
