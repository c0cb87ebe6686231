"""Names of certificates become principals as Kafka makes them: expected is what Kafka 3.9.1 answers."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.principal_rules import PrincipalRules

KAFKA1 = "CN=kafka1,OU=SME,O=mycp,L=Fulton,ST=MD,C=US"
DUKE = "CN=duke,OU=ServiceUsers,O=Org,C=US"
DOCUMENTED = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    "DEFAULT"
)
"""The example of Kafka's documentation."""


@pytest.mark.parametrize(
    ("rules", "owner", "name"),
    [
        ("DEFAULT", KAFKA1, KAFKA1),
        (DOCUMENTED, DUKE, "duke"),
        (DOCUMENTED, KAFKA1, "kafka1@sme"),
        (DOCUMENTED, "OU=x,cn=Bob", "bob"),
        (DOCUMENTED, "O=nobody", "O=nobody"),
        ("RULE:.*/x/", "CN=a", "xx"),
        ("RULE:(.*)/$1/", "CN=a", "CN=a"),
        ("RULE:^(.*)$/$0!/", "CN=a", "CN=a!"),
        ("RULE:^(.)(.)(.)(.).*/$45$12$04/", "CN=abc", "a5C2a"),
        ("RULE:^(C)(N).*/$123/", "CN=abc", "C23"),
        ("RULE:^(CN).*/$11$9/", "CN=abc", "CN1$9"),
        ("RULE:^CN=(.*)$/$1/U", "CN=ünï", "ÜNÏ"),
        (r"RULE:CN=([^,]*).*/\$$1\/x/", KAFKA1, "$kafka1/x"),
        ("RULE:^CN=(?<n>[^,]*).*/${n}-${n}/", KAFKA1, "kafka1-kafka1"),
        ("RULE:^CN=(a)?.*/[$1]/", KAFKA1, "[]"),
        ("RULE:a|CN=.*/x/", "CN=a", "x"),
        ("RULE:^CN=(.*?),(O|OU)=(.*)/$2$3/ , DEFAULT", "CN=a,O=b", "Ob"),
        ("RULE:(?i)^cn=(.*)/$1/", "CN=a", "a"),
        (r"RULE:^CN=(\w*).*/$1/", "CN=aé", "a"),
        ("RULE:^CN=([^]a,]*).*/$1/", "CN=bca,O=x", "bc"),
        ("RULE:^O=.*/x/,RULE:^CN=([^,]*).*/$1/", KAFKA1, "kafka1"),
        ("RULE:^CN=(.*)/$1/L ,\n RULE:.*/y/", "CN=A", "a"),
    ],
)
def test_a_name_is_mapped_as_kafka_maps_it(rules: str, owner: str, name: str) -> None:
    assert PrincipalRules.parse(rules).name_of(owner) == name


def test_a_name_that_no_rule_fits_has_no_principal() -> None:
    with pytest.raises(
        ValueError, match=r"no rule of ssl\.principal\.mapping\.rules=RULE:\^O.* fits the name CN=a"
    ):
        PrincipalRules.parse("RULE:^O=.*/x/").name_of("CN=a")


def test_a_name_begins_no_line_of_the_log() -> None:
    with pytest.raises(ValueError, match="fits the name CN=a") as refused:
        PrincipalRules.parse("RULE:^O=.*/x/").name_of("CN=a\n2026 ERROR planted" + "x" * 10_000)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("", "there is no rule; write DEFAULT"),
        ("default", "'default' does not begin with DEFAULT or RULE:PATTERN/REPLACEMENT/[LU]"),
        ("DEFAULT DEFAULT", "does not begin with"),
        ("RULE:^CN=(.*)$/$1", "does not begin with"),
        ("RULE:^CN=(.*)$/$1/X", "does not begin with"),
        ("RULE:[/a/", "'[' is no regular expression that can be used: unterminated"),
        (r"RULE:\p{Upper}.*/a/", "no regular expression that can be used: bad escape"),
        ("RULE:[a-z&&[^b]]*/a/", "has an operator inside of brackets, [a-z&&[^b]; write the characters"),
        ("RULE:[a[b]]*/a/", "has an operator inside of brackets"),
        ("RULE:[a--b]*/a/", "has an operator inside of brackets"),
        ("RULE:.*/$1/", "'$1' names no group of '.*'"),
        ("RULE:(.*)/$x/", "'$' names no group of '(.*)'; write \\$ for a dollar"),
        ("RULE:(.*)/${n}/", "'${n}' names no group"),
    ],
)
def test_a_rule_that_would_mean_something_else_is_refused(rules: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        PrincipalRules.parse(rules)
    assert problem in str(refused.value)


def test_rules_are_equal_if_their_texts_are() -> None:
    assert PrincipalRules.parse("DEFAULT") == PrincipalRules()
    assert PrincipalRules.parse(DOCUMENTED) == PrincipalRules.parse(DOCUMENTED)
    assert PrincipalRules.parse(DOCUMENTED) != PrincipalRules()
    assert repr(PrincipalRules.parse("RULE:.*/x/")) == "PrincipalRules(text='RULE:.*/x/')"
