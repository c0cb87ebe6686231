"""What each part of a run is: its cluster, its faults, how long it lasts.

Spark's executors have no spare place for a broker, where another process could be launched under its id while
the first one lives. So that the standard run has that fault, too, its first part is short and of brokers
outside of Spark, on one machine: for the faults that need spares, among those that need nothing.
"""

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos.clients.workload import CLIENTS, SECURED_CLIENTS, SPARK_CLIENTS, ClientPlan
from chaos.faults.altered_columns import AlterColumns
from chaos.faults.clocks import all_of_clocks
from chaos.faults.crash_points import all_of_crash_points
from chaos.faults.disks import all_of_disks
from chaos.faults.logins import all_of_logins
from chaos.faults.network import all_of_network
from chaos.faults.operators import all_of_operators
from chaos.faults.signals import all_signals
from chaos.faults.stores import all_of_stores
from chaos.machines import shim, store, walls
from chaos.machines.places import PlainPlaces
from chaos.machines.shim import Controlled
from chaos.machines.walls import WalledPlaces
from chaos.nemesis import CRASH_POINTS, INJECTION, LOGINS, ROOM, SPARES, Nemesis
from chaos.part import PartOptions
from chaos.report import Part

BUSY_PARTS: Final = (1, 2)
"""Of every four parts with crash points these have files that come and go."""

SECURED_PARTS: Final = (3,)
"""Of every four parts these are of secured clusters; all are with ``--secured``, none with a mutant."""

SPARES_SHARE: Final = 1 / 12
"""Of a run upon executors so much is its first part, outside of Spark: five minutes of an hour."""

SPARES_SECONDS_MIN: Final = 60.0
"""A run that is not twice as long has no such part."""


def nemeses(walled: WalledPlaces, controlled: Controlled | None = None) -> list[Nemesis]:
    """Every kind there is; most need brokers with machines of their own."""
    controlled = controlled or walled
    return [
        *all_signals(),
        *all_of_network(walled),
        *all_of_disks(walled, controlled),
        *all_of_clocks(walled),
        *all_of_crash_points(controlled),
        *all_of_stores(),
        *all_of_logins(),
        AlterColumns(),
        *all_of_operators(),
    ]


def chosen(
    args: argparse.Namespace,
    walled: WalledPlaces,
    controlled: Controlled | None = None,
    *,
    is_secured: bool = False,
) -> list[Nemesis]:
    """Those that were asked for; an open cluster has no logins that could change."""
    return [
        nemesis
        for nemesis in nemeses(walled, controlled)
        if (args.only is None or nemesis.kind in args.only) and nemesis.kind not in args.without
        if is_secured or LOGINS not in nemesis.needs
    ]


def part_options(args: argparse.Namespace, folder: Path, parts: Sequence[Part]) -> PartOptions:
    """The part that comes after these."""
    options = _upon_what_was_asked_for(args, folder, len(parts) + 1)
    options.seconds = 60 * min(args.part_minutes, args.minutes - minutes_of(parts))
    options.windows_max = args.windows - windows_of(parts)
    if args.in_order:
        return dataclasses.replace(options, first=args.only, is_over_then=True)
    spares = [nemesis.kind for nemesis in options.nemeses if SPARES in nemesis.needs]
    if args.spark != "workers" or not spares:
        return options
    if len(spares) == len(options.nemeses):
        return _outside_of_spark(options)
    is_long = options.seconds >= 2 * SPARES_SECONDS_MIN and options.windows_max > len(spares)
    if parts or not is_long:
        return options
    return dataclasses.replace(
        _outside_of_spark(options),
        first=[*spares, *options.first],
        seconds=min(options.seconds, max(SPARES_SECONDS_MIN, 60 * args.minutes * SPARES_SHARE)),
        windows_max=max(len(spares), int(args.windows * SPARES_SHARE)),
    )


def _upon_what_was_asked_for(args: argparse.Namespace, folder: Path, number: int) -> PartOptions:
    walled, is_secured = WalledPlaces(), _is_secured(args, number)
    needs = frozenset().union(*(nemesis.needs for nemesis in chosen(args, walled)))
    wants_shim = bool(needs & {CRASH_POINTS, INJECTION})
    plain = PlainPlaces(with_shim=wants_shim and shim.probe() is None)
    places = walled if _has_walls(args) else plain
    usable = chosen(args, walled, places, is_secured=is_secured)
    return PartOptions(
        folder=folder,
        seed=args.seed + number - 1,
        seconds=60 * args.part_minutes,
        nemeses=usable,
        first=[nemesis.kind for nemesis in usable if LOGINS in nemesis.needs],
        places=places,
        clients=clients_of(args, is_secured=is_secured),
        brokers=4 if ROOM in needs and args.spark != "none" else 3,
        has_busy_files=CRASH_POINTS in needs and number % 4 in BUSY_PARTS,
        spark=args.spark,
        rate=args.rate,
        settings=settings_of_part(number, args.settings),
        pairs=args.pairs,
        has_store=store.probe() is None,
        is_secured=is_secured,
        mutant=args.mutant,
    )


def _outside_of_spark(options: PartOptions) -> PartOptions:
    """The same upon plain processes, with the faults that these allow everywhere."""
    return dataclasses.replace(
        options,
        spark="none",
        places=PlainPlaces(),
        nemeses=[nemesis for nemesis in options.nemeses if nemesis.needs <= {SPARES, LOGINS}],
        clients=[plan for plan in options.clients if plan not in SPARK_CLIENTS],
        has_busy_files=False,
        brokers=3,
    )


def clients_of(args: argparse.Namespace, *, is_secured: bool = False) -> list[ClientPlan]:
    """Those of the kinds that were asked for, Spark's where brokers run in its executors, and those whom a
    secured cluster denies.
    """
    clients = [plan for plan in CLIENTS if plan.kind in args.clients]
    spark = SPARK_CLIENTS if args.spark == "workers" else ()
    return [*clients, *spark, *(SECURED_CLIENTS if is_secured else ())]


def _is_secured(args: argparse.Namespace, number: int) -> bool:
    return args.secured or (args.mutant is None and number % 4 in SECURED_PARTS)


def settings_of_part(number: int, given: Sequence[str]) -> dict[str, str]:
    """Every other part acknowledges what its disks have, the others what their kernels have."""
    flush = "fsync" if number % 2 else "written"
    return {"log.flush.acks": flush, **dict(setting.split("=", 1) for setting in given)}


def _has_walls(args: argparse.Namespace) -> bool:
    return bool(args.places == "walled" and args.spark != "local" and walls.probe() is None)


def windows_of(parts: Sequence[Part]) -> int:
    return sum(len(part.windows) for part in parts)


def minutes_of(parts: Sequence[Part]) -> float:
    return sum(part.seconds for part in parts) / 60
