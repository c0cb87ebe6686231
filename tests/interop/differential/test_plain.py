"""Answers are compared by what a client could tell apart."""

from tests.interop.differential.known import Known, unknown
from tests.interop.differential.plain import differences, plain
from tests.interop.differential.producer import batch
from tests.interop.differential.talk import Said

ONE = b"differ-11111111-2222-3333-4444-555555555555"
OTHER = b"differ-66666666-2222-3333-4444-555555555555"


def answers(*trees):
    return [answer for _, answer in plain([Said("a request", tree) for tree in trees])]


def test_an_id_has_one_name_wherever_it_is():
    first, second = answers({"member_id": ONE}, {"leader": OTHER, "member_id": ONE})

    assert first == {"member_id": "differ-<id 0>"}
    assert second == {"leader": "differ-<id 1>", "member_id": "differ-<id 0>"}


def test_ids_of_two_systems_are_the_same_if_they_are_used_alike():
    def talk(one, other):
        members = [{"member_id": one}, {"member_id": other}]
        return answers({"member_id": one}, {"member_id": other}, {"members": members})

    assert talk(ONE, OTHER) == talk(OTHER, ONE)


def test_producer_ids_are_named_too_wherever_they_are():
    first, second = answers(
        {"producer_id": 4_711}, {"producers": [{"producer_id": 8}, {"producer_id": 4_711}]}
    )

    assert first == {"producer_id": "<id 0>"}
    assert second == {"producers": [{"producer_id": "<id 0>"}, {"producer_id": "<id 1>"}]}
    assert answers({"producer_id": -1}) == [{"producer_id": -1}], "none"


def test_a_batch_is_compared_by_its_offsets_and_its_producer():
    records = batch({"producer_id": 8, "producer_epoch": 2}, 5, count=3)

    assert answers({"records": records}) == [
        {
            "records": [
                {
                    "base_offset": 0,
                    "last_offset_delta": 2,
                    "is_transactional": True,
                    "is_control": False,
                    "producer_id": "<id 0>",
                    "producer_epoch": 2,
                    "base_sequence": 5,
                }
            ]
        }
    ]


def test_the_order_in_a_list_does_not_count():
    assert answers({"topics": [{"name": b"b"}, {"name": b"a"}]}) == answers(
        {"topics": [{"name": b"a"}, {"name": b"b"}]}
    )


def test_another_id_at_the_same_place_is_a_difference():
    (_, ours), (_, theirs) = (
        plain([Said("r", {"member_id": ONE, "leader": leader})])[0] for leader in (ONE, OTHER)
    )

    assert [place for place, _, _ in differences(ours, theirs)] == ["leader"]


def test_a_difference_is_told_with_its_place():
    ours = {"topics": [{"name": "t", "error_code": 0}]}
    theirs = {"topics": [{"name": "t", "error_code": 3}]}

    assert list(differences(ours, theirs)) == [("topics[0].error_code", 0, 3)]


def test_a_closed_connection_differs_from_an_answer():
    assert list(differences("the connection is closed", {"error_code": 0}))


def test_a_known_difference_is_known_in_its_values_only():
    rule = Known("Heartbeat .*", "error_code", "because", ours="0", theirs="25")

    assert unknown("d", "Heartbeat 4", [("error_code", 0, 25)], (rule,)) == []
    assert unknown("d", "Heartbeat 4", [("error_code", 0, 27)], (rule,)) == [("error_code", 0, 27)]
