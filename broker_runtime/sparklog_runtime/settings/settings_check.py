"""Settings with which no broker could live, found before any broker starts.

A broker is a Spark task that never ends and hardly ever talks to Spark. Several features of Spark take such
a task for a stuck one, start a second copy of it, or take its executor away; each would look like random
broker deaths later. So a start refuses them, all in one message, with what to change. The addresses of Spark
and ZooKeeper are looked at too, as both would say what is wrong late and at length.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

from sparklog.model.errors import ConfigError

BROKER_MEMORY_MIB_MIN: Final = 2_048
"""Address space that one broker may need: thread stacks, Arrow buffers, mapped indexes."""

_MEMORY: Final = re.compile(r"(\d+)([kmgtp]?)b?", re.IGNORECASE)
_MIB_PER_UNIT: Final = {"k": 1 / 1024, "": 1.0, "m": 1.0, "g": 1024.0, "t": 1024.0**2, "p": 1024.0**3}
_ADDRESS: Final = re.compile(r"(?:\[[0-9a-fA-F:.%]+\]|[^\s:/,\[\]]+):(\d{1,5})")
_SPARK: Final = re.compile(r"spark://[^\s/]+:\d{1,5}(?:,[^\s/]+:\d{1,5})*|yarn|k8s://\S+")
_LOCAL: Final = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?")
_LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")


def master_problem(master: str) -> str | None:
    """Why Spark would not understand this master URL, with the forms that it does; None if it would."""
    if any(form.fullmatch(master) for form in (_LOCAL, _LOCAL_CLUSTER, _SPARK)):
        return None
    return (
        f"{master!r} is no master URL of Spark; give local[N], local-cluster[WORKERS,CORES,MIB], "
        "spark://HOST:PORT, yarn or k8s://HOST:PORT"
    )


def zookeeper_problem(zookeeper: str) -> str | None:
    """Why this is no ZooKeeper's address, with one that is; None if it is one."""
    addresses, slash, chroot = zookeeper.partition("/")
    for address in addresses.split(","):
        where = repr(address) if address == zookeeper else f"{address!r} of {zookeeper!r}"
        found = _ADDRESS.fullmatch(address)
        if found is None:
            return f"{where} is not HOST:PORT; give HOST:PORT[/chroot], as in 127.0.0.1:2181"
        if not 0 < int(found[1]) < 65_536:
            return f"{where} has no port from 1 to 65535; ZooKeeper's own is 2181"
    if slash and (not chroot or "" in chroot.split("/")):
        return f"'/{chroot}' of {zookeeper!r} is no chroot; give HOST:PORT/NAME, or HOST:PORT alone"
    return None


def is_local(master: str) -> bool:
    """Whether driver and tasks share one JVM (``local``, ``local[N]``), where no resource profile works."""
    return _LOCAL.fullmatch(master) is not None


def _is_true(conf: Mapping[str, str], name: str) -> bool:
    return conf.get(name, "false").strip().lower() == "true"


def memory_mib(text: str) -> float | None:
    """An amount of memory as Spark writes it, in MiB; None if it is none."""
    match = _MEMORY.fullmatch(text.strip())
    return int(match[1]) * _MIB_PER_UNIT[match[2].lower()] if match else None


def _local_threads(master: str) -> int:
    match = _LOCAL.fullmatch(master)
    assert match is not None, master
    if match[1] is None:
        return 1
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1])


def _switch_problems(conf: Mapping[str, str]) -> list[str]:
    """Features that must be off, each with the harm it does."""
    harm = {
        "spark.dynamicAllocation.enabled": "takes executors away from running brokers",
        "spark.speculation": "starts a second copy of a broker that runs longer than other tasks",
        "spark.python.worker.killOnIdleTimeout": "kills brokers, which are silent towards Spark",
    }
    return [f"{name}=true {why}: set {name}=false" for name, why in harm.items() if _is_true(conf, name)]


