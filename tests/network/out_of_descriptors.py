"""An acceptor in a process that has no descriptor left, and then has some again: a program of its own.

python -m tests.network.out_of_descriptors before|after    (the start of the acceptor's thread)

The limit is the whole process's. In the tests' own process it would fail the disks of the shared cluster.
Prints the hosts that were accepted in the end.
"""

import logging
import os
import resource
import socket
import sys

from sparklog.network.acceptor import Acceptor, Listener, bind
from tests.waiting import until


class Warnings(logging.Handler):
    """Counts the acceptor's warnings, one for each attempt that failed."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1


def main(when: str) -> None:
    logging.basicConfig(level=logging.WARNING)
    warnings = Warnings()
    logging.getLogger().addHandler(warnings)
    accepted: list[str] = []

    def welcome(client: socket.socket, host: str) -> None:
        accepted.append(host)
        client.close()

    sock = bind(Listener("127.0.0.1", 0))
    acceptor = Acceptor(Listener("127.0.0.1", 0), sock, name="under-test", welcome=welcome)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if when == "after":
        acceptor.start()
    with socket.socket() as client:
        free = os.open(os.devnull, os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
        if when == "before":
            acceptor.start()
        client.connect(("127.0.0.1", acceptor.port))
        until(lambda: warnings.count >= 2, "the acceptor to try again")
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        until(lambda: accepted, "the acceptor to accept")
    acceptor.stop()
    print(*accepted)


if __name__ == "__main__":
    main(sys.argv[1])
