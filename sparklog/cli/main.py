"""The ``sparklog`` program, from its first moment on: Ctrl-C ends it quietly even while it still loads.

Exit status: 0 done, 1 it failed and standard error says why, 2 wrong usage, 130 (128 and the signal's number,
as shells have it) Ctrl-C cut it short. Commands that run until Ctrl-C, as ``start`` does, end with 0 then.

Nothing heavy is imported here: until ``main`` runs, Ctrl-C is a traceback.
"""

import os
import signal
import sys

INTERRUPTED = 128 + signal.SIGINT


def main(argv: "list[str] | tuple[str, ...] | None" = None) -> int:
    """Run the program; its exit status. ``argv`` is given by those who run it in their own process."""
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
    """A KeyboardInterrupt may end up anywhere in a library that is being imported, and be lost or printed
    there; and there is nothing to clean up yet. A signal that is ignored, or another's, is left alone.
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
    except OSError:  # standard error is closed; the status tells
        return


if __name__ == "__main__":
    sys.exit(main())
