"""Files with secrets are read as Java reads properties."""

import pytest

from sparklog.credentials.properties_text import properties_of_text
from sparklog.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("# comment\n  ! comment\n\n", {}),
        ("a=1\nb:2\nc 3\nd\n", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("  a  =  b c  \n", {"a": "b c  "}),
        ("a==b", {"a": "=b"}),
        ("a = : b", {"a": ": b"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=one\\\n   two\\\n\tthree", {"a": "onetwothree"}),
        ("a=end\\\\\nb=2", {"a": "end\\", "b": "2"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        (r"with\ blank\=s=x\ty\n\z", {"with blank=s": "x\ty\nz"}),
        (r"a=\u00e9\ud834\udd1e", {"a": "é𝄞"}),
        ("a=last\\", {"a": "last"}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text: str, found: dict[str, str]) -> None:
    assert properties_of_text(text) == found


def test_a_broken_escape_is_refused_without_showing_the_line() -> None:
    with pytest.raises(ConfigError) as refused:
        properties_of_text("a=planted\\u12")
    assert "'\\u' without the four digits" in str(refused.value)
    assert "planted" not in str(refused.value)
