"""librdkafka as a member of the consumer group. Only its log says in which generation it is."""

import logging
import re
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from chaos.clients.client_parts import TAIL_RECORDS, Place, Seen, Settings
from chaos.clients.confluent_client import common_settings, ends_the_client, seen_by_confluent
from chaos.clients.member_parts import GROUP, HEARTBEAT_MS, POLL_INTERVAL_MS, SESSION_MS, Membership
from histories import Writer

ASK_S = 5.0
PAUSE_S = 0.2
JOINED = re.compile(r"JoinGroup response: GenerationId (\d+),")


class _Generation(logging.Handler):
    """Reads the generation of the last join from librdkafka's log, which comes in the order of its events."""

    def __init__(self) -> None:
        super().__init__()
        self.number = -1
        self.logger = logging.Logger("librdkafka", logging.DEBUG)
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if (found := JOINED.search(record.getMessage())) is not None:
            self.number = int(found[1])


def join(settings: Settings, writer: Writer) -> None:
    """Read what the group assigns until told to stop, or until a twin has taken over."""
    ours, generation = Membership(settings, writer), _Generation()
    consumer = Consumer(
        {
            **common_settings(settings),
            "group.id": GROUP,
            **({} if ours.instance is None else {"group.instance.id": ours.instance}),
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "max.poll.interval.ms": POLL_INTERVAL_MS,
            "partition.assignment.strategy": "roundrobin",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.wait.max.ms": 100,
            "debug": "cgrp",
            "log_level": 7,
        },
        logger=generation.logger,
    )

    def on_assign(_: Consumer, given: list[TopicPartition]) -> None:
        places = sorted((one.topic, one.partition) for one in given)
        ours.assigned(generation.number, consumer.memberid(), places)
        begun = [_resume(settings, ours, consumer, place) for place in places]
        consumer.assign([one for one in begun if one is not None])

    def on_revoke(_: Consumer, given: list[TopicPartition]) -> None:
        ours.disown((one.topic, one.partition) for one in given)
        consumer.unassign()

    consumer.subscribe(list(settings.topics), on_assign=on_assign, on_revoke=on_revoke, on_lost=on_revoke)
    while not settings.is_stopping:
        got: dict[Place, list[Seen]] = {}
        for message in consumer.consume(TAIL_RECORDS, 0.2):
            error = message.error()
            place = message.topic(), message.partition()
            if error is None:
                got.setdefault(place, []).append(seen_by_confluent(message))
                continue
            ours.trouble(error)
            if ends_the_client(error):
                raise SystemExit(f"{settings.name} is a member no more: {error}")
            _go_on(ours, consumer, place)
        ours.take(got)
        _commit(ours, consumer)
    _commit(ours, consumer, now=True)
    consumer.close()


def _resume(settings: Settings, ours: Membership, consumer: Any, place: Place) -> TopicPartition | None:
    """From the committed offset on, or from the log's start; None if it is told to stop before it knows."""
    while not settings.is_stopping:
        op = ours.ask(place)
        try:
            (committed,) = consumer.committed([TopicPartition(*place)], timeout=ASK_S)
            if committed.error is not None:
                raise KafkaException(committed.error)
            ours.found(op, committed.offset, committed.metadata)
            low, _ = consumer.get_watermark_offsets(TopicPartition(*place), ASK_S, cached=False)
        except KafkaException as error:
            ours.trouble(error)
            time.sleep(PAUSE_S)
        else:
            begin = max(low, committed.offset)
            ours.own(place, begin)
            return TopicPartition(*place, begin)
    return None


def _go_on(ours: Membership, consumer: Any, place: Place) -> None:
    """After an error: from the same place, or from the log's start if somebody deleted what was next."""
    if place not in ours.owned:
        return
    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(*place), ASK_S, cached=False)
        begin = max(low, ours.stands_at(place))
        consumer.seek(TopicPartition(*place, begin))
    except KafkaException as error:  # nobody leads it, or librdkafka is at it
        ours.trouble(error)
    else:
        ours.own(place, begin)


def _commit(ours: Membership, consumer: Any, *, now: bool = False) -> None:
    if not (dues := ours.due(now=now)):
        return
    offsets = [TopicPartition(*due.place, due.offset, due.name) for due in dues]
    try:
        answers = consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        for due in dues:
            ours.done(due, error)
    else:
        errors = {(one.topic, one.partition): one.error for one in answers}
        for due in dues:
            ours.done(due, errors[due.place])