def executor_cores(conf: Mapping[str, str]) -> int:
    """Cores of an executor; ConfigError where that is no number of cores."""
    text = conf.get("spark.executor.cores", "1").strip()
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ConfigError(f"spark.executor.cores={text!r} is no number of cores: set it to 1 or more")
    return int(text)


def _cores_max_problems(conf: Mapping[str, str], master: str, brokers: int) -> list[str]:
    """On a standalone cluster the application's cores must reach for an executor to each broker."""
    text = conf.get("spark.cores.max", "")
    if not master.startswith("spark://") or not text.strip().isdigit():
        return []
    needed = brokers * executor_cores(conf)
    if int(text) >= needed:
        return []
    return [
        f"spark.cores.max={text} allows fewer than {brokers} executors, one for each broker, with "
        f"spark.executor.cores={executor_cores(conf)}: set spark.cores.max={needed} or more"
    ]


def _slot_problems(conf: Mapping[str, str], master: str, brokers: int) -> list[str]:
    task_cpus = int(conf.get("spark.task.cpus", "1"))
    if is_local(master):
        slots = _local_threads(master) // task_cpus
        if slots < brokers + 1:
            return [
                f"master {master} runs {slots} tasks at a time, but {brokers} brokers need "
                f"{brokers + 1}: set --master local[{(brokers + 1) * task_cpus}] or more"
            ]
        return []
    cluster = _LOCAL_CLUSTER.fullmatch(master)
    if cluster is not None and int(cluster[1]) < brokers:
        return [
            f"master {master} has {cluster[1]} executors for {brokers} brokers, one each: "
            f"set local-cluster[{brokers},{cluster[2]},...]"
        ]
    if cluster is None and "spark.executor.cores" not in conf:
        return [
            "spark.executor.cores is not set, so Spark cannot place one broker on each executor: "
            "set spark.executor.cores=3, say (two for the broker, one for data)"
        ]
    return []


def _memory_problems(conf: Mapping[str, str]) -> list[str]:
    text = conf.get("spark.executor.pyspark.memory")
    if text is None:
        return []
    total_mib = memory_mib(text)
    if total_mib is None:
        return [f"spark.executor.pyspark.memory={text} is no amount of memory: set it to 4g, say"]
    cores = executor_cores(conf)
    share_mib = total_mib / cores
    if total_mib > 0 and share_mib < BROKER_MEMORY_MIB_MIN:
        return [
            f"spark.executor.pyspark.memory={text} over {cores} cores leaves a broker {share_mib:.0f} MiB "
            f"of address space, and Spark enforces it: unset it, or set at least "
            f"{BROKER_MEMORY_MIB_MIN * cores}m"
        ]
    return []


def settings_problems(conf: Mapping[str, str], master: str, brokers: int) -> list[str]:
    """What in these Spark settings would kill brokers; each entry ends with what to change."""
    return [
        *_switch_problems(conf),
        *_slot_problems(conf, master, brokers),
        *_cores_max_problems(conf, master, brokers),
        *_memory_problems(conf),
    ]


def check_settings(conf: Mapping[str, str], master: str, brokers: int) -> None:
    """Raise ConfigError with every problem there is."""
    problems = settings_problems(conf, master, brokers)
    if problems:
        raise ConfigError("Spark settings that brokers cannot live with: " + "; ".join(problems))


def settings_warnings(conf: Mapping[str, str]) -> list[str]:
    """Settings that work, at a price worth a line."""
    warnings = []
    if _is_true(conf, "spark.excludeOnFailure.enabled"):
        warnings.append(
            "spark.excludeOnFailure.enabled=true: an executor whose broker died may get no new one for "
            "an hour"
        )
    return warnings


def quiet_warnings(conf: Mapping[str, str], master: str) -> list[str]:
    """Settings that are worth no line at a start, and that the doctor names."""
    attempts = conf.get("spark.task.maxFailures", "4").strip()
    if is_local(master) or attempts == "1":
        return []
    return [
        f"spark.task.maxFailures={attempts}: Spark's own second attempt keeps a dead broker's executor busy, "
        "while the driver launches that broker elsewhere; set spark.task.maxFailures=1"
    ]
