import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sparklog.records.kafka.encode import encode
from sparklog.records.kafka.frames import frames_of

RECORDS = st.lists(
    st.tuples(
        st.integers(-(2**61), 2**61) | st.integers(-200, 200),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
    ),
    min_size=1,
    max_size=20,
)


@given(records=RECORDS, gaps=st.lists(st.integers(1, 70_000), min_size=20, max_size=20))
def test_frames_are_the_bytes_that_one_record_after_the_other_has(records, gaps):
    offset_deltas = np.cumsum(np.array(gaps[: len(records)], np.int64))
    times_ms = np.array([time for time, _, _ in records], np.int64)
    keys, values = ([record[nth] for record in records] for nth in (1, 2))
    frames = frames_of(
        offset_deltas, times_ms - times_ms[:1], pa.array(keys, pa.binary()), pa.array(values, pa.binary())
    )
    singles = [
        bytes(encode(offset_deltas[nth : nth + 1], np.array([0]), [key], [value], [[]]))
        for nth, (key, value) in enumerate(zip(keys, values, strict=True))
    ]
    together = encode(offset_deltas, times_ms, keys, values, [[]] * len(records))
    assert bytes(frames.payload) == bytes(together)
    assert len(frames.ends) == len(singles)


def test_each_end_is_that_of_its_record_and_keys_may_be_missing():
    values = pa.array([b"a" * 100, b"", b"c"], pa.binary())
    frames = frames_of(np.arange(3), np.zeros(3, np.int64), None, values)
    begins = [0, *frames.ends.tolist()]
    for nth, value in enumerate([b"a" * 100, b"", b"c"]):
        expected = encode(np.array([nth]), np.zeros(1, np.int64), [None], [value], [[]])
        assert bytes(frames.payload[begins[nth] : begins[nth + 1]]) == bytes(expected)
