"""The order of a partition's batches survives whatever comes back."""

from sparklog.client.producing.produce_queue import PartitionQueue, QueuedBatch
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, TopicPartition

TP = TopicPartition("t", 0)
LEADER = BrokerId(1)


def queue_with(count: int, *, begun: bool = True) -> tuple[PartitionQueue, list[QueuedBatch]]:
    queue = PartitionQueue(TP)
    queue.leader = LEADER
    if begun:
        queue.enqueue(batch(0))
        queue.on_written(queue.take())
    batches = [batch(order) for order in range(1, count + 1)]
    for queued in batches:
        queue.enqueue(queued)
    return queue, batches


def batch(order: int) -> QueuedBatch:
    return QueuedBatch(TP, b"x" * 10, record_count=1, order=order, deadline_ms=1_000 + order)


def take_all(queue: PartitionQueue) -> list[QueuedBatch]:
    taken = []
    while queue.next_size_bytes is not None:
        taken.append(queue.take())
        queue.check_invariants()
    return taken


def test_at_most_five_batches_are_in_flight() -> None:
    queue, batches = queue_with(7)
    assert take_all(queue) == batches[:5]
    queue.on_written(batches[0])
    assert take_all(queue) == [batches[5]]


def test_nothing_follows_the_first_batch_until_it_is_written() -> None:
    queue, batches = queue_with(3, begun=False)
    assert take_all(queue) == batches[:1]
    queue.on_written(batches[0])
    assert take_all(queue) == batches[1:]


def test_without_a_leader_nothing_is_sent() -> None:
    queue, _ = queue_with(1)
    queue.leader = None
    assert queue.next_size_bytes is None
    assert queue.is_homeless


def test_a_returned_batch_stops_sending_until_all_others_are_back() -> None:
    queue, batches = queue_with(4)
    first, second = queue.take(), queue.take()
    assert queue.on_refused(first, ErrorCode.not_leader_or_follower)
    assert queue.leader is None
    assert not queue.is_homeless
    assert queue.next_size_bytes is None
    assert queue.on_refused(second, ErrorCode.out_of_order_sequence_number)
    queue.check_invariants()
    assert queue.is_homeless
    assert batches[:2] == [first, second]


def test_returned_batches_are_sent_again_first_one_at_a_time_in_order() -> None:
    queue, batches = queue_with(4)
    first, second, third = (queue.take() for _ in range(3))
    queue.on_refused(third, ErrorCode.network_exception)
    queue.on_refused(first, ErrorCode.network_exception)
    queue.on_written(second)
    queue.leader = BrokerId(2)
    assert take_all(queue) == [first]
    queue.on_written(first)
    assert take_all(queue) == [third, batches[3]]


def test_a_batch_refused_as_out_of_order_behind_an_unsettled_one_is_tried_again() -> None:
    queue, _ = queue_with(2)
    first, second = queue.take(), queue.take()
    assert queue.on_refused(first, ErrorCode.request_timed_out)
    assert queue.on_refused(second, ErrorCode.out_of_order_sequence_number)


def test_out_of_order_with_everything_before_it_written_means_that_the_log_lost_records() -> None:
    queue, _ = queue_with(2)
    first, second = queue.take(), queue.take()
    queue.on_written(first)
    assert not queue.on_refused(second, ErrorCode.out_of_order_sequence_number)


def test_a_batch_found_corrupt_three_times_is_not_tried_again() -> None:
    queue, _ = queue_with(1)
    for _ in range(2):
        assert queue.on_refused(queue.take(), ErrorCode.corrupt_message)
        queue.leader = LEADER
    assert not queue.on_refused(queue.take(), ErrorCode.corrupt_message)


def test_an_answer_that_leaves_open_whether_it_was_written_is_remembered() -> None:
    queue, _ = queue_with(1)
    sent = queue.take()
    queue.on_refused(sent, ErrorCode.not_enough_replicas)
    assert not sent.maybe_written
    queue.leader = LEADER
    queue.on_refused(queue.take(), ErrorCode.network_exception)
    queue.leader = LEADER
    queue.on_refused(queue.take(), ErrorCode.not_enough_replicas)
    assert sent.failed(ErrorCode.not_enough_replicas, "").maybe_written


def test_a_failed_partition_gives_up_what_is_behind_and_sends_nothing_more() -> None:
    queue, batches = queue_with(4)
    first, second = queue.take(), queue.take()
    queue.on_refused(first, ErrorCode.message_too_large)
    given_up = queue.fail(first.failed(ErrorCode.message_too_large, "too large"))
    assert given_up == batches[2:]
    assert not queue.on_refused(second, ErrorCode.out_of_order_sequence_number)
    assert len(queue) == 0


def test_the_earliest_batch_whose_time_is_up_is_found_if_it_is_not_in_flight() -> None:
    queue, batches = queue_with(3)
    first = queue.take()
    assert queue.expired(5_000) is batches[1]
    queue.on_refused(first, ErrorCode.network_exception)
    assert queue.expired(5_000) is first
    assert queue.expired(500) is None


def test_pauses_grow_with_obstacles_in_a_row_and_end_with_success() -> None:
    queue, _ = queue_with(1)
    for expected in (1, 2):
        queue.on_refused(queue.take(), ErrorCode.not_enough_replicas)
        assert queue.obstacle_count == expected
        queue.leader = LEADER
    queue.on_written(queue.take())
    assert queue.obstacle_count == 0
