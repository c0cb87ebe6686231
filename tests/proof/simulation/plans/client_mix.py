"""Which clients a seed has beside its idempotent producers and its consumers."""

from dataclasses import dataclass

from simulation.schedule import dice


@dataclass(frozen=True, slots=True)
class ClientMix:
    """``plain_acks``: the acks of each producer without idempotence; ``crash_every_ms``: how long one of the
    others lives before it crashes and is replaced, on average, 0: for ever. ``arrow_share``: of their batches
    are Arrow; half of the consumers take those then, the others are given records.
    """

    plain_acks: tuple[int, ...] = ()
    crash_every_ms: float = 0.0
    has_rereaders: bool = False
    has_askers: bool = False
    arrow_share: float = 0.0


NO_MIX = ClientMix()


def draw_mix(seed: int, *, is_compacted: bool) -> ClientMix:
    """Compacted topics take keys only, and have no producers but those that draw them."""
    draw = dice(seed, "mix")
    plain = draw.choice(((), (), (0,), (1,), (-1,), (0, -1), (1, 0)))
    return ClientMix(
        plain_acks=() if is_compacted else plain,
        crash_every_ms=draw.choice((0.0, 0.0, 1_500.0, 4_000.0)),
        has_rereaders=draw.random() < 0.5,
        has_askers=draw.random() < 0.5,
        arrow_share=dice(seed, "arrow").choice((0.0, 0.0, 0.5, 0.9)),
    )
