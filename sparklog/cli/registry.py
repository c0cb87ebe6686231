"""The list of all commands: those of this package, and those of installed packages."""

import difflib
import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Final

from sparklog.cli.command import COMMAND_GROUP, Command, UsageError
from sparklog.model.errors import SparklogError

BUILT_IN: Final[Mapping[str, str]] = {
    "status": "sparklog.cli.cluster.status.command:COMMAND",
    "brokers": "sparklog.cli.cluster.brokers.command:COMMAND",
    "events": "sparklog.cli.cluster.status.events:COMMAND",
    "doctor": "sparklog.cli.cluster.doctor.command:COMMAND",
    "page": "sparklog.web.command:COMMAND",
    "topics": "sparklog.cli.logs.topics.command:COMMAND",
    "produce": "sparklog.cli.logs.produce.command:COMMAND",
    "consume": "sparklog.cli.logs.consume.command:COMMAND",
    "groups": "sparklog.cli.coordinators.groups.command:COMMAND",
    "transactions": "sparklog.cli.coordinators.transactions.command:COMMAND",
    "configs": "sparklog.cli.cluster.configs.command:COMMAND",
    "acls": "sparklog.cli.security.acls_command:COMMAND",
    "users": "sparklog.cli.cluster.users.command:COMMAND",
    "quotas": "sparklog.cli.security.quotas_command:COMMAND",
    "security": "sparklog.cli.security.security_command:COMMAND",
    "zookeeper": "sparklog.cli.zookeeper.command:COMMAND",
    "reassign": "sparklog.cli.cluster.reassign.command:COMMAND",
    "elect-leaders": "sparklog.cli.cluster.elect_leaders:COMMAND",
    "dump-log": "sparklog.cli.logs.dump.command:COMMAND",
    "remote": "sparklog.cli.cluster.remote:COMMAND",
    "completion": "sparklog.cli.about.completion:COMMAND",
    "version": "sparklog.cli.about.version:COMMAND",
}
"""Commands of this package, in the order in which help shows them."""

FIRST_IN_HELP: Final = ("start", "demo", "conf", "submit")


def command_names() -> list[str]:
    """The names of all commands, in the order of the help."""
    plugins = sorted(entry_points(group=COMMAND_GROUP).names - BUILT_IN.keys())
    first = [name for name in FIRST_IN_HELP if name in plugins]
    return [*first, *BUILT_IN, *(name for name in plugins if name not in first)]


def load_command(name: str) -> Command:
    """The command ``name``. UsageError for an unknown name, SparklogError if it cannot be loaded."""
    if name in BUILT_IN:
        return _load(name, BUILT_IN[name])
    for entry_point in entry_points(group=COMMAND_GROUP, name=name):
        return _load(name, entry_point.value)
    known = command_names()
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    raise UsageError(f"there is no command {name!r}; {hint}")


def _load(name: str, target: str) -> Command:
    module, _, attribute = target.partition(":")
    try:
        command = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # a plugin's import can fail in any way, and must not break other commands
        raise SparklogError(
            f"the command {name!r} cannot be loaded from {target}: {type(error).__name__}: {error}; "
            "is the package that brings it installed completely?"
        ) from error
    if not isinstance(command, Command):
        raise SparklogError(f"the command {name!r} cannot be used: {target} is not a sparklog.cli Command")
    return command
