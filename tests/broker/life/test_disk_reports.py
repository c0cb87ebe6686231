"""Reports of failed disks, question by question: each is repeated until it is known."""

import uuid

import pytest

from sparklog.broker.life.disk_reports import RETRY_MS, DiskReports
from sparklog.core.controller.state.incarnation import DirectoryIdentity
from sparklog.model.cluster_facts import Broker, plaintext
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.loops import CallController, Changes, Pause, go_on
from sparklog.testing.memory_zookeeper import MemoryZooKeeperServer
from sparklog.wire.messages.control.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from sparklog.zookeeper.broker_registration import read_suspect, register_broker

SELF = BrokerId(1)
LOST = [(uuid.UUID(int=7), 3)]


@pytest.fixture
def zookeeper():
    with MemoryZooKeeperServer().client() as client:
        yield client


def test_lost_logs_are_reported_until_the_controller_knows_them(zookeeper) -> None:
    changes = Changes()
    loop = DiskReports(SELF, lambda: BrokerEpoch(10), zookeeper, changes).lost_logs(LOST)
    call = go_on(loop)
    assert isinstance(call, CallController)
    assert call.message.directories[0].topics[0].topic_id == LOST[0][0]
    pause = go_on(loop, error=TimeoutError("silent"))
    assert pause.timeout_ms == RETRY_MS
    changes.happened()
    assert pause.signal.is_given, "another controller is asked at once"
    assert go_on(loop, pause.signal.take()) == call
    refusal = AssignReplicasToDirsResponse(error_code=ErrorCode.not_controller)
    assert go_on(loop, refusal).timeout_ms == RETRY_MS
    assert go_on(loop, False) == call
    assert go_on(loop, AssignReplicasToDirsResponse()) is None


def test_a_suspect_directory_is_reported_once_its_broker_is_registered(zookeeper) -> None:
    epochs, reported = [BrokerEpoch(-1)], []
    reports = DiskReports(SELF, lambda: epochs[-1], zookeeper, Changes())
    loop = reports.suspect("a-directory", lambda: reported.append("yes"))
    assert go_on(loop) == Pause(RETRY_MS)
    epochs.append(register(zookeeper))
    assert go_on(loop) is None
    assert reported == ["yes"]
    assert read_suspect(zookeeper, SELF) == {"a-directory"}


def test_a_withdrawal_ends_the_registration_and_marks_the_directory(zookeeper) -> None:
    epoch, reported = register(zookeeper), []
    reports = DiskReports(SELF, lambda: epoch, zookeeper, Changes())
    assert go_on(reports.withdrawal("a-directory", lambda: reported.append("yes"))) is None
    assert reported == ["yes"]
    assert zookeeper.exists("/brokers/ids/1") is None
    assert read_suspect(zookeeper, SELF) == {"a-directory"}


def register(zookeeper) -> BrokerEpoch:
    broker = Broker(SELF, plaintext("here", 9092))
    identity = DirectoryIdentity("a-directory")
    return register_broker(zookeeper, broker, [identity], boot_id="boot", host_id="host")
