"""The format page's examples: other people's readers open a file that the code wrote, as they stand there."""

import re
from pathlib import Path

import pytest

from sparklog.records.envelope import Compression
from tests.records.remote_segment.segments import BARE, PLAIN, append_timed, build, make
from tests.records.remote_segment.typed_segments import QUAKES, build_typed, typed

PAGE = Path(__file__).parents[3] / "docs" / "format" / "remote-segment.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
EXAMPLES = EXAMPLE.findall(PAGE.read_text())


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """orders.arrow: batches of every compression and kind, with and without columns, five rows each; and
    quakes.arrow of a typed topic.
    """
    batches = [
        make("arrow", Compression.NONE, PLAIN, 100),
        make("arrow", Compression.ZSTD, PLAIN, 200),
        make("records", Compression.GZIP, PLAIN, 300),
    ]
    (tmp_path / "orders.arrow").write_bytes(build(batches).arrow)
    (tmp_path / "quakes.arrow").write_bytes(build_typed([typed(QUAKES, 100)]).arrow)
    monkeypatch.chdir(tmp_path)


def test_the_page_has_an_example_for_each_reader() -> None:
    for library in ("pyarrow", "pandas", "polars", "duckdb"):
        assert any(f"import {library}" in code for code, _ in EXAMPLES), library


@pytest.mark.parametrize(("code", "output"), EXAMPLES)
@pytest.mark.usefixtures("files")
def test_an_example_prints_what_the_page_says(
    code: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(code, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == output


def test_every_reader_gets_nulls_for_absent_columns(tmp_path: Path) -> None:
    import duckdb
    import pandas
    import polars
    import pyarrow.dataset

    batches = [
        change(make("arrow", codec, BARE, 100 * nth))
        for nth, (codec, change) in enumerate(
            (codec, change)
            for codec in (Compression.NONE, Compression.LZ4, Compression.ZSTD)
            for change in (bytes, append_timed)
        )
    ]
    path = tmp_path / "bare.arrow"
    path.write_bytes(build(batches).arrow)
    bare = duckdb.from_arrow(pyarrow.dataset.dataset(path, format="ipc"))
    counts = bare.aggregate("count(*), count(key), count(headers), count(timestamp)")
    assert counts.fetchall() == [(18, 0, 0, 18)]
    pandas_rows = pandas.read_feather(path)
    assert pandas_rows["key"].isna().all()
    assert polars.read_ipc(path)["headers"].null_count() == 18
    times = polars.read_ipc(path)["timestamp"].dt.epoch("ms").unique().sort().to_list()
    assert times == [1_000, 123_456]
