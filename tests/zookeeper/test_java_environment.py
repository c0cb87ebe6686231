"""A JVM gets UTF-8 where it would take file names for ASCII, and the user's locale elsewhere."""

import pytest

from sparklog.zookeeper.java_environment import java_environment


@pytest.mark.parametrize(
    "environment",
    [{}, {"LANG": "C"}, {"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, {"LC_ALL": "", "LC_CTYPE": "C"}],
)
def test_under_the_locale_c_it_gets_utf_8(environment: dict[str, str]) -> None:
    assert java_environment({"A": "b", **environment})["LC_ALL"] == "C.UTF-8"


@pytest.mark.parametrize(
    "environment",
    [{"LANG": "de_DE.UTF-8"}, {"LANG": "C", "LC_CTYPE": "C.UTF-8"}, {"LC_ALL": "de_DE", "LANG": "C"}],
)
def test_another_locale_stays(environment: dict[str, str]) -> None:
    assert java_environment(environment) == environment
