"""How a process ended that is not our child."""

import os
import signal
import subprocess
import sys

import pytest

from sparklog_runtime.stop.process_end import ProcessWatch, end_in_words


@pytest.mark.skipif(sys.platform != "linux", reason="pidfd is Linux's")
@pytest.mark.parametrize(("end", "status"), [("kill -9 $$", -signal.SIGKILL), ("exit 3", 3)])
def test_a_grandchilds_end_is_known_where_the_kernel_tells_it(end, status):
    with subprocess.Popen(
        ["sh", "-c", f"exec 3<&0; sh -c 'read line <&3; {end}' & echo $!; wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        assert child.stdout is not None
        watch = ProcessWatch(int(child.stdout.readline()))
        child.communicate(b"go\n")
    assert watch.status() in (status, None)
    watch.close()


def test_a_living_process_has_no_end():
    watch = ProcessWatch(os.getpid())
    assert watch.status() is None
    watch.close()
    assert watch.status() is None


def test_ends_in_words():
    assert end_in_words(-9) == "was killed by SIGKILL"
    assert end_in_words(-99) == "was killed by signal 99"
    assert end_in_words(1) == "ended with exit code 1"
    assert end_in_words(None) == "has died"
