"""``sparklog remote check URL``: what a remote store can do, found out by doing it, with a verdict."""

import argparse
import json
from collections.abc import Sequence
from typing import Final

from sparklog.cli.command import DONE, Command
from sparklog.cli.connect import add_json_argument, wants_json
from sparklog.cli.table import render_table
from sparklog.cli.values import positive
from sparklog.model.errors import SparklogError
from sparklog.remote.open_store import TIMEOUT_S, open_store
from sparklog.remote.ownership import claim, owner_of
from sparklog.remote.probe import Finding, probe

DESCRIPTION: Final = """\
Writes a few megabytes into a folder of its own in the store, reads them in ways that a broken
store would fail at, and removes them. Nothing else in the store is touched.

The URL is file:///folder, hdfs://host:port/folder, webhdfs://host:port/folder or s3://bucket/folder,
without user and password: S3 takes its keys from the environment (AWS_ACCESS_KEY_ID,
AWS_ENDPOINT_URL) or ~/.aws, HDFS its user from HADOOP_USER_NAME or Kerberos.
Exit status: 0 if the store is fit to hold history, 1 if it is not, 2 for wrong usage."""

EXAMPLES: Final = (
    "sparklog remote check hdfs://namenode:8020/sparklog",
    "sparklog remote check s3://bucket/sparklog --cluster-id 4L6g3nShT-eMCtK--X86sw",
    "sparklog remote check file:///mnt/shared/sparklog --claim 4L6g3nShT-eMCtK--X86sw",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    ways = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    check = ways.add_parser("check", help="what the store can do, in a table, with a verdict")
    check.add_argument("url", metavar="URL", help="the store")
    mark = check.add_mutually_exclusive_group()
    mark.add_argument("--cluster-id", metavar="ID", help="refuse a store that belongs to another cluster")
    mark.add_argument("--claim", metavar="ID", help="if the store is fit, make it this cluster's for good")
    check.add_argument(
        "--timeout",
        type=positive,
        default=int(TIMEOUT_S),
        metavar="SECONDS",
        help="for each step of a call; default: %(default)s",
    )
    add_json_argument(check)


def run(arguments: argparse.Namespace) -> int:
    store = open_store(arguments.url, arguments.timeout)
    findings = probe(store)
    is_fit = all(finding.has for finding in findings)
    if is_fit and arguments.claim is not None:
        claim(store, arguments.claim)
    owner = owner_of(store)
    if wants_json(arguments):
        print(_json(arguments.url, findings, owner, is_fit=is_fit))
    else:
        rows = [(finding.ability, "yes" if finding.has else "NO", finding.seen) for finding in findings]
        print(render_table(("ability", "has", "seen"), rows))
        if is_fit:
            print(f"\n{arguments.url} is fit to hold history, and belongs to {_words(owner)}")
    _refuse(arguments.url, owner, arguments.cluster_id, is_fit=is_fit)
    return DONE


def _refuse(url: str, owner: str | None, wanted: str | None, *, is_fit: bool) -> None:
    """SparklogError if the store is not fit, or is not the wanted cluster's."""
    if not is_fit:
        raise SparklogError(
            f"{url} is NOT fit to hold history: what it lacks loses records; use another store"
        )
    if wanted is not None and owner not in (None, wanted):
        raise SparklogError(f"{url} belongs to {_words(owner)}, not to {wanted!r}; choose another folder")


def _words(owner: str | None) -> str:
    return "no cluster yet" if owner is None else f"cluster {owner!r}"


def _json(url: str, findings: Sequence[Finding], owner: str | None, *, is_fit: bool) -> str:
    abilities = [{"ability": one.ability, "has": one.has, "seen": one.seen} for one in findings]
    return json.dumps({"url": url, "fit": is_fit, "cluster_id": owner, "abilities": abilities})


COMMAND: Final = Command(
    name="remote",
    summary="find out whether a store on HDFS, S3 or a shared folder is fit to hold history",
    add_arguments=add_arguments,
    run=run,
    description=DESCRIPTION,
    examples=EXAMPLES,
)
