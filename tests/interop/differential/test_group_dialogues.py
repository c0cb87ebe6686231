"""Groups are answered as Apache Kafka answers them, in every version."""

import pytest

from tests.interop.differential.dialogues import GROUP_DIALOGUES
from tests.interop.differential.group import Group
from tests.interop.differential.known import OF_GROUPS, unknown
from tests.interop.differential.plain import differences, plain
from tests.interop.differential.sides import OURS, THEIRS
from tests.interop.differential.static_dialogues import FIRST_LEVEL, STATIC_DIALOGUES
from tests.interop.differential.talk import Talk

pytestmark = [pytest.mark.clients, pytest.mark.integration]

LEVELS = range(10)
HAD = [
    *((dialogue, level) for dialogue in GROUP_DIALOGUES for level in LEVELS),
    *((dialogue, level) for dialogue in STATIC_DIALOGUES for level in LEVELS[FIRST_LEVEL:]),
]


@pytest.mark.parametrize(
    ("dialogue", "level"), [pytest.param(*one, id=f"{one[0].__name__}-{one[1]}") for one in HAD]
)
def test_both_say_the_same_in(dialogue, level, sides):
    said = {}
    for side, address in sides.items():
        with Talk(address, level) as talk:
            dialogue(Group(talk, f"{dialogue.__name__}-{level}"))
            said[side] = plain(talk.said)

    assert [request for request, _ in said[OURS]] == [request for request, _ in said[THEIRS]]
    found = [
        (number, request, *one)
        for number, ((request, ours), (_, theirs)) in enumerate(zip(said[OURS], said[THEIRS], strict=True))
        for one in unknown(dialogue.__name__, request, list(differences(ours, theirs)), OF_GROUPS)
    ]
    assert found == []
