"""Each rule finds what breaks it, alone, and excuses what may be; without the rule nobody finds it."""

import pytest

from histories import Limits, check
from histories.check import FINDINGS_MAX, RULES
from histories.tests.breaches import BROKEN, LEGAL

LIMITS = Limits(acks_min=0)


def broken_rules(history, rules=RULES):
    verdict = check(history, LIMITS, rules=rules)
    return {finding.rule for finding in verdict.findings}


@pytest.mark.parametrize("name", BROKEN)
def test_a_breach_is_found_by_its_rule_alone(scribe, name):
    rule, write = BROKEN[name]
    write(scribe)
    assert broken_rules(scribe.history) == {rule}


@pytest.mark.parametrize("name", BROKEN)
def test_without_its_rule_a_breach_is_not_found(scribe, name):
    rule, write = BROKEN[name]
    write(scribe)
    assert broken_rules(scribe.history, [one for one in RULES if one.name != rule]) == set()


@pytest.mark.parametrize("name", LEGAL)
def test_what_is_legal_is_excused(scribe, name):
    LEGAL[name](scribe)
    assert check(scribe.history, LIMITS).findings == ()


def test_every_rule_has_a_breach():
    assert {rule for rule, _ in BROKEN.values()} == {rule.name for rule in RULES}


def test_a_finding_says_what_where_and_which_operations(scribe):
    scribe.send("a", 0)
    scribe.send("b", 1)
    scribe.final((0, "a"))
    (finding,) = check(scribe.history, LIMITS).findings
    assert (finding.where, finding.what) == ("t-0", "acknowledged b is lost")
    sent, final = finding.evidence
    assert sent == ("producer sent b (idempotent, acks=all) at 3.000000 s, ok at 4.000000 s, offset 1")
    assert final == "the final read has 1 records from 0 to before 1"


def test_a_history_that_breaks_a_rule_a_thousand_times_says_so_in_a_hundred(scribe):
    for offset in range(1_000):
        scribe.send(str(offset), offset)
    scribe.final()
    findings = check(scribe.history, LIMITS).findings
    assert len(findings) == FINDINGS_MAX + 1
    assert findings[-1].what == "and so on"
