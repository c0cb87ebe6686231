"""``sparklog reassign``: move partitions to other brokers while they are written and read.

plan      where partitions should be; writes a file that can be looked at, and edited
execute   begin its moves, and watch them
verify    how far they are
cancel    take moves back that are under way
"""

import argparse
from pathlib import Path

from sparklog.cli.action_parsers import Actions, add_action, add_actions, run_action
from sparklog.cli.cluster.reassign.cancel import cancel
from sparklog.cli.cluster.reassign.execute import execute
from sparklog.cli.cluster.reassign.proposal import plan
from sparklog.cli.cluster.reassign.verify import verify
from sparklog.cli.command import Command
from sparklog.cli.topic_names import topic_name
from sparklog.cli.values import natural, positive, replication_factor

EXAMPLES = (
    "sparklog reassign plan --topics events,audit --brokers 1,2,3,4 -o plan.json --root /tmp/sparklog",
    "sparklog reassign execute --plan plan.json --throttle 10000000 --root /tmp/sparklog",
    "sparklog reassign verify --plan plan.json --bootstrap-server 127.0.0.1:9092",
    "sparklog reassign cancel --plan plan.json --root /tmp/sparklog",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser, "plan|execute|verify|cancel")
    _add_plan(actions)
    _add_execute(actions)
    verifying = add_action(actions, "verify", "tell how far the moves of a plan are", verify, EXAMPLES)
    _add_plan_option(verifying, "default: every move that is under way")
    cancelling = add_action(actions, "cancel", "take moves back that are under way", cancel, EXAMPLES)
    _add_plan_option(cancelling, "the moves of this plan; default: all")


def run(arguments: argparse.Namespace) -> int:
    return run_action(arguments, lambda _: None)


def _add_plan(actions: Actions) -> None:
    summary = "propose an even placement, over racks if there are any, that copies as little as possible"
    parser = add_action(actions, "plan", summary, plan, EXAMPLES)
    parser.add_argument(
        "--topics", type=_topics, metavar="T,...", help="topics to place; default: all but internal ones"
    )
    parser.add_argument(
        "--brokers", type=_brokers, metavar="N,...", help="brokers to place on; default: all that live"
    )
    parser.add_argument(
        "--replication-factor",
        type=replication_factor,
        metavar="R",
        help="copies of each partition; default: as many as it has",
    )
    parser.add_argument("-o", "--output", type=_file, metavar="FILE", help="write the plan, as Kafka's JSON")


def _add_execute(actions: Actions) -> None:
    parser = add_action(actions, "execute", "carry out a plan", execute, EXAMPLES)
    _add_plan_option(parser, "in Kafka's JSON", required=True)
    parser.add_argument(
        "--throttle",
        type=positive,
        metavar="BYTES_PER_S",
        help="what each broker sends and fetches at most for these moves, until they are done",
    )
    parser.add_argument("--no-wait", action="store_true", help="begin the moves, and do not watch them")


def _add_plan_option(parser: argparse.ArgumentParser, text: str, *, required: bool = False) -> None:
    parser.add_argument("--plan", type=_file, required=required, metavar="FILE", help=text)


def _topics(text: str) -> list[str]:
    return list(dict.fromkeys(topic_name(one.strip()) for one in text.split(",")))


def _brokers(text: str) -> list[int]:
    return list(dict.fromkeys(natural(one.strip()) for one in text.split(",")))


def _file(text: str) -> Path:
    if not text or Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a file")
    return Path(text)


COMMAND = Command(
    name="reassign",
    summary="move partitions to other brokers",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
