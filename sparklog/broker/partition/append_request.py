"""What a leader is asked to append."""

from typing import NamedTuple

from sparklog.broker.partition.batches import Batches
from sparklog.core.producers.verification import VerificationGuard
from sparklog.model.append_origin import AppendOrigin


class AppendRequest(NamedTuple):
    """Validated ``batches`` that stand in ``records``. A named tuple: each produce makes one."""

    records: bytearray | memoryview
    """Stamped in place: base offset and leader epoch, which no CRC covers."""
    batches: Batches
    acks: int
    origin: AppendOrigin = AppendOrigin.CLIENT
    leader_epoch: int | None = None
    """Append only if this replica leads in just this epoch; None: in whichever it leads."""
    after_refusal: bool = False
    """Whether a batch was refused a moment ago on the connection of these batches."""
    guard: VerificationGuard | None = None
    """The guard of the verification that the batches passed."""
    connection: int | None = None
    """The connection that they came over."""
