import threading

import pytest

from sparklog.network.exchange import Exchange, RequestContext
from sparklog.network.request_queue import RequestQueue


def exchange(number=0):
    context = RequestContext(connection_id=number, client_host="h", listener="L", received_ms=0)
    return Exchange(memoryview(b""), context, path=None)


def test_a_queue_without_places_is_refused():
    with pytest.raises(ValueError, match="needs at least 1"):
        RequestQueue(0)


def test_exchanges_come_out_in_the_order_they_went_in():
    queue, exchanges = RequestQueue(10), [exchange(n) for n in range(10)]
    assert all(queue.offer(item, 0, lambda: None) for item in exchanges)
    assert [queue.take() for _ in range(10)] == exchanges


def test_who_is_refused_is_woken_once_when_a_quarter_is_free():
    queue, woken = RequestQueue(8), []
    for _ in range(8):
        assert queue.offer(exchange(), 0, lambda: None)
    for _ in range(3):
        assert not queue.offer(exchange(), 7, lambda: woken.append(7))
    queue.take()
    assert woken == []
    queue.take()
    queue.take()
    assert woken == [7]
    assert queue.offer(exchange(), 7, lambda: None)


def test_a_closed_queue_takes_nothing_forgets_all_and_ends_its_takers():
    queue = RequestQueue(8)
    queue.offer(exchange(), 0, lambda: None)
    queue.close(handlers=2)
    assert not queue.offer(exchange(), 0, lambda: None)
    assert (queue.take(), queue.take()) == (None, None)


def test_no_refused_offerer_sleeps_for_ever():
    """Offerers that wait for their wake-up only, against a taker at full speed, on a queue of one place."""
    queue, total, taken = RequestQueue(1), 20_000, []

    def offer_all(number):
        room = threading.Event()
        for _ in range(total // 2):
            while not queue.offer(exchange(number), number, room.set):
                assert room.wait(10), "never woken"
                room.clear()

    offerers = [threading.Thread(target=offer_all, args=(number,)) for number in range(2)]
    for thread in offerers:
        thread.start()
    while len(taken) < total:
        taken.append(queue.take())
        assert len(queue) <= 1
    for thread in offerers:
        thread.join()
