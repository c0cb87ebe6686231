"""Administrators are answered as Apache Kafka answers them, in every version."""

import pytest

from tests.interop.differential.administration import Administration
from tests.interop.differential.administration_dialogues import ADMINISTRATION_DIALOGUES
from tests.interop.differential.known import unknown
from tests.interop.differential.known_in_administration import OF_ADMINISTRATION
from tests.interop.differential.plain import differences, plain
from tests.interop.differential.sides import OURS, THEIRS, own_topic
from tests.interop.differential.talk import Talk

pytestmark = [pytest.mark.clients, pytest.mark.integration]

LEVELS = range(9)
"""The versions of the requests of administrators; ListOffsets has the most."""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dialogue", ADMINISTRATION_DIALOGUES, ids=lambda one: one.__name__)
def test_both_say_the_same_in(dialogue, level, sides):
    name = f"{dialogue.__name__}-{level}"
    said = {}
    for side, address in sides.items():
        with own_topic(address, name) as topic_id, Talk(address, level) as talk:
            dialogue(Administration(talk, name, topic_id))
            said[side] = plain(talk.said)

    assert [request for request, _ in said[OURS]] == [request for request, _ in said[THEIRS]]
    found = [
        (number, request, *one)
        for number, ((request, ours), (_, theirs)) in enumerate(zip(said[OURS], said[THEIRS], strict=True))
        for one in unknown(dialogue.__name__, request, list(differences(ours, theirs)), OF_ADMINISTRATION)
    ]
    assert found == []
