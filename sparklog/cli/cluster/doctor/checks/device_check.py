"""What only a broker's host knows of its disks: inodes, and directories that share a disk. PURE."""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity, listed, named
from sparklog.wire.messages.discovery.broker_report import ReportedDirectory

NAME: Final = "devices"
FEW_SHARE: Final = 0.05
"""Fewer free inodes than this share is a warning, and fewer than a fifth of it is grave."""


def examine_devices(facts: ClusterFacts) -> Iterator[Finding]:
    brokers_by_disk: dict[tuple[str, str], set[int]] = {}
    for broker, report in sorted(facts.own_reports.items()):
        paths_by_device: dict[str, list[str]] = {}
        for directory in report.directories:
            yield from _inodes(broker, directory)
            if directory.device and directory.is_online:
                paths_by_device.setdefault(directory.device, []).append(directory.path)
                brokers_by_disk.setdefault((report.host, directory.device), set()).add(broker)
        for paths in paths_by_device.values():
            if len(paths) > 1:
                yield _two_directories(broker, paths)
    for (host, _), brokers in sorted(brokers_by_disk.items()):
        if len(brokers) > 1:
            yield _several_brokers(host, sorted(brokers))


def _inodes(broker: int, directory: ReportedDirectory) -> Iterator[Finding]:
    total, free = directory.total_inodes, directory.free_inodes
    if total <= 0 or free < 0 or free >= FEW_SHARE * total:
        return
    yield Finding(
        NAME,
        Severity.grave if free < FEW_SHARE * total / 5 else Severity.warning,
        f"{directory.path} of broker {broker}",
        f"{free} of {total} inodes are free",
        "without one no segment can be created: the directory goes offline, however many bytes are free",
        "delete small files of others there; larger segment.bytes, or fewer partitions, need fewer files",
    )


def _two_directories(broker: int, paths: list[str]) -> Finding:
    return Finding(
        NAME,
        Severity.warning,
        f"broker {broker}",
        f"log.dirs names directories on one disk: {listed(paths)}",
        "they fail together, share one disk's speed, and each counts the same free space",
        "one directory for each disk; move replicas out of the other first, or drain the broker",
    )


def _several_brokers(host: str, brokers: list[int]) -> Finding:
    return Finding(
        NAME,
        Severity.note,
        named("broker", brokers),
        f"have their logs on one disk of host {host}",
        "they fail together: of a partition's replicas there, all are lost at once",
        "brokers on several hosts, or a disk for each",
    )


DEVICES: Final = Check(
    NAME,
    (Part.brokers, Part.own_reports),
    "disks have inodes, and no two directories share one",
    examine_devices,
)
