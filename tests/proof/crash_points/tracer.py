"""Runs a function in a forked child and stops it before every system call that may change a file.

Why not strace: the child is forked from a process that has imported everything, so that a point costs some
milliseconds and not a start of Python, and no package has to be installed. A seccomp filter in the child lets
all other calls pass at full speed; ptrace hands the chosen ones to us *before* the kernel does them, and a
child that is killed there has not done them. The numbers of the calls are those of x86-64 and of 64-bit ARM.
"""

import ctypes
import os
import platform
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

NUMBERS = {
    "x86_64": """
        write 1 open 2 mmap 9 pwrite64 18 writev 20 msync 26 sendfile 40 fsync 74 fdatasync 75 truncate 76
        ftruncate 77 rename 82 mkdir 83 rmdir 84 creat 85 link 86 unlink 87 symlink 88 sync 162 openat 257
        mkdirat 258 unlinkat 263 renameat 264 linkat 265 symlinkat 266 splice 275 sync_file_range 277
        fallocate 285 pwritev 296 syncfs 306 renameat2 316 copy_file_range 326 pwritev2 328
        io_uring_enter 426 openat2 437
    """,
    "aarch64": """
        mkdirat 34 unlinkat 35 symlinkat 36 linkat 37 renameat 38 truncate 45 ftruncate 46 fallocate 47
        openat 56 write 64 writev 66 pwrite64 68 pwritev 70 sendfile 71 splice 76 sync 81 fsync 82
        fdatasync 83 sync_file_range 84 mmap 222 msync 227 syncfs 267 renameat2 276 copy_file_range 285
        pwritev2 287 io_uring_enter 426 openat2 437
    """,
}
ONLY_WITH_BITS = {
    "open": (1, os.O_CREAT | os.O_TRUNC),
    "openat": (2, os.O_CREAT | os.O_TRUNC),
    "mmap": (3, 1),
}
"""Which argument must have one of which bits for the call to matter; of ``mmap`` MAP_SHARED."""

_TRACEME, _CONT, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 7, 0x4200, 0x420E
_EVENT_CLONES, _EVENT_SECCOMP = (1, 2, 3), 7
_OPTIONS = 0x02 | 0x04 | 0x08 | 0x80 | 0x100000
"""Follow forks, vforks and threads; stop where seccomp says so; the child dies with its tracer."""

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER = 22, 38, 2
_LOAD, _IF_EQUAL, _IF_BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_TRACE, _ALLOW = 0x7FF00000, 0x7FFF0000
_WALL = 0x40000000
_INFO = struct.Struct("=B3xIQQ Q6Q I4x")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


class CannotTrace(Exception):  # noqa: N818 (says what is the case)
    """This machine does not let us trace a child; the text says why."""


class ChildFailed(Exception):  # noqa: N818 (says what is the case)
    """The traced function raised; the text is its traceback."""


@dataclass(frozen=True, slots=True)
class SystemCall:
    """A call that the kernel has not done yet."""

    pid: int
    name: str
    arguments: tuple[int, ...]

    def text(self, address: int) -> str:
        """The path at ``address`` of the child's memory."""
        found = b""
        while b"\0" not in found:
            page_rest = 4_096 - (address + len(found)) % 4_096
            found += self.memory(address + len(found), page_rest)
        return os.fsdecode(found[: found.index(b"\0")])

    def memory(self, address: int, length: int) -> bytes:
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            data = memory.read(length) or b""
        if len(data) < length:
            raise CannotTrace(f"cannot read {length} bytes of process {self.pid} at {address:#x}")
        return data

    def opened(self, descriptor: int) -> str:
        """The path of an open file of the child."""
        return os.readlink(f"/proc/{self.pid}/fd/{descriptor}")

    def position(self, descriptor: int) -> int:
        """Where a plain ``write`` would go; the end for a file that is opened for appending."""
        with open(f"/proc/{self.pid}/fdinfo/{descriptor}", encoding="ascii") as info:
            fields = dict(line.split(":", 1) for line in info if ":" in line)
        if int(fields["flags"], 8) & os.O_APPEND:
            return os.stat(f"/proc/{self.pid}/fd/{descriptor}").st_size
        return int(fields["pos"])


