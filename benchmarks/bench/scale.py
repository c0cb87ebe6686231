"""How much of everything a run does."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything; the quick one is for trying the benchmarks themselves."""

    rows: int
    rounds: int
    short_rounds: int
    """Rounds of requests of which thousands go into one."""
    short_round_s: float
    produced_records: int
    latency_s: float
    latency_spells: int
    kills: int
    starts: int
    fault_session_ms: int
    real_partitions: tuple[int, ...]
    stub_partitions: tuple[int, ...]
    topics: int
    recovered_bytes: tuple[int, ...]
    appended_bytes: int
    compacted_mb: int
    group_members: int
    group_count: int
    commit_s: float
    pipeline_transactions: int
    aborted: int
    committers: int
    micro_batches: int
    write_members: int
    remote_mb: int
    remote_segments: int
    typed_rows: int
    typed_rounds: int
    typed_topics: int
    pairs: int
    """How often something is compared with itself, one thing switched on."""
    flood_s: float
    page_partitions: int
    overview_partitions: int
    rules: int
    logins: int
    quota_s: float


FULL: Final = Scale(
    rows=1_000_000,
    rounds=3,
    short_rounds=16,
    short_round_s=1,
    produced_records=100_000,
    latency_s=12,
    latency_spells=3,
    kills=3,
    starts=2,
    fault_session_ms=6_000,
    real_partitions=(1_000, 4_000),
    stub_partitions=(1_000, 4_000, 10_000),
    topics=1_000,
    recovered_bytes=(1_000_000_000, 8_000_000_000),
    appended_bytes=500_000_000,
    compacted_mb=100,
    group_members=50,
    group_count=20,
    commit_s=15,
    pipeline_transactions=100,
    aborted=100_000,
    committers=12,
    micro_batches=60,
    write_members=200,
    remote_mb=400,
    remote_segments=1_000,
    typed_rows=2_000_000,
    typed_rounds=2,
    typed_topics=1_000,
    pairs=7,
    flood_s=5,
    page_partitions=1_000,
    overview_partitions=10_000,
    rules=10_000,
    logins=200,
    quota_s=30,
)
QUICK: Final = Scale(
    rows=100_000,
    rounds=1,
    short_rounds=2,
    short_round_s=1,
    produced_records=10_000,
    latency_s=8,
    latency_spells=1,
    kills=1,
    starts=1,
    fault_session_ms=4_000,
    real_partitions=(300,),
    stub_partitions=(1_000, 4_000),
    topics=200,
    recovered_bytes=(100_000_000,),
    appended_bytes=50_000_000,
    compacted_mb=20,
    group_members=6,
    group_count=6,
    commit_s=4,
    pipeline_transactions=20,
    aborted=1_000,
    committers=6,
    micro_batches=15,
    write_members=20,
    remote_mb=60,
    remote_segments=60,
    typed_rows=50_000,
    typed_rounds=1,
    typed_topics=50,
    pairs=1,
    flood_s=2,
    page_partitions=100,
    overview_partitions=300,
    rules=300,
    logins=40,
    quota_s=10,
)


def say(text: str) -> None:
    print(text, flush=True)
