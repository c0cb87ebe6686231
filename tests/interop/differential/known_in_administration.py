"""What differs in administration, and why no client suffers from it; docs/differences.md has it in short."""

from typing import Final

from tests.interop.differential.known import Known

_A_MISTAKE: Final = "it is the client's mistake, and Kafka's UNKNOWN_SERVER_ERROR"
_A_SLIP_OF_THE_PEN: Final = (
    "a setting that neither knows is refused; Kafka keeps it, because its plugins may have their own"
)

OF_ADMINISTRATION: Final = (
    Known(
        "CreateTopics [567]",
        r"topics\[\d\]\.configs",
        "each system shows the settings that it acts on; beside an error no list is as good as an empty one",
    ),
    Known(".*", r"(.*\.)?error_message", "an error has a text", "'<text>'", "None"),
    Known(
        "DeleteTopics 6",
        r"responses\[0\]\.topic_id",
        "a topic that is deleted by its name is answered with its id, as Kafka does without ZooKeeper",
        "'<topic id>'",
    ),
    Known(
        "DeleteTopics 6",
        r"responses\[0\]\.(name|error_code)",
        "an id of zeros is one that no topic has",
        r"''|100",
        "None|29",
        "deletions_of_what_is_not_there",
    ),
    Known(
        "DescribeClientQuotas .*",
        "error_code|entries",
        _A_MISTAKE,
        r"42|0|\[\]",
        "-1|None",
        "quotas_that_cannot_be_set",
    ),
    Known(
        "IncrementalAlterConfigs .*",
        r"responses\[0\]\.error_code",
        _A_SLIP_OF_THE_PEN,
        "42",
        "0",
        "settings_of_a_broker_that_do_not_change|settings_of_what_is_not_there",
    ),
    Known(
        "IncrementalAlterConfigs .*",
        r"responses\[0\]\.error_code",
        "any broker takes a change for another one; BROKER_ID_NOT_REGISTERED says that there is none",
        "102",
        "42",
        "settings_of_what_is_not_there",
    ),
    Known(
        "IncrementalAlterConfigs .*",
        r"responses\[0\]\.error_code",
        _A_MISTAKE,
        "42",
        "-1",
        "settings_that_cannot_be_changed",
    ),
    Known(
        "DescribeConfigs 0",
        r".*\.is_default",
        "a default is named as one; Kafka says so in later versions only",
        "1",
        "0",
    ),
    Known(
        "CreateTopics .*",
        r"topics\[0\]\.error_code",
        _A_MISTAKE,
        "39",
        "-1",
        "topics_with_odd_assignments",
    ),
    Known(
        "CreatePartitions .*",
        r"results\[0\]\.error_code",
        _A_MISTAKE,
        "3",
        "-1",
        "topics_with_odd_names",
    ),
)
