"""A cluster that is secured by the commands that its owner has.

    sparklog security init      certificates, settings of brokers, an administrator
    sparklog users, acls        teams with rights on their own topics
    sparklog security renew     other certificates under load

What is to be kept, and is not, is in ``findings``; who may do nothing when, in ``denials``.
"""

import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from chaos.access import PLAIN, SCRAM, Access
from chaos.denials import Denial
from chaos.teams import Right
from sparklog.authority.folder_texts import (
    ADMIN,
    ADMIN_PROPERTIES_FILE,
    AUTHORITY_FILE,
    SECRETS_FILE,
    SERVER_FILE,
)
from sparklog.model.settings.settings_text import parse_properties

MECHANISMS: Final = (SCRAM, "SCRAM-SHA-256")
"""A team's password changes with its mechanism: both count until the old one is deleted."""

COMMAND_S: Final = 60.0
"""For so long a command is tried again, under whatever faults."""
_PAUSE_S: Final = 0.5
_ITERATIONS: Final = "4096"
_PASSWORD_BYTES: Final = 24

_IN_SPARK: Final = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
}


class CommandFailed(Exception):  # noqa: N818 (it states a fact)
    """A command of the administrator did not succeed in its time."""


class Secured:
    """Raises CommandFailed if the folder cannot be made."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        """``hosts`` are those of brokers, driver and candidates, as they are dialled."""
        self.folder = folder.absolute()
        self.denials: list[Denial] = []
        self.findings: list[str] = []
        self._logins: dict[str, tuple[str, str]] = {}
        """Mechanism and password of each team."""
        self._bootstrap = ""
        self.command("security", "init", str(self.folder), "--host", *dict.fromkeys(hosts))
        self._spark_secret = secrets.token_hex(_PASSWORD_BYTES)

    @property
    def settings_file(self) -> Path:
        """Settings of brokers and of candidates."""
        return self.folder / SERVER_FILE

    @property
    def broker_settings(self) -> Mapping[str, str]:
        found = parse_properties(self.settings_file.read_text(encoding="utf-8"))
        return {**found, **self.more_settings}

    @property
    def more_settings(self) -> Mapping[str, str]:
        """What a run has beside the file: the mechanism of the next password."""
        return {"sasl.enabled.mechanisms": ",".join((*MECHANISMS, PLAIN))}

    @property
    def spark_conf(self) -> Mapping[str, str]:
        """Brokers that ask for logins run in a Spark whose processes know each other."""
        return {**_IN_SPARK, "spark.authenticate.secret": self._spark_secret}

    def write_settings(self, settings: Mapping[str, str]) -> Path:
        """All settings of a candidate, as a file: a command line shows what it has."""
        path = self.folder / "candidate.properties"
        path.touch(mode=0o600)
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def write_spark_file(self) -> Path:
        """The same for Spark's master and workers, which take no other options of a driver."""
        path = self.folder / "spark.properties"
        path.touch(mode=0o600)
        path.write_text("".join(f"{name} {value}\n" for name, value in self.spark_conf.items()))
        return path

    # Who is who

    def open_to(self, bootstrap: str, rights: Mapping[str, Sequence[Right]]) -> None:
        """Make users and their rules; the administrator's commands go to these addresses from now on."""
        self._bootstrap = bootstrap
        for team, some in rights.items():
            self.set_login(team, SCRAM)
            for right in some:
                self.administer("acls", "add", "--principal", f"User:{team}", *right.words)

    @property
    def admin(self) -> Access:
        known = parse_properties((self.folder / SECRETS_FILE).read_text(encoding="utf-8"))
        return Access(self._bootstrap, self._authority, ADMIN, known[ADMIN], PLAIN)

    def access_of(self, team: str) -> Access:
        """As its clients connect from now on."""
        mechanism, password = self._logins[team]
        return Access(self._bootstrap, self._authority, team, password, mechanism)

    @property
    def _authority(self) -> str:
        return str(self.folder / AUTHORITY_FILE)

    def administer(self, *words: str, done_if: str | None = None) -> None:
        """A command of ``sparklog`` upon the cluster, until it succeeds or says ``done_if``: an earlier try,
        whose answer was lost, has succeeded then. CommandFailed after ``COMMAND_S``.
        """
        config = str(self.folder / ADMIN_PROPERTIES_FILE)
        whole = (*words, "--bootstrap-server", self._bootstrap, "--command-config", config)
        deadline = time.monotonic() + COMMAND_S
        while (said := _said_by(whole)) is not None and (done_if is None or done_if not in said):
            if time.monotonic() > deadline:
                raise CommandFailed(f"sparklog {' '.join(words[:2])}: {said}")
            time.sleep(_PAUSE_S)

    def command(self, *words: str) -> None:
        """A command of ``sparklog`` upon this machine's files, once."""
        said = _said_by(words)
        if said is not None:
            raise CommandFailed(f"sparklog {' '.join(words[:2])}: {said}")

    def set_login(self, team: str, mechanism: str) -> None:
        """The team's clients log in so from now on, by a new password."""
        self._logins[team] = self._add_password(team, mechanism)

    def _add_password(self, team: str, mechanism: str) -> tuple[str, str]:
        password = secrets.token_hex(_PASSWORD_BYTES)
        path = self.folder / f"{team}.txt"
        path.touch(mode=0o600)
        path.write_text(password)
        given = ("--mechanism", mechanism, "--iterations", _ITERATIONS, "--password-file", str(path))
        self.administer("users", "add", team, *given, done_if="already")
        return mechanism, password


def _said_by(words: Sequence[str]) -> str | None:
    """What a command of ``sparklog`` says that fails; None if it succeeds."""
    command = [sys.executable, "-m", "sparklog.cli.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip()
