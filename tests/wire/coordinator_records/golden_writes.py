"""Records of atomic writes and agreements, written down from their format by hand."""

import uuid

from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.write_coordinator.records import (
    Agreement,
    AgreementKey,
    Head,
    HeadKey,
    Member,
    MemberKey,
)
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.write_outcomes import MemberState

HEAD_KEY = HeadKey("query-7")
HEAD_KEY_BYTES = b"\x27\x10\x08query-7\x00"
HEAD = Head(
    state=AppState.PREPARED_COMMIT,
    version=9,
    write_number=1_003,
    committed_version=-1,
    timeout_ms=300_000,
    is_plain=True,
    start_ms=256,
    last_update_ms=512,
    winners=frozenset({2, 0}),
    aborted_runs=("old", "older"),
)
HEAD_BYTES = bytes.fromhex(
    "0000" "02" "0000000000000009" "00000000000003eb" "ffffffffffffffff" "000493e0" "01"
    "0000000000000100" "0000000000000200" "03" "00000000" "00000002" "03" "046f6c64" "066f6c646572" "00"
)  # fmt: skip
MEMBER_KEY = MemberKey("query-7", 1_003, 2)
MEMBER_KEY_BYTES = b"\x27\x11\x08query-7" + bytes.fromhex("00000000000003eb0000000200")
MEMBER = Member(MemberState.FINISHED, "run", "a", (TransactionTopic("orders", uuid.UUID(int=1), (0, 5)),))
MEMBER_BYTES = bytes.fromhex(
    "0000" "01" "0472756e" "0261" "02" "076f7264657273" "00000000000000000000000000000001"
    "03" "00000000" "00000005" "00" "00"
)  # fmt: skip
AGREEMENT_KEY = AgreementKey("cut-7")
AGREEMENT_KEY_BYTES = b"\x27\x12\x06cut-7\x00"
AGREEMENT = Agreement(b"\xca\xfe", 256)
AGREEMENT_BYTES = bytes.fromhex("0000000000000000010003cafe00")
