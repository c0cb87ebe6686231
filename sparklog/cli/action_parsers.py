"""Commands with actions, such as ``sparklog configs describe``: the parser of each action."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from sparklog.cli.command import examples_text
from sparklog.cli.connect import add_cluster_arguments, add_json_argument, connect
from sparklog.client.cluster import ClusterClient

Actions = Any
"""The type that ``add_subparsers`` returns; argparse has no public name for it."""

Do = Callable[[ClusterClient, argparse.Namespace], int]
"""Runs an action and returns the exit status."""


def add_actions(parser: argparse.ArgumentParser, names: str) -> Actions:
    """Add the subparsers for the actions ``names``, written ``a|b``."""
    add_cluster_arguments(parser)
    return parser.add_subparsers(dest="action", required=True, metavar=names)


def add_action(
    actions: Actions, name: str, summary: str, do: Do, examples: Sequence[str] = ()
) -> argparse.ArgumentParser:
    """A parser for one action, with the options that every action has."""
    return _add_parser(actions, name, summary, do, examples)


def add_plain_action(
    actions: Actions,
    name: str,
    summary: str,
    examples: Sequence[str],
    do: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Likewise, for an action that connects by itself."""
    return _add_parser(actions, name, summary, do, examples)


def _add_parser(
    actions: Actions, name: str, summary: str, do: Callable[..., int], examples: Sequence[str]
) -> argparse.ArgumentParser:
    parser = new_action(actions, name, summary, examples)
    parser.set_defaults(do=do)
    add_cluster_arguments(parser)
    add_json_argument(parser)
    return parser


def new_action(actions: Actions, name: str, summary: str, examples: Sequence[str]) -> argparse.ArgumentParser:
    """A parser for one action without options; its help shows those of ``examples`` that name the action."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=examples_text(tuple(one for one in examples if f" {name} " in one)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    return parser


def run_action(arguments: argparse.Namespace, check: Callable[[argparse.Namespace], None]) -> int:
    """Connect and run the chosen action. ``check`` raises UsageError for contradictory options."""
    check(arguments)
    do: Do = arguments.do
    with connect(arguments) as cluster:
        return do(cluster, arguments)
