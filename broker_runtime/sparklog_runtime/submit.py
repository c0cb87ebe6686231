"""The program that ``spark-submit`` runs: brokers of a cluster of its own.

    spark-submit --master spark://HOST:7077 --properties-file conf/spark-defaults.conf \\
        .../sparklog_runtime/submit.py --brokers 3 --settings conf/server.properties

``sparklog submit`` makes that command, and runs it (``sparklog_runtime/submission``). Spark chooses the
Python that runs this file, and that need not be the one whose package the file is in.
"""

import os
import shlex
import sys
from pathlib import Path


def main() -> int:
    """Run the driver; its exit status. A Python without sparklog is reported with the remedy."""
    # Python searches the script's own folder first, and our module names there may hide other packages'.
    beside = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != beside]
    try:
        # here, so that a Python without sparklog gets a message and no traceback
        from sparklog_runtime.submission.driver import run_driver
    except ModuleNotFoundError as error:
        _say_what_is_missing(error)
        return 2
    return run_driver()


def _say_what_is_missing(error: ModuleNotFoundError) -> None:
    own = next((path for path in _pythons_beside(Path(__file__)) if path.exists()), Path("/DIR/bin/python"))
    conf = shlex.quote(f"spark.pyspark.python={own}")
    print(
        f"sparklog: {sys.executable}, with which Spark runs the driver, has no module {error.name!r}; "
        f"add to spark-submit: --conf {conf}, the Python that sparklog is installed for",
        file=sys.stderr,
    )


def _pythons_beside(file: Path) -> list[Path]:
    """Where a virtual environment with this file in it has its Python."""
    return [folder / "bin" / "python" for folder in file.resolve().parents]


if __name__ == "__main__":
    sys.exit(main())