OnCall = Callable[[SystemCall], bool]
"""What to do at a call; True ends the child there with SIGKILL."""


def run(act: Callable[[], None], on_call: OnCall) -> bool:
    """Run ``act`` in a child; whether it came to its end. ChildFailed if it raised."""
    trouble, trouble_end = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        os.close(trouble)
        _be_traced(act, trouble_end)
    os.close(trouble_end)
    with open(trouble, "rb") as told:
        try:
            status = _follow(pid, on_call)
        except BaseException:
            _end(pid)
            raise
        if status is None:
            return False
        text = told.read().decode()
    if text.startswith("cannot trace"):
        raise CannotTrace(text)
    if text or status:
        raise ChildFailed(text or f"the child ended with status {status}")
    return True


def _be_traced(act: Callable[[], None], trouble: int) -> None:
    """The child's life."""
    status = 1
    try:
        os.set_inheritable(trouble, False)
        if _libc.ptrace(_TRACEME, 0, None, None):
            os.write(trouble, f"cannot trace: {os.strerror(ctypes.get_errno())}".encode())
            os._exit(1)
        os.kill(os.getpid(), signal.SIGSTOP)
        _install_filter()
        act()
        status = 0
    except BaseException:  # noqa: BLE001 (told to the parent)
        os.write(trouble, traceback.format_exc().encode()[-60_000:])
    os._exit(status)


def _follow(pid: int, on_call: OnCall) -> int | None:
    """Go with the child to its end; its status, or None if it was killed at a call."""
    names = {number: name for name, number in _numbers().items()}
    info = ctypes.create_string_buffer(_INFO.size)
    is_set_up = False
    while True:
        stopped, status = os.waitpid(-1, _WALL)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if stopped == pid:
                return os.waitstatus_to_exitcode(status)
            continue
        if not is_set_up and stopped == pid:
            _ptrace(_SETOPTIONS, pid, 0, _OPTIONS)
            is_set_up = True
        event, number = status >> 16, os.WSTOPSIG(status)
        if event == _EVENT_SECCOMP:
            _ptrace(_GET_SYSCALL_INFO, stopped, _INFO.size, ctypes.addressof(info))
            fields = _INFO.unpack(info.raw)
            if on_call(SystemCall(stopped, names[fields[4]], fields[5:11])):
                _end(pid)
                return None
        _ptrace(_CONT, stopped, 0, 0 if event or number in (signal.SIGSTOP, signal.SIGTRAP) else number)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    while True:
        try:
            ended, status = os.waitpid(-1, _WALL)
        except ChildProcessError:
            return
        if ended == pid and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
            return


def _numbers() -> dict[str, int]:
    machine = platform.machine()
    if sys.platform != "linux" or machine not in NUMBERS:
        raise CannotTrace(f"the numbers of system calls of {sys.platform} on {machine} are not known here")
    words = NUMBERS[machine].split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


def _ptrace(request: int, pid: int, address: int, data: int) -> None:
    if _libc.ptrace(request, pid, address, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace request {request:#x}: {os.strerror(number)}")


def _install_filter() -> None:
    """Classic BPF: load the call's number, compare with ours one by one, let the rest pass."""
    program: list[tuple[int, int, int, int]] = [(_LOAD, 0, 0, 0)]
    for name, number in _numbers().items():
        if name in ONLY_WITH_BITS:
            argument, bits = ONLY_WITH_BITS[name]
            program += [
                (_IF_EQUAL, 0, 4, number),
                (_LOAD, 0, 0, 16 + 8 * argument),
                (_IF_BITS, 0, 1, bits),
                (_RETURN, 0, 0, _TRACE),
                (_RETURN, 0, 0, _ALLOW),
            ]
        else:
            program += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _TRACE)]
    program.append((_RETURN, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    done = _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    if not done or _libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.c_void_p(ctypes.addressof(header)), 0, 0):
        raise CannotTrace(f"cannot trace: seccomp: {os.strerror(ctypes.get_errno())}")
