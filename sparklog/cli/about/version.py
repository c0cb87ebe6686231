"""``sparklog version``: what ``sparklog --version`` prints."""

import argparse
from typing import Final

from sparklog import __version__
from sparklog.cli.command import DONE, Command

VERSION_LINE: Final = f"sparklog {__version__}"


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(_arguments: argparse.Namespace) -> int:
    print(VERSION_LINE)
    return DONE


COMMAND: Final = Command(
    name="version", summary="print the version of this program", add_arguments=add_arguments, run=run
)
