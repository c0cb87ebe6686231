"""Transactions are answered as Apache Kafka answers them, in every version."""

import pytest

from tests.interop.differential.coordinator_dialogues import COORDINATOR_DIALOGUES
from tests.interop.differential.known import unknown
from tests.interop.differential.known_in_transactions import OF_TRANSACTIONS
from tests.interop.differential.log_dialogues import LOG_DIALOGUES
from tests.interop.differential.pending_offset_dialogues import PENDING_OFFSET_DIALOGUES
from tests.interop.differential.plain import differences, plain
from tests.interop.differential.producer import Topic, Transactions
from tests.interop.differential.sides import OURS, THEIRS, own_topic
from tests.interop.differential.talk import Talk

pytestmark = [pytest.mark.clients, pytest.mark.integration]

LEVELS = range(5)
"""The versions of the requests of transactions."""
LOG_LEVELS = (2, 4, 5, 7, 8, 9, 11, 12, 13, 15)
"""Some versions of Produce, Fetch and ListOffsets."""
HAD = [
    *((dialogue, level) for dialogue in COORDINATOR_DIALOGUES for level in LEVELS),
    *((dialogue, level) for dialogue in PENDING_OFFSET_DIALOGUES for level in LEVELS),
    *((dialogue, level) for dialogue in LOG_DIALOGUES for level in LOG_LEVELS),
]


@pytest.mark.parametrize(
    ("dialogue", "level"), [pytest.param(*one, id=f"{one[0].__name__}-{one[1]}") for one in HAD]
)
def test_both_say_the_same_in(dialogue, level, sides):
    name = f"{dialogue.__name__}-{level}"
    said = {}
    for side, address in sides.items():
        with own_topic(address, name) as topic_id, Talk(address, level) as talk:
            dialogue(Transactions(talk, name, Topic(name, topic_id)))
            said[side] = plain(talk.said)

    assert [request for request, _ in said[OURS]] == [request for request, _ in said[THEIRS]]
    found = [
        (number, request, *one)
        for number, ((request, ours), (_, theirs)) in enumerate(zip(said[OURS], said[THEIRS], strict=True))
        for one in unknown(dialogue.__name__, request, list(differences(ours, theirs)), OF_TRANSACTIONS)
    ]
    assert found == []
