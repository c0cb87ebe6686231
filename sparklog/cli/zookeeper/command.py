"""``sparklog zookeeper``: close the nodes of a cluster to others, or open them again."""

import argparse
from pathlib import Path
from typing import Final

from sparklog.cli.action_parsers import new_action
from sparklog.cli.command import DONE, FAILED, Command
from sparklog.cli.progress import Counter, say
from sparklog.cli.zookeeper.command_session import session_of, settings_of
from sparklog.core.controller.state.znodes import CONTROLLER_EPOCH
from sparklog.model.errors import ConfigError, SparklogError
from sparklog.model.zookeeper import ZooKeeperError
from sparklog.zookeeper.access_check import check_digest
from sparklog.zookeeper.tree_access import Conversion, Goal, convert

DESCRIPTION: Final = """\
Close all nodes of a cluster in ZooKeeper to others than the user of zookeeper.digest, or open them again,
while the cluster runs. Others still read closed nodes, but for those of users, of brokers' settings and of
logins. Restart the cluster first: with zookeeper.digest and zookeeper.set.acl=true before secure, with the
same digest and zookeeper.set.acl=false before open. A run that was cut is repeated, and goes on.

Exit status 1, with the nodes that are left, if not all could be changed."""

EXAMPLES: Final = (
    "sparklog zookeeper secure --zookeeper zk1:2181/log --settings server.properties",
    "sparklog zookeeper open --zookeeper zk1:2181/log --settings server.properties",
)

LEFT_MAX: Final = 20
"""How many of the nodes that are left are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="secure|open")
    for goal, name, summary in (
        (Goal.SECURE, "secure", "let the cluster alone change its nodes, and read those with credentials"),
        (Goal.OPEN, "open", "let everybody change and read all nodes"),
    ):
        action = new_action(actions, name, summary, EXAMPLES)
        action.set_defaults(goal=goal)
        action.add_argument(
            "--zookeeper", required=True, metavar="HOST:PORT,...[/PATH]", help="where the nodes are"
        )
        action.add_argument(
            "--settings",
            dest="settings_file",
            type=Path,
            required=True,
            metavar="FILE",
            help="brokers' settings, whose zookeeper.* say how to connect, and as whom",
        )


def run(arguments: argparse.Namespace) -> int:
    return _convert(arguments.goal, arguments.zookeeper, arguments.settings_file)


def _convert(goal: Goal, zookeeper: str, settings_file: Path) -> int:
    if settings_of(settings_file).digest is None:
        raise ConfigError(
            f"--settings {settings_file} has no zookeeper.digest, the user to whom the nodes belong; add it"
        )
    looked_at = Counter("nodes looked at")
    has_chroot = bool(zookeeper.partition("/")[2].strip("/"))
    with session_of(zookeeper, settings_file, creates_chroot=False) as session:
        if session.exists(CONTROLLER_EPOCH) is None:
            raise SparklogError(f"no cluster has its nodes at {zookeeper}; correct the address")
        check_digest(session)
        try:
            conversion = convert(session, goal, has_chroot=has_chroot, on_progress=looked_at.add)
        except ZooKeeperError as error:
            say(f"{error}. {looked_at.count:,} nodes were looked at; run this again, and it goes on")
            return FAILED
    return _report(goal, conversion)


def _report(goal: Goal, conversion: Conversion) -> int:
    done, before = goal.value, conversion.unchanged - conversion.changed
    print(f"{conversion.changed:,} nodes are {done} now, {before:,} were before")
    if conversion.is_complete:
        return DONE
    say(f"{len(conversion.left):,} nodes are not {done}:")
    for path, why in sorted(conversion.left.items())[:LEFT_MAX]:
        say(f"  {path}: {why}")
    if len(conversion.left) > LEFT_MAX:
        say(f"  and {len(conversion.left) - LEFT_MAX:,} more")
    return FAILED


COMMAND: Final = Command(
    name="zookeeper",
    summary="close a cluster's nodes in ZooKeeper to others, or open them",
    add_arguments=add_arguments,
    run=run,
    description=DESCRIPTION,
    examples=EXAMPLES,
)
