"""A transaction of which a send was not answered well is aborted, whatever the dice say."""

import asyncio
import json

import pytest
from aiokafka.errors import LeaderNotAvailableError
from aiokafka.structs import RecordMetadata

from chaos.access import Access
from chaos.clients import aiokafka_transactions as module
from chaos.clients.client_parts import Settings
from histories import Writer


class Producer:
    """One that answers sends as it was made to, and stops its client after a transaction."""

    def __init__(self, settings, answer):
        self._settings, self._answer = settings, answer

    async def start(self):
        pass

    async def begin_transaction(self):
        self._settings.is_stopping = True

    async def send(self, topic, value, key, partition):
        sent = asyncio.get_running_loop().create_future()
        self._answer(sent)
        return sent

    async def commit_transaction(self):
        pass

    abort_transaction = stop = commit_transaction


def answered(sent):
    sent.set_result(RecordMetadata("t", 0, None, 7, 0, 0, 0))


def given_up(sent):
    sent.set_exception(LeaderNotAvailableError())


def silent(sent):
    pass


@pytest.mark.parametrize(("answer", "how"), [(answered, "commit"), (given_up, "abort"), (silent, "abort")])
def test_only_a_transaction_whose_sends_are_all_answered_is_committed(tmp_path, monkeypatch, answer, how):
    settings = Settings("transactions", "aiokafka", "t/0", Access(""), {"t": 1}, "", 1, rate=1_000.0)
    monkeypatch.setattr(module, "AIOKafkaProducer", lambda **given: Producer(settings, answer))
    monkeypatch.setattr(module, "COMMITS", 1.0)
    monkeypatch.setattr(module, "HELD", 0.0)
    monkeypatch.setattr(module, "ASK_S", 0.01)
    path = tmp_path / "history.jsonl"
    with Writer(path) as writer:
        module.produce(settings, writer)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["how"] for line in lines if line["f"] == "finish" and line["type"] == "invoke"] == [how]
