"""What differs in dialogues of security, and why no client suffers; docs/differences.md has it in short."""

from typing import Final

from tests.interop.differential.known import Known

_DENIED: Final = "beside an error nothing else counts: Kafka's generated messages have a default there"

_CLOSED: Final = "'the connection is closed'"
_NO_FURTHER: Final = (
    "what does not belong into a login closes its connection; Kafka answers ILLEGAL_SASL_STATE, and closes "
    "most of them too"
)
_A_MISTAKE: Final = (
    "what cannot be is INVALID_REQUEST; Kafka closes the connection, answers UNKNOWN_SERVER_ERROR, or takes "
    "a rule that nobody can ever meet"
)

OF_LOGINS: Final[tuple[Known, ...]] = (
    Known(
        "(Metadata|ApiVersions|SaslHandshake) .*", "", _NO_FURTHER, _CLOSED, ".*34.*|.*'brokers': \\[\\].*"
    ),
    Known("SaslAuthenticate .*", "", _NO_FURTHER, _CLOSED, ".*34.*", "a_token_after_the_last"),
    Known("DescribeCluster .*", "", _NO_FURTHER, _CLOSED, dialogue="a_token_after_the_last"),
    Known(
        "SaslHandshake .*",
        "",
        "another mechanism than the first one is refused when it is named; Kafka closes when a token comes",
        _CLOSED,
        dialogue="a_login_anew_by_another_mechanism",
    ),
    Known(
        "SaslAuthenticate .*",
        "error_code|auth_bytes",
        "a client that could bind channels, and sees that we cannot, logs in (RFC 5802, section 6)",
        "0|'r='",
        "58|''",
        "tokens_that_are_none",
    ),
    Known(
        "ApiVersions 3 .*",
        "error_code",
        "a client that does not name itself is answered",
        "0",
        "42",
        "versions_of_a_client_without_a_name",
    ),
)
OF_RULES: Final[tuple[Known, ...]] = (
    Known("(Create|Describe|Delete)Acls .*", "", _A_MISTAKE, ".*'error_code': 42.*", _CLOSED),
    Known("(Create|Describe|Delete)Acls .*", r"(.*\.)?error_code", _A_MISTAKE, "42", "0|-1"),
    Known("DescribeAcls .*", "resources", _A_MISTAKE, r"\[\]", ".*", "rules_that_cannot_be"),
    Known(
        "DeleteAcls .*",
        r"filter_results\[.\]\.matching_acls",
        "a rule that several filters of a request take is named under each of them",
        theirs=r"\[\]",
        dialogue="rules_twice",
    ),
    Known(
        "DeleteTopics .*",
        r"responses\[.\]\.topic_id",
        "a topic that is deleted by its name is answered with its id, as Kafka does without ZooKeeper",
        "'<topic id>'",
    ),
)

OF_SECURITY: Final[tuple[Known, ...]] = (
    *OF_LOGINS,
    *OF_RULES,
    Known(".*", r"(.*\.)?error_message", "an error has a text", "'<text>'", "None"),
    Known("SaslAuthenticate .*", "error_message", "as the error", "None", "'<text>'", "tokens_that_are_none"),
    Known("Fetch .*", r".*\.aborted_transactions", _DENIED, "None", r"\[\]"),
    Known("AlterPartitionReassignments .*", "responses", _DENIED, r"\[\]", ".*'error_code': 31.*"),
    Known("DescribeUserScramCredentials .*", "results", _DENIED, r"\[\]", ".*'error_code': 31.*"),
    Known("DescribeClientQuotas .*", "entries", _DENIED, r"\[\]", "None"),
    Known("DescribeClientQuotas .*", "error_code", _A_MISTAKE, "42", "-1", "questions_that_cannot_be"),
    Known(
        "DescribeTransactions .*",
        r"transaction_states\[.\]\.(transaction_start_time_ms|producer_id|producer_epoch)",
        _DENIED,
        "-1",
        "0|'<id .>'",
    ),
    Known(
        "CreateTopics .*", r"topics\[0\]", _DENIED, "(?!.*topic_config_error_code).*", ".*'error_code': 29.*"
    ),
    Known(
        "OffsetDelete .*",
        "error_code|topics",
        "that a topic may not be read is said before that the group is not there",
        "0|.*'error_code': 29.*",
        r"69|\[\]",
    ),
    Known(
        "CreateTopics .*",
        r"topics\[0\]\.configs",
        "each system shows the settings that it acts on; beside an error no list is as good as an empty one",
    ),
    Known(
        "ListTransactions .*",
        r"transaction_states\[.\]\.producer_id",
        "ids are named in the order of the answer, which has none",
        "'<id .>'",
        "'<id .>'",
    ),
)
