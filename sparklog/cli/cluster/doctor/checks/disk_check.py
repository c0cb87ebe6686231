"""Log directories that failed, and disks that are full or nearly so. PURE."""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part, SeenBroker
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity
from sparklog.client.changes import LogDirDescription
from sparklog.core.disk_floor import BY_SIZE, FREE_MIN_BYTES, floor_bytes

NAME: Final = "disks"
LOW_SHARE: Final = 0.1
"""Less free than this share of a disk is a warning."""


def examine_disks(facts: ClusterFacts) -> Iterator[Finding]:
    for broker in facts.answering:
        for path, directory in sorted(broker.log_dirs.items()):
            subject = f"{path} of broker {broker.broker_id}"
            if directory.is_offline:
                yield _offline(subject)
            elif directory.total_bytes > 0:
                yield from _free_bytes(subject, directory, broker)


def _offline(subject: str) -> Finding:
    return Finding(
        NAME,
        Severity.grave,
        subject,
        "the log directory has failed and serves no more",
        "its replicas are out of sync; each has a copy less",
        "repair or replace the disk, then restart that broker; never copy files between directories",
    )


def _free_bytes(subject: str, directory: LogDirDescription, broker: SeenBroker) -> Iterator[Finding]:
    floor = floor_bytes(int(broker.settings.get(FREE_MIN_BYTES, BY_SIZE)), directory.total_bytes)
    free, total = directory.usable_bytes, directory.total_bytes
    value = f"{free} of {total} bytes are free ({free / total:.0%}); {FREE_MIN_BYTES} is {floor}"
    room = "a smaller retention.bytes, a larger disk, or sparklog reassign plan to another broker"
    if free < floor:
        yield Finding(
            NAME,
            Severity.grave,
            subject,
            value,
            "its leaders refuse what clients write; a disk that is full goes offline",
            f"make room: {room}",
        )
    elif free < max(2 * floor, LOW_SHARE * total):
        yield Finding(
            NAME,
            Severity.warning,
            subject,
            value,
            "with less its leaders refuse what clients write",
            room,
        )


DISKS: Final = Check(
    NAME, (Part.brokers,), "no log directory has failed, and every disk has room", examine_disks
)
