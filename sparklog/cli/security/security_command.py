"""``sparklog security``: the files of a secured cluster: make them, show and renew its certificates."""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sparklog.authority.folder_texts import AUTHORITY_FILE, BROKER_FILE
from sparklog.cli.action_parsers import Actions, new_action
from sparklog.cli.command import DONE, Command
from sparklog.cli.connect import add_json_argument, wants_json
from sparklog.cli.progress import say
from sparklog.cli.table import render_table
from sparklog.cli.values import directory
from sparklog.model.errors import ConfigError, SparklogError

DESCRIPTION: Final = """\
A folder from which a secured cluster starts: an authority, certificates of brokers and of an
administrator, and settings. Brokers prove who they are by certificates; users log in over TLS.

  sparklog start --brokers 3 --root ROOT --settings DIR/server.properties
  sparklog users add alice --mechanism SCRAM-SHA-512 --root ROOT --command-config DIR/admin.properties

ca.pem and client.properties are for users. Nothing else leaves the cluster's hosts."""

EXAMPLES: Final = (
    "sparklog security init /etc/sparklog/security --host broker-1.example.com broker-2.example.com 10.0.0.7",
    "sparklog security show /etc/sparklog/security",
    "sparklog security renew /etc/sparklog/security",
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """``names``: hosts that it is for."""

    file: str
    subject: str
    names: tuple[str, ...]
    not_after: datetime


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="init|show|renew")
    making = _add(actions, "init", "make the folder and its files", _init)
    making.add_argument(
        "--host",
        dest="hosts",
        nargs="+",
        action="extend",
        required=True,
        metavar="H",
        help="names and IP addresses at which the brokers' hosts and the driver's are reached; localhost "
        "and 127.0.0.1 are added",
    )
    _add(actions, "show", "the certificates: for which hosts, and until when", _show)
    renewing = _add(actions, "renew", "new keys and certificates, under the same authority", _renew)
    renewing.add_argument(
        "--host",
        dest="hosts",
        nargs="+",
        action="extend",
        default=[],
        metavar="H",
        help="hosts that the certificate of brokers names from now on, beside those that it has",
    )


def _add(
    actions: Actions, name: str, summary: str, do: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = new_action(actions, name, summary, EXAMPLES)
    parser.set_defaults(do=do)
    parser.add_argument("folder", type=directory, metavar="DIR", help="the folder of the files")
    add_json_argument(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    status: int = arguments.do(arguments)
    return status


def _init(arguments: argparse.Namespace) -> int:
    # start time: cryptography is heavy, and the overview of all commands imports this module
    from sparklog.authority.folder import make_folder
    from sparklog.authority.issuing import utc_now

    make_folder(arguments.folder, arguments.hosts, utc_now())
    say(f"{arguments.folder}: give ca.pem and client.properties to users, and nothing else")
    return _show(arguments)


def _renew(arguments: argparse.Namespace) -> int:
    # as above
    from sparklog.authority.folder import renew_folder
    from sparklog.authority.issuing import utc_now

    hosts = {one.file: one.names for one in _certificates(arguments.folder)}
    hosts[BROKER_FILE] = tuple(dict.fromkeys((*hosts[BROKER_FILE], *arguments.hosts)))
    renew_folder(arguments.folder, hosts, utc_now())
    say("brokers and clients on this machine read them within ten seconds; copy broker.pem to other hosts")
    return _show(arguments)


def _show(arguments: argparse.Namespace) -> int:
    found = list(_certificates(arguments.folder))
    if wants_json(arguments):
        print(json.dumps({"certificates": [_json(one) for one in found]}))
        return DONE
    rows = [(one.file, one.subject, one.names, f"{one.not_after:%Y-%m-%d %H:%M:%S} UTC") for one in found]
    print(render_table(("FILE", "SUBJECT", "NAMES", "NOT AFTER"), rows))
    return DONE


def _json(one: Certificate) -> dict[str, object]:
    ends = f"{one.not_after:%Y-%m-%dT%H:%M:%SZ}"
    return {"file": one.file, "subject": one.subject, "names": list(one.names), "not_after": ends}


def _certificates(folder: Path) -> Iterator[Certificate]:
    """SparklogError if one cannot be read."""
    # as above
    from sparklog.authority.folder import CERTIFICATE_FILES
    from sparklog.credentials.secret_files import read_file
    from sparklog.network.tls.certificate_facts import facts_of
    from sparklog.network.tls.pem import certificates_of
    from sparklog.network.tls.stores import Identity

    for file in CERTIFICATE_FILES:
        try:
            chain = certificates_of(read_file(str(folder / file)).content.decode("utf-8", "replace"))
            if not chain:
                raise ConfigError(f"{folder / file} has no certificate")
            facts = facts_of(Identity(str(folder / file), chain, ""))
        except ConfigError as error:
            raise SparklogError(f"{error}; name a folder that sparklog security init has made") from None
        ends = datetime.fromtimestamp(facts.expires_at_ms // 1_000, UTC)
        names = () if file == AUTHORITY_FILE else facts.alternative_names
        yield Certificate(file, facts.owner, names, ends)


COMMAND: Final = Command(
    name="security",
    summary="the files of a secured cluster: make them, show and renew its certificates",
    add_arguments=add_arguments,
    run=run,
    description=DESCRIPTION,
    examples=EXAMPLES,
)
