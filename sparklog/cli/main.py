"""The entry point of the ``sparklog`` program. Ctrl-C ends it quietly even while it is loading.

Exit status: 0 done; 1 failed, with the reason on standard error; 2 wrong usage; 130 interrupted by Ctrl-C
(128 and the signal's number, as in shells). Commands that run until Ctrl-C, such as ``start``, then end with
0.

This module imports nothing heavy, because until ``main`` runs Ctrl-C prints a traceback.
"""

import os
import signal
import sys

INTERRUPTED = 128 + signal.SIGINT


def main(argv: "list[str] | tuple[str, ...] | None" = None) -> int:
    """Run the program; its exit status. Pass ``argv`` to run the program in an existing process."""
    if argv is None:
        _end_at_once_on_interrupt(is_wanted=True)
    try:
        from sparklog.cli.program import run_program

        return run_program(
            list(sys.argv[1:] if argv is None else argv),
            on_loaded=lambda: _end_at_once_on_interrupt(is_wanted=False),
        )
    except KeyboardInterrupt:
        _say_interrupted()
        return INTERRUPTED


def _end_at_once_on_interrupt(*, is_wanted: bool) -> None:
    """Exit at once on Ctrl-C while the program loads, because an imported library could swallow or print a
    KeyboardInterrupt, and there is nothing to clean up yet. Other handlers of SIGINT stay in place.
    """
    if is_wanted and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)
    elif not is_wanted and signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_at_once(_number: int, _frame: object) -> None:
    _say_interrupted()
    os._exit(INTERRUPTED)


def _say_interrupted() -> None:
    try:
        os.write(2, b"sparklog: interrupted\n")
    except OSError:  # standard error is closed; the exit status is enough
        return


if __name__ == "__main__":
    sys.exit(main())
