"""Every system call with which storage changes its files, as a point where the process or the power ends.

tracer.py       runs a child and stops it before each such call (ptrace and seccomp, no package needed)
calls.py        the calls, decoded into what they do to which file
disk_states.py  what a power cut may leave of the calls so far
scenarios.py    what the child does: produce, roll, truncate, compact, recover, and so on
promises.py     what must be found afterwards, from what the child told before it ended
judge.py        recovers with the shipped code and compares
explore.py      every point of a scenario
__main__.py     the command: `python -m crash_points`
"""
