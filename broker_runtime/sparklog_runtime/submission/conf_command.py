"""``sparklog conf DIR``: writes the commented settings files that the package carries."""

import argparse
from pathlib import Path
from typing import Final

from sparklog.cli.command import DONE, Command
from sparklog.cli.values import directory
from sparklog.model.errors import SparklogError
from sparklog_runtime.settings.conf_files import CONF_FILES, SERVER_FILE, conf_folder
from sparklog_runtime.voice import say


def write_conf_files(folder: Path) -> list[Path]:
    """Copy the settings files into ``folder``. SparklogError, with nothing written, if it has one already."""
    wanted = [folder / name for name in CONF_FILES]
    there = [path for path in wanted if path.exists()]
    if there:
        raise SparklogError(
            f"{', '.join(map(str, there))} would be overwritten: move it away, or give another directory"
        )
    try:
        for name, path in zip(CONF_FILES, wanted, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as copy:
                copy.write((conf_folder() / name).read_bytes())
    except OSError as error:
        raise SparklogError(f"settings files cannot be written to {folder}: {error.strerror}") from error
    return wanted


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=directory, metavar="DIR", help="where to write the files")


def _run(args: argparse.Namespace) -> int:
    written = write_conf_files(args.directory)
    say(f"wrote {', '.join(map(str, written))}")
    say(f"set zookeeper.connect and log.dirs in {args.directory / SERVER_FILE}; then: sparklog submit --help")
    return DONE


conf_command: Final = Command(
    name="conf",
    summary="write the commented settings files for brokers on a Spark cluster",
    add_arguments=_add_arguments,
    run=_run,
    description=f"Write {', '.join(CONF_FILES)} into DIR, with every setting that matters and its default.\n"
    "Those in monitoring/ are for Prometheus and Grafana. Nothing is overwritten.",
    examples=("sparklog conf conf",),
)
