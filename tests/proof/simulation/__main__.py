"""``python -m simulation``, which ``scripts/simulate`` runs: the command in ``command.py``.

While modules load, Ctrl-C ends the process at once: as an exception it could get lost in a library's import.
"""

import signal
import sys


def main() -> int:
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from simulation import command

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return command.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
