"""A loss is told once, with its range and its reason; who deleted is told by the topic's settings."""

import pickle
from typing import Any

import pytest

from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog_datasource.reads import data_loss as module
from sparklog_datasource.reads.data_loss import DataLost, Loss, Losses, Reason, deletion_reason

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_nothing_lost_is_nothing_told(caplog: pytest.LogCaptureFixture) -> None:
    for is_fatal in (True, False):
        Losses(is_fatal).tell()
    assert caplog.messages == []


def test_what_goes_on_where_the_last_loss_ended_is_one_loss() -> None:
    losses = Losses(True)
    for start, end in ((0, 2), (2, 3), (5, 6)):
        losses.note(Loss(T0, start, end, Reason.DELETED))
    losses.note(Loss(T0, 6, 7, Reason.LOG_CUT))
    losses.note(Loss(T1, 7, 8, Reason.LOG_CUT))
    with pytest.raises(DataLost) as caught:
        losses.tell()
    found = [(loss.topic_partition, loss.start_offset, loss.end_offset) for loss in caught.value.losses]
    assert found == [(T0, 0, 3), (T0, 5, 6), (T0, 6, 7), (T1, 7, 8)]


def test_what_was_told_is_not_told_again(caplog: pytest.LogCaptureFixture) -> None:
    losses = Losses(False)
    losses.note(Loss(T0, 0, 1, Reason.TOPIC_DELETED))
    losses.tell()
    losses.tell()
    assert len(caplog.messages) == 1


def test_many_losses_are_counted_after_the_first_ones() -> None:
    error = DataLost([Loss(TopicPartition("t", number), 0, 1, Reason.DELETED) for number in range(12)])
    assert "t-9: 1 offset is lost" in str(error)
    assert "t-10" not in str(error)
    assert "; and losses in 2 more ranges. Some data may have been missed" in str(error)


def test_the_error_comes_whole_from_a_task() -> None:
    error = DataLost([Loss(T0, 3, None, Reason.TOPIC_DELETED, "a sign")])
    copied = pickle.loads(pickle.dumps(error))  # what Spark does; nothing from a network
    assert (str(copied), copied.losses) == (str(error), error.losses)


@pytest.mark.parametrize(
    ("policy", "retention_ms", "retention_bytes", "reason"),
    [
        ("delete", "604800000", "-1", Reason.DELETED),
        ("delete", "-1", "1000", Reason.DELETED),
        ("compact,delete", "1", "-1", Reason.DELETED),
        ("delete", "-1", "-1", Reason.DELETE_RECORDS),
        ("compact", "604800000", "-1", Reason.DELETE_RECORDS),
    ],
)
def test_a_topic_without_retention_loses_records_to_delete_records_alone(
    policy: str, retention_ms: str, retention_bytes: str, reason: Reason, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "cleanup.policy": (policy, 5),
        "retention.ms": (retention_ms, 5),
        "retention.bytes": (retention_bytes, 5),
    }
    monkeypatch.setattr(module.Admin, "describe_configs", lambda *_: {"t": settings})
    assert deletion_reason(None, "t") is reason  # type: ignore[arg-type]


def test_settings_that_are_not_for_us_leave_both_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise KafkaError(ErrorCode.topic_authorization_failed, "t")

    monkeypatch.setattr(module.Admin, "describe_configs", refuse)
    assert deletion_reason(None, "t") is Reason.DELETED  # type: ignore[arg-type]
