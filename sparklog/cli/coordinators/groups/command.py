"""``sparklog groups``: consumer groups, their members, lag and offsets.

list            the groups of the cluster, with their states
describe        a group's partitions with offsets and lag, and its members
reset-offsets   where a group goes on reading; shows what would change, until --execute is given
delete          groups without members, with their offsets
delete-offsets  a group's offsets of topics that it no longer reads
"""

import argparse
from pathlib import Path
from typing import Final

from sparklog.cli.action_parsers import Actions, add_action, add_actions, run_action
from sparklog.cli.command import Command, UsageError
from sparklog.cli.coordinators.groups import group_deletion, group_description, group_listing, reset
from sparklog.cli.coordinators.groups.partitions import partitions_option
from sparklog.cli.coordinators.groups.reset_times import duration, moment
from sparklog.cli.values import group_name, offset, whole_number

EXAMPLES = (
    "sparklog groups list --state Empty --root /tmp/sparklog",
    "sparklog groups describe billing --bootstrap-server 127.0.0.1:9092",
    "sparklog groups reset-offsets billing --all-topics --to-earliest --root /tmp/sparklog",
    "sparklog groups reset-offsets billing --topic orders:0,1 --by-duration PT2H --execute --root DIR",
    "sparklog groups delete billing audit --root /tmp/sparklog",
    "sparklog groups delete-offsets billing --topic orders --root /tmp/sparklog",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser, "list|describe|reset-offsets|delete|delete-offsets")
    listed = add_action(
        actions, "list", "list the groups and their states", group_listing.list_groups, EXAMPLES
    )
    listed.add_argument(
        "--state",
        action="append",
        type=group_listing.state,
        metavar="STATE",
        help=f"only groups in this state; may be repeated; {', '.join(group_listing.STATES)}",
    )
    summary = "show offsets, lag, members and state of groups"
    described = add_action(actions, "describe", summary, group_description.describe, EXAMPLES)
    described.add_argument("groups", nargs="+", type=group_name, metavar="G")
    _add_reset(actions)
    summary = "delete groups that have no members, with their offsets"
    deleted = add_action(actions, "delete", summary, group_deletion.delete_groups, EXAMPLES)
    deleted.add_argument("groups", nargs="+", type=group_name, metavar="G")
    summary = "delete a group's offsets of topics that it does not read any more"
    forgotten = add_action(actions, "delete-offsets", summary, group_deletion.delete_group_offsets, EXAMPLES)
    forgotten.add_argument("group", type=group_name, metavar="G")
    _add_topics(forgotten, required=True)


def run(arguments: argparse.Namespace) -> int:
    return run_action(arguments, _check)


def _add_reset(actions: Actions) -> None:
    summary = "choose where a group without members goes on reading; a dry run without --execute"
    parser = add_action(actions, "reset-offsets", summary, reset.reset_offsets, EXAMPLES)
    parser.add_argument("group", type=group_name, metavar="G")
    _add_topics(parser)
    parser.add_argument(
        "--all-topics", action="store_true", help="every partition for which the group has an offset"
    )
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--to-earliest", action="store_true", help="the first record that is still there")
    way.add_argument("--to-latest", action="store_true", help="the end: only new records are read")
    way.add_argument("--to-current", action="store_true", help="the committed offset; for --export")
    way.add_argument("--to-offset", type=offset, metavar="N", help="this offset, or the nearest one there is")
    way.add_argument("--shift-by", type=whole_number, metavar="N", help="N records on; back, if negative")
    way.add_argument(
        "--to-datetime",
        type=moment,
        metavar="YYYY-MM-DDTHH:MM:SS",
        help="the first record at or after this time; UTC, unless an offset such as +02:00 follows",
    )
    way.add_argument(
        "--by-duration",
        type=duration,
        metavar="PnDTnHnMnS",
        help="the first record of the last so much time, for example P1DT12H",
    )
    way.add_argument("--from-file", type=_file, metavar="FILE", help="the lines that --export printed")
    parser.add_argument("--execute", action="store_true", help="commit the new offsets")
    parser.add_argument(
        "--export", action="store_true", help="print topic,partition,offset, a line each, instead of a table"
    )


def _add_topics(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    parser.add_argument(
        "--topic",
        action="append",
        required=required,
        type=partitions_option,
        metavar="T[:P,...]",
        help="a topic, or some partitions of it; may be repeated",
    )


def _check(arguments: argparse.Namespace) -> None:
    if arguments.action != "reset-offsets":
        return
    if arguments.topic and arguments.all_topics:
        raise UsageError("--topic and --all-topics are both given; give one of them")
    if not arguments.topic and not arguments.all_topics and arguments.from_file is None:
        raise UsageError("which partitions? give --topic T[:P,...], or --all-topics")
    if arguments.export and getattr(arguments, "json", False):
        raise UsageError("--export and --json are both given; give one of them")


def _file(text: str) -> Path:
    if not text or Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a file")
    return Path(text)


COMMAND: Final = Command(
    name="groups",
    summary="list, describe, reset and delete consumer groups",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
