"""Which broker a task becomes, by where its data is."""

from sparklog_runtime.supervision.id_assignment import OWNER_WAIT_MS, FixedIds, IdsByData


def test_on_one_machine_slots_have_the_ids_in_order():
    ids = FixedIds((4, 5, 6))
    assert [ids.claim(slot, [], 0, ids.ids) for slot in range(3)] == [4, 5, 6]


def test_a_task_becomes_the_broker_whose_data_its_host_has():
    ids = IdsByData((1, 2, 3), started_ms=0)
    assert ids.claim(0, [2], 10, ids.ids) == 2
    assert ids.claim(1, [3], 10, ids.ids) == 3


def test_a_newcomer_waits_for_hosts_that_may_own_what_is_free():
    ids = IdsByData((1, 2), started_ms=0)
    assert ids.claim(0, [], 10, ids.ids) is None
    assert ids.claim(0, [], OWNER_WAIT_MS - 1, ids.ids) is None
    assert ids.claim(0, [], OWNER_WAIT_MS, ids.ids) == 1


def test_newcomers_need_not_wait_once_everybody_was_heard():
    ids = IdsByData((1, 2), started_ms=0)
    assert ids.claim(0, [], 10, ids.ids) is None
    assert ids.claim(1, [2], 11, ids.ids) == 2
    assert ids.claim(0, [], 12, ids.ids) == 1


def test_two_brokers_of_one_host_get_different_ids():
    ids = IdsByData((1, 2, 3), started_ms=0)
    assert ids.claim(0, [1, 2], 10, ids.ids) == 1
    assert ids.claim(1, [1, 2], 10, ids.ids) == 2


def test_an_id_that_was_released_goes_back_to_its_data():
    ids = IdsByData((1, 2), started_ms=0)
    assert ids.claim(0, [1], 10, ids.ids) == 1
    ids.release(0)
    assert ids.claim(1, [1, 2], 20, ids.ids) == 1


def test_an_id_that_is_held_is_given_to_nobody_else():
    ids = IdsByData((1,), started_ms=0)
    assert ids.claim(0, [1], 10, ids.ids) == 1
    assert ids.claim(1, [1], OWNER_WAIT_MS + 10, ids.ids) is None
