"""Whether a process of this machine runs is known at once; of other machines nothing is known."""

import os
import subprocess
import sys

from sparklog.cli.served_processes import Served, is_alive, is_this_machine, served_processes


def test_a_process_that_ended_is_gone_collected_or_not() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(child.pid)
    assert not is_alive(child.pid)
    assert is_alive(os.getpid())


def test_only_this_machines_addresses_are_this_machine() -> None:
    assert is_this_machine("127.0.0.1")
    assert not is_this_machine("192.0.2.1")
    assert not Served("broker 1", "192.0.2.1", 2**22 + 1).is_gone()


def test_processes_are_taken_from_the_cluster_file_as_far_as_it_names_them() -> None:
    content = {
        "controllers": [{"pid": 7, "host": "127.0.0.1"}],
        "brokers": [{"id": 2, "pid": 8, "host": "127.0.0.1"}, {"id": 3, "pid": None, "host": "127.0.0.1"}],
    }
    assert served_processes(content) == [
        Served("a controller", "127.0.0.1", 7),
        Served("broker 2", "127.0.0.1", 8),
    ]
    assert served_processes({}) == []
