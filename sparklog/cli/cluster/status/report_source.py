"""Where commands that look at the cluster get its report: from a broker, or from the controller if none
answers.

People look when no broker answers. With ``--root`` the controllers' addresses are in ``cluster.json``, so the
one in office is asked at its own listener then.
"""

import argparse
from pathlib import Path
from typing import Final, Self

from sparklog.cli.command_config import command_config_of
from sparklog.cli.connect import bootstrap_servers_of, read_cluster_file
from sparklog.cli.progress import say
from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.cluster_reports import (
    operate_brokers,
    operate_brokers_at,
    report_of_brokers,
    report_of_controller,
)
from sparklog.client.errors import ClusterUnavailable
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.wire.messages.admin.operate_brokers import OperateBrokersRequest, OperateBrokersResponse
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest, ClusterReportResponse

ANSWER_TIMEOUT_MS: Final = 8_000
"""How long brokers may take, if any is silent."""
OPERATE_TIMEOUT_MS: Final = 20_000
CLIENT_ID: Final = "sparklog-cli"


class ReportSource:
    """A context manager; ``ask`` as often as wanted. ``failure`` says why the last ``ask`` got none."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._root: Path | None = getattr(arguments, "root", None)
        servers = bootstrap_servers_of(arguments)
        config = command_config_of(arguments)
        self.cluster: Final = config.client(servers, retry_timeout_ms=ANSWER_TIMEOUT_MS)
        self._arguments = arguments
        self.failure: SparklogError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()

    def ask(
        self, request: ClusterReportRequest, timeout_ms: int = ANSWER_TIMEOUT_MS
    ) -> ClusterReportResponse | None:
        """The report; None if nobody answers in time.

        KafkaError if those who answer have none, as where the controller is of an older release.
        """
        try:
            report = report_of_brokers(self.cluster, request, timeout_ms=timeout_ms)
        except ClusterUnavailable as error:
            self.failure = error
            return self._from_controller(request)
        self.failure = None
        return report

    def operate(self, request: OperateBrokersRequest) -> OperateBrokersResponse:
        """Have the controller begin or cancel an operation. KafkaError if it refuses; ClusterUnavailable if
        nobody answers, neither a broker nor, with ``--root``, the controller.
        """
        try:
            return operate_brokers(self.cluster, request, timeout_ms=OPERATE_TIMEOUT_MS)
        except ClusterUnavailable:
            if self._root is None:
                raise
            connector = command_config_of(self._arguments).connector()
            for endpoint in _controllers(self._root):
                try:
                    return operate_brokers_at(connector, endpoint, request, client_id=CLIENT_ID)
                except OSError as error:
                    say(f"warning: the controller at {endpoint} does not answer: {error}")
                except KafkaError as refused:
                    if refused.code is not ErrorCode.not_controller:
                        raise
            raise

    def _from_controller(self, request: ClusterReportRequest) -> ClusterReportResponse | None:
        report = None if self._root is None else report_of_root(self._arguments, self._root, request)
        if report is not None:
            self.failure = None
        return report


def report_of_root(
    arguments: argparse.Namespace, root: Path, request: ClusterReportRequest
) -> ClusterReportResponse | None:
    """The report of the controller in office, if it is one of ``cluster.json`` and answers."""
    connector = command_config_of(arguments).connector()
    for endpoint in _controllers(root):
        try:
            return report_of_controller(connector, endpoint, request, client_id=CLIENT_ID)
        except (OSError, SparklogError) as error:
            say(f"warning: the controller at {endpoint} gives no report: {error}")
    return None


def _controllers(root: Path) -> list[Endpoint]:
    """Those of ``cluster.json``, the one in office first."""
    entries = read_cluster_file(root).get("controllers", [])
    ordered = sorted(entries, key=lambda entry: not entry.get("active"))
    return [Endpoint(str(entry["host"]), int(entry["port"])) for entry in ordered]
