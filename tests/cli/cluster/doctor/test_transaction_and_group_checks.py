"""Transactions that hang, and groups that stand still."""

from dataclasses import replace
from typing import Any

from sparklog.cli.cluster.doctor.doctor_facts import LateGroup
from sparklog.cli.cluster.doctor.doctor_finding import Severity
from sparklog.client.group.committed_offsets import CommittedOffset
from sparklog.client.group.lag_look import PartitionLag
from sparklog.client.transactions.hanging import OpenTransaction
from sparklog.client.transactions.transaction_admin import PartitionProducer
from sparklog.model.ids import TopicPartition
from tests.cli.cluster.doctor.given import WELL, found, the_one


def hanging(partition: int = 0) -> OpenTransaction:
    producer = PartitionProducer(
        producer_id=17,
        producer_epoch=0,
        coordinator_epoch=-1,
        last_sequence=0,
        last_timestamp_ms=WELL.now_ms - 3_600_000,
        open_since=42,
    )
    return OpenTransaction(TopicPartition("orders", partition), producer)


def test_a_hanging_transaction_has_the_command_that_ends_it() -> None:
    finding = the_one("transactions", hanging=(hanging(),))
    assert (finding.severity, finding.subject) == (Severity.grave, "partition orders-0")
    assert "producer 17" in finding.value
    assert "60 min old" in finding.value
    assert finding.remedy == (
        "sparklog transactions abort --topic orders --partition 0 --start-offset 42 --root R"
    )


def test_many_hanging_transactions_are_counted() -> None:
    findings = found("transactions", hanging=tuple(map(hanging, range(500))))
    assert len(findings) == 11
    assert findings[-1].value == "490 more transactions hang"


BEGINS_AT_3 = PartitionLag(TopicPartition("orders", 0), CommittedOffset(3), 1_203)


def group(**fields: Any) -> LateGroup:
    known = {"group_id": "bills", "group_state": "Stable", "late": (BEGINS_AT_3,), **fields}
    return LateGroup(**known)


def test_a_group_that_commits_nothing_is_a_warning() -> None:
    finding = the_one("groups", groups=(group(),))
    assert (finding.severity, finding.subject) == (Severity.warning, "group bills")
    assert "1200 records of partition orders-0" in finding.value
    assert "state Stable" in finding.value
    assert "sparklog groups describe bills --root R" in finding.remedy


def test_a_group_that_is_late_and_reads_on_is_a_note() -> None:
    assert the_one("groups", groups=(group(moved=True),)).severity is Severity.note


def test_a_group_without_members_is_a_note_with_the_command_that_deletes_it() -> None:
    finding = the_one("groups", groups=(group(group_state="Empty"),))
    assert finding.severity is Severity.note
    assert "sparklog groups delete bills --root R" in finding.remedy


def test_a_name_that_a_shell_would_obey_is_one_word_of_the_command() -> None:
    for state in ("Stable", "Empty"):
        finding = the_one("groups", groups=(group(group_id="a; rm -r $HOME", group_state=state),))
        assert " 'a; rm -r $HOME' --root R" in finding.remedy


def test_a_query_has_no_members_and_is_named() -> None:
    finding = the_one("groups", groups=(group(group_state="Empty", query="daily"),))
    assert (finding.severity, finding.subject) == (Severity.warning, "group bills (query daily)")


def test_a_group_that_lost_unread_records_is_a_warning() -> None:
    finding = the_one("groups", groups=(group(late=(), deleted=(BEGINS_AT_3,)),))
    assert finding.severity is Severity.warning
    assert "partition orders-0 begin after the committed offset" in finding.value
    abandoned = group(late=(), deleted=(BEGINS_AT_3,), group_state="Empty")
    assert the_one("groups", groups=(abandoned,)).severity is Severity.note


def test_one_finding_stands_for_all_groups_with_the_same_fault_and_names_three() -> None:
    many = {
        "bills": group(),
        "slow": group(moved=True),
        "left": group(group_state="Empty"),
        "lossy": group(late=(), deleted=(BEGINS_AT_3,)),
        "left and lossy": group(late=(), deleted=(BEGINS_AT_3,), group_state="Empty"),
    }
    groups = tuple(replace(one, group_id=f"{name} {nth}") for nth in range(12) for name, one in many.items())
    findings = found("groups", groups=groups)
    assert [(finding.severity, finding.subject) for finding in findings] == [
        (severity, f"groups {name} 0, {name} 1, {name} 2 and 9 more")
        for severity, name in [
            (Severity.warning, "bills"),
            (Severity.warning, "lossy"),
            (Severity.note, "slow"),
            (Severity.note, "left"),
            (Severity.note, "left and lossy"),
        ]
    ]
    assert f"{12 * 1_200} records of partition orders-0 are unread" in findings[0].value
    assert "sparklog groups delete 'left 0' 'left 1' 'left 2' --root R" in findings[3].remedy


def test_groups_that_were_not_looked_at_are_named() -> None:
    finding = the_one("groups", groups_unseen={"a": "not coordinator", "b": "no answer"})
    assert (finding.severity, finding.subject) == (Severity.note, "groups a, b")
    assert "not coordinator" in finding.value
