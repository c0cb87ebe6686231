"""The sentence with which the overview begins, and the order of what is wrong."""

from sparklog.client.possible_losses import PossibleLoss
from sparklog.web.disks import Disk
from sparklog.web.verdict import Facts, Verdict, verdict_of
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportResponse,
    ReportedBroker,
    ReportedController,
)

OPTIONS = "--root /data"


def broker(broker_id: int, state: str = "serving", **more: object) -> ReportedBroker:
    return ReportedBroker(broker_id=broker_id, host=f"node-{broker_id}", state=state, wish="serving", **more)  # type: ignore[arg-type]


def report(*brokers: ReportedBroker, **more: int) -> ClusterReportResponse:
    figures = {"partitions": 106, **more}
    controller = ReportedController(application="a", host="h", port=1, is_active=True)
    known = list(brokers) or [broker(1), broker(2), broker(3)]
    return ClusterReportResponse(brokers=known, controllers=[controller], **figures)  # type: ignore[arg-type]


def judged(found: ClusterReportResponse | None, **more: object) -> Verdict:
    return verdict_of(Facts(found, OPTIONS, **more))  # type: ignore[arg-type]


def test_a_cluster_is_well_whose_partitions_are_led_and_in_sync() -> None:
    verdict = judged(report())
    assert verdict == Verdict("well", "Well: 3 brokers, 106 partitions led and in sync.")


def test_moving_partitions_are_named_and_no_harm() -> None:
    verdict = judged(report(moving=4))
    assert (verdict.level, verdict.sentence) == (
        "well",
        "Well: 3 brokers, 106 partitions led and in sync; 4 partitions moving.",
    )


def test_a_broker_that_died_is_named_with_its_host_and_its_reason() -> None:
    verdict = judged(report(broker(1), broker(3, "away", reason="SIGKILL"), under_replicated=34))
    assert verdict.level == "warning"
    assert verdict.sentence == "Serving, with a warning: broker 3 on node-3 is away (SIGKILL), and 1 more."
    assert [(one.view, one.words) for one in verdict.findings] == [
        ("brokers/3", "broker 3 on node-3 is away (SIGKILL)"),
        ("topics?only=unwell", "34 partitions have replicas out of sync"),
    ]


def test_a_broker_that_was_stopped_by_an_operator_is_rightly_away() -> None:
    stopped = broker(2, "stopped")
    stopped.wish = "stopped"
    assert judged(report(broker(1), stopped)).sentence == "Well: 1 broker, 106 partitions led and in sync."


def test_many_brokers_that_do_not_serve_are_one_finding() -> None:
    verdict = judged(report(*(broker(number, "away") for number in range(1, 6))))
    assert [one.words for one in verdict.findings] == ["5 of 5 brokers do not serve"]


def test_losses_come_before_partitions_without_a_leader_and_those_before_brokers() -> None:
    losses = [PossibleLoss("t", number, 7) for number in range(5)]
    disk = Disk(1, "/data/1", is_offline=False, total_bytes=100, free_bytes=3, floor_bytes=5)
    failed = Disk(2, "/data/2", is_offline=True, total_bytes=-1, free_bytes=-1)
    verdict = judged(
        report(broker(1, "away"), leaderless=2, under_replicated=1), losses=losses, disks=[disk, failed]
    )
    assert verdict.level == "bad"
    assert [one.words for one in verdict.findings] == [
        "acknowledged records may be lost in t-0, t-1, t-2 and 2 more",
        "2 partitions of 106 without a leader",
        "broker 1 refuses writes: /data/1 is nearly full",
        "log directory /data/2 of broker 2 has failed",
        "broker 1 on node-1 is away",
        "1 partition has replicas out of sync",
    ]
    assert all(OPTIONS in one.command for one in verdict.findings)


def test_a_report_that_is_old_says_that_no_controller_answers() -> None:
    verdict = judged(report(age_ms=34_500))
    assert verdict.sentence == "Unwell: no controller has answered for 34 s."


def test_silence_is_no_health() -> None:
    verdict = judged(None, silence="no broker answers at h:1")
    assert verdict.level == "bad"
    assert verdict.sentence == "Not reached: no broker and no controller answers."
    assert [one.words for one in verdict.findings] == ["no broker answers at h:1"]
