"""Changes of a secured cluster under load, and whether all brokers follow: ``nemesis.Security``."""

import ssl
import time
from collections.abc import Callable
from typing import Final

from chaos.access import Access
from chaos.denials import Denial
from chaos.machines.secured import MECHANISMS, Secured
from chaos.nemesis import Broker, Cluster
from chaos.teams import GUEST, LENT, LOAN
from sparklog.authority.folder_texts import BROKER_FILE
from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import LoginDenied
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.wire.messages.data.list_offsets import (
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

READ_AGAIN_S: Final = 20.0
"""By then brokers show renewed files: they look at them every ten seconds."""
BINDS_S: Final = 5.0
"""By then every broker knows a changed rule, or a deleted password: within a second, if not busy."""
GUEST_CLIENT: Final = "guest-1"
_PAUSE_S: Final = 0.2
_ASK_MS: Final = 3_000


class Changing(Secured):
    """See ``nemesis.Security``."""

    _old: tuple[str, Access] | None = None
    """The team whose password changes, and how its clients connected before."""
    _taken: Denial | None = None
    """Since when the guest is denied; None while its rule is there."""

    # Certificates

    def renew(self) -> str:
        before = self._shown_by_file()
        self.command("security", "renew", str(self.folder))
        if self._shown_by_file() == before:
            self.findings.append("sparklog security renew has left the certificate of brokers as it was")
        return "other keys and certificates of brokers and administrator"

    def check_renewed(self, cluster: Cluster) -> None:
        wanted = self._shown_by_file()
        late = self._late(cluster, lambda broker: _shown_by(broker) == wanted, READ_AGAIN_S)
        self.findings += [f"broker {one} shows an old certificate {READ_AGAIN_S:g} s after" for one in late]

    def _shown_by_file(self) -> str:
        text = (self.folder / BROKER_FILE).read_text(encoding="ascii")
        begin = text.index(_BEGIN)
        return text[begin : text.index(_END, begin)].strip()

    # Passwords

    def begin_rotation(self, team: str) -> str:
        before = self.access_of(team)
        mechanism = next(one for one in MECHANISMS if one != before.mechanism)
        self.set_login(team, mechanism)
        self._old = team, before
        return f"team {team} moves from {before.mechanism} to {mechanism}"

    def end_rotation(self) -> None:
        if self._old is None:
            return
        (team, before), self._old = self._old, None
        words = ("users", "delete", team, "--mechanism", before.mechanism)
        self.administer(*words, done_if="has no password")
        if not _within(BINDS_S, lambda: _is_refused(before)):
            self.findings.append(f"team {team} logs in by its old password {BINDS_S:g} s after its deletion")
        if not _within(BINDS_S, lambda: not _is_refused(self.access_of(team))):
            self.findings.append(f"team {team} is refused with its new password")

    # Rules

    def call_in_loan(self, cluster: Cluster) -> str:
        self._taken = Denial(GUEST_CLIENT, frozenset({LENT}), time.monotonic_ns())
        self.administer("acls", "remove", *self._loan, done_if="no such access rule")
        late = self._late(cluster, self._denies, BINDS_S)
        self.findings += [
            f"broker {one} serves the guest {BINDS_S:g} s after its rule was taken" for one in late
        ]
        self._taken.since_ns = time.monotonic_ns()
        self.denials.append(self._taken)
        return f"{GUEST} may not write to {LENT}"

    def lend(self, cluster: Cluster) -> None:
        if self._taken is None:
            return
        self._taken.until_ns, self._taken = time.monotonic_ns(), None
        self.administer("acls", "add", *self._loan)
        late = self._late(cluster, lambda broker: not self._denies(broker), BINDS_S)
        self.findings += [
            f"broker {one} denies the guest {BINDS_S:g} s after its rule is back" for one in late
        ]

    @property
    def _loan(self) -> list[str]:
        return ["--principal", f"User:{GUEST}", *LOAN.words]

    def _denies(self, broker: Broker) -> bool:
        """Whether it denies the guest even to ask where the topic ends, which writing implies."""
        asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIMESTAMP)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=LENT, partitions=[asked])])
        with _client_of(self.access_of(GUEST)) as client:
            where = Endpoint(broker.host, broker.port)
            answer = client.call_endpoint(where, request, client.deadline(_ASK_MS))
        code: ErrorCode = answer.topics[0].partitions[0].error_code
        return code is ErrorCode.topic_authorization_failed

    def _late(self, cluster: Cluster, is_so: Callable[[Broker], bool], timeout_s: float) -> list[int]:
        """The brokers of which it is not so in that time, counted from now. One that does not answer may
        have gone, and is not among them.
        """
        deadline = time.monotonic() + timeout_s
        late = dict(cluster.brokers())
        while late:
            late = {number: one for number, one in late.items() if _known(is_so, one) is False}
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_S)
        return sorted(late)


_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"


def _shown_by(broker: Broker) -> str:
    """The certificate that it shows, as its file has it."""
    shown = ssl.get_server_certificate((broker.host, broker.port), timeout=_ASK_MS / 1_000)
    begin = shown.index(_BEGIN)
    return shown[begin : shown.index(_END, begin)].strip()


def _known(is_so: Callable[[Broker], bool], broker: Broker) -> bool | None:
    """None: it does not answer."""
    try:
        return is_so(broker)
    except (OSError, SparklogError):
        return None


def _within(timeout_s: float, is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


def _is_refused(access: Access) -> bool:
    with _client_of(access) as client:
        try:
            client.reach(_ASK_MS)
        except LoginDenied:
            return True
        except SparklogError:
            return False
    return False


def _client_of(access: Access) -> ClusterClient:
    return ClusterClient(
        access.bootstrap,
        client_id="chaos",
        request_timeout_ms=_ASK_MS,
        retry_timeout_ms=_ASK_MS,
        connector=access.connector(),
    )
