"""Taste, enforced by a program: sizes of files, classes, functions, rooms; words, dead names, late imports.

A failure names the place. The remedy is to split, rename, delete or explain.
"""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

from sparklog.wire.versions import KNOWN_VERSIONS

ROOT: Final = Path(__file__).parents[1]
SHIPPED: Final = ("sparklog/", "datasource/", "broker_runtime/")
PROOF: Final = "tests/proof/"

FILE_LINES_MAX: Final = 600
FUNCTION_LINES_MAX: Final = 60
CLASS_LINES_MAX: Final = 400
SIBLINGS_MAX: Final = 25
TEST_NAME_LENGTH_MAX: Final = 85
STEMS_TWICE_MAX: Final = 15

BANNED: Final = {
    r"\b(TODO|FIXME|XXX)\b": "finish it, or write an issue",
    r"(?<![^\W_])tps?(?![^\W_])": "a TopicPartition is a topic_partition",
    r"\bcommited\b": "committed",
    r"\b(workbench|\w*[Ss]trands?|seats)\b": "a metaphor: name the work, the thread or the downtime",
    r"\b[Ww]ho was told\b": "name the broker, controller or client, and the message",
    r"\bfetches_inside\b": "fetches in progress",
    r"\bsparklog simulate\b": "the simulation is not in the package: scripts/simulate",
    r"^(?!logger: Final = )\S.* = logging\.getLogger\(__name__\)": "logger: Final = …, as everywhere",
}
"""Words that must not come back, each with what to write instead."""

BANNED_BUT_FOR_USERS: Final = {
    r"(?<![^\W_])(?i:behind)(?![^\W_])": "after, beyond, lag or abandoned, as the meaning is",
    r"(?<![^\W_])(?i:told)(?![^\W_])": "reported, notified, answered or received, as the meaning is",
}
"""Words that are not ours, each with what to write instead. What users see may have them."""

SEEN_BY_USERS: Final = (
    ("broker_runtime/sparklog_runtime/start/demo_folder.py", 'f"was told to --keep it.'),
    ("datasource/sparklog_datasource/monitoring/figures.py", ":,} behind"),
    ("datasource/sparklog_datasource/writing/delivery.py", "and Spark has not told "),
    ("sparklog/broker/conversion/converting_reader.py", "ends behind what was read"),
    ("sparklog/broker/conversion/untyped_rows.py", "bytes behind what was read"),
    ("sparklog/broker/coordination/loading.py", "ends behind what was read"),
    ("sparklog/broker/remote_log/copying/history_questions.py", "What was written behind is lost"),
    ("sparklog/cli/about/completion.py", "in ~/.zshrc, behind compinit"),
    ("sparklog/core/remote_log/head.py", "segments behind {grown}"),
    ("sparklog/core/remote_log/head.py", "stands behind {before.end_offset}"),
    ("sparklog/core/remote_log/page.py", "behind {before.end_offset}"),
    ("sparklog/network/reactor.py", "and is left behind"),
    ("sparklog/records/remote_segment/rest_object.py", "behind offset {offset}"),
)
"""Progress, errors and logs with those words: the file, and the words in their line."""

CALLED_BY_OTHERS: Final = {
    "made_cut": "tests of cuts that nobody agrees upon",
    "applied_state": "the simulation",
    "active_controller": "tests of fail-over",
    "deserialize": "kazoo",
    "_check_value": "argparse",
    "prepareForTriggerAvailableNow": "Spark",
    "_repr_html_": "notebooks",
    "onQueryStarted": "Spark",
    "onQueryProgress": "Spark",
    "getDefaultReadLimit": "Spark",
    "onQueryIdle": "Spark",
    "onQueryTerminated": "Spark",
    "capture_signals": "uvicorn",
    "handle_error": "socketserver",
    "log_message": "http.server",
    "service_actions": "socketserver",
    "verify_request": "socketserver",
    "pytest_addoption": "pytest",
    "pytest_configure": "pytest",
    "reportLatestOffset": "Spark",
    "streamReader": "Spark",
    "streamWriter": "Spark",
}
"""Names that the package itself does not mention, each with its caller."""

LARGE_CLASSES: Final = {
    "Log": "its segments, indexes and ends change together, and each method needs all of them",
    "Segment": "one file with its three indexes; a cut would part the file from what is known of it",
    "LogDirectory": "each checkpoint is written beside the logs that it is about",
    "ClusterClient": "one cache of metadata with its connections; most methods are one request each",
    "LocalCluster": "start, life and stop of brokers and candidates share its slots",
    "Leader": "one fact of the protocol is one method, and all change the same marks and ISR",
}
"""Classes above the limit, each with its reason."""

STEMS_TWICE: Final = {
    "actions": "what a machine in core tells its shell to do; its room names the machine",
    "cluster": "users import both: sparklog.client.cluster and sparklog.testing.cluster",
    "errors": "the exceptions of all packages in model, and those of users in client",
    "metrics": "the metrics that a room serves",
    "offset_commit": "an API's handler, and a record of the same name in Kafka",
    "ports": "what a room needs of the world, so that a simulation can replace it",
    "records": "the typed records of a coordinator's topic; in testing, the records of users",
    "requests": "what clients ask of a coordinator; its room names the coordinator",
    "responses": "what a coordinator answers",
    "settings": "the settings of a room's machine or client",
    "states": "the states of a coordinator's machine, with Kafka's names",
    "write_errors": "the answers of a coordinator whose write failed",
}
"""File names that several rooms may have, each with its reason: the room's name says the rest."""

NAMED_ALIKE: Final = re.compile(
    r"sparklog/wire/messages/|sparklog/cli/(\w+/)*command\.py$|.*/__(init|main)__\.py$"
)
"""Files named by their API, and the entry of each command's room."""

FOR_USERS: Final = ("sparklog/testing/",)
"""Rooms whose names are for the tests of users, and need no caller in the package."""

IN_THEIR_OWN_PROCESS: Final = {
    "tests/network/out_of_descriptors.py",
    "tests/remote/test_local.py",
    "tests/test_tidy.py",
}
"""Files with programs that tests start, and the rule itself."""


@cache
def python_files() -> tuple[str, ...]:
    """Paths of all Python files that git tracks or would track, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(path for path in listed.stdout.splitlines() if (ROOT / path).is_file())


def shipped_files() -> list[str]:
    return [path for path in python_files() if path.startswith(SHIPPED)]


def product_and_proof() -> list[str]:
    return [path for path in python_files() if path.startswith((*SHIPPED, PROOF))]


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def functions_of(path: str) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    tree = ast.parse(text_of(path))
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_files_are_read_in_one_sitting() -> None:
    lines = {path: text_of(path).count("\n") for path in product_and_proof()}
    assert {path: count for path, count in lines.items() if count > FILE_LINES_MAX} == {}


def test_functions_fit_a_screen() -> None:
    tall = [
        f"{path}:{function.lineno} {function.name}"
        for path in shipped_files()
        for function in functions_of(path)
        if (function.end_lineno or 0) - function.lineno >= FUNCTION_LINES_MAX
    ]
    assert tall == []


def test_classes_are_read_in_one_sitting() -> None:
    """An exemption that is not needed fails."""
    large = {
        node.name: f"{path}:{node.lineno}"
        for path in shipped_files()
        for node in ast.walk(ast.parse(text_of(path)))
        if isinstance(node, ast.ClassDef) and (node.end_lineno or 0) - node.lineno >= CLASS_LINES_MAX
    }
    assert {name: place for name, place in large.items() if name not in LARGE_CLASSES} == {}
    assert LARGE_CLASSES.keys() <= large.keys(), "an exemption that is not needed"


def test_rooms_have_few_siblings() -> None:
    siblings: dict[str, set[str]] = {}
    for path in product_and_proof():
        parts = PurePosixPath(path).parts
        for depth, name in enumerate(parts[1:], start=1):
            if name != "__init__.py":
                siblings.setdefault("/".join(parts[:depth]), set()).add(name)
    crowded = {room: len(names) for room, names in siblings.items() if len(names) > SIBLINGS_MAX}
    crowded.pop("tests", None)
    assert crowded == {}


def test_file_names_are_unique_or_have_a_reason() -> None:
    """An exemption that is not needed fails."""
    stems = Counter(PurePosixPath(path).stem for path in shipped_files() if not NAMED_ALIKE.match(path))
    assert {stem for stem, count in stems.items() if count > 1} == STEMS_TWICE.keys()
    assert len(STEMS_TWICE) <= STEMS_TWICE_MAX


def test_addresses_are_written_by_one_function() -> None:
    """``host_port`` puts IPv6 addresses into brackets."""
    by_hand = re.compile(r"""host[^"{}]*\}:\{[^"{}]*port|%s:%d""")
    places = [
        f"{path}:{number}: {line.strip()}"
        for path in shipped_files()
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if by_hand.search(line) and "]:" not in line
    ]
    assert places == []


@pytest.mark.parametrize("word", BANNED)
def test_no_banned_word_is_used(word: str) -> None:
    places = [
        f"{path}:{number}: {line.strip()}"
        for path in shipped_files()
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if re.search(word, line)
    ]
    assert places == [], BANNED[word]


def test_words_that_are_not_ours_are_in_texts_for_users_alone() -> None:
    """An exemption that is not needed fails."""
    found = {
        f"{path}:{number}: {line.strip()}": {
            (place, words) for place, words in SEEN_BY_USERS if place == path and words in line
        }
        for path in shipped_files()
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if any(re.search(word, line) for word in BANNED_BUT_FOR_USERS)
    }
    assert [line for line, exemptions in found.items() if not exemptions] == [], BANNED_BUT_FOR_USERS
    assert set(SEEN_BY_USERS) == set().union(*found.values()), "an exemption that is not needed"


def definitions() -> Iterator[tuple[str, str]]:
    """Name and place of each function and class of the packages."""
    for path in shipped_files():
        for node in ast.walk(ast.parse(text_of(path))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name, f"{path}:{node.lineno}"


def test_every_name_of_the_package_is_used_by_the_package() -> None:
    """A name needs more mentions than definitions. An exemption that is not needed fails."""
    mentions = Counter(name for path in shipped_files() for name in re.findall(r"\w+", text_of(path)))
    mentions.update(re.findall(r"\w+", (ROOT / "pyproject.toml").read_text()))
    for api in KNOWN_VERSIONS.values():  # the codec imports messages by name
        mentions.update([f"{api.name}Request", f"{api.name}Response"])
    mentions.subtract(name for name, _ in definitions())
    unused = {name: place for name, place in definitions() if mentions[name] <= 0}
    assert CALLED_BY_OTHERS.keys() <= unused.keys(), "an exemption that is not needed"
    assert {
        name: place
        for name, place in unused.items()
        if name not in CALLED_BY_OTHERS and not name.startswith("__") and not place.startswith(FOR_USERS)
    } == {}


def test_docstrings_say_their_noun_first() -> None:
    """ "Of …" leaves the reader to find out of what: "Bytes of …", "The epoch of …"."""
    places = [
        f"{path}:{number}"
        for path in shipped_files()
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if '"""Of ' in line
    ]
    assert places == []


def late_imports(path: str) -> Iterator[tuple[int, str]]:
    """Line and text of each import inside a function that has no reason beside it.

    A reason is a comment in the same line, a comment above the run of imports, or the word "import" in the
    function's or the module's docstring.
    """
    tree = ast.parse(text_of(path))
    lines = text_of(path).splitlines()
    if "import" in (ast.get_docstring(tree) or ""):
        return
    for function in functions_of(path):
        if "import" in (ast.get_docstring(function) or ""):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                above = node.lineno - 2
                while lines[above].strip().startswith(("import ", "from ")):
                    above -= 1
                if "#" not in lines[node.lineno - 1] and not lines[above].strip().startswith("#"):
                    yield node.lineno, lines[node.lineno - 1].strip()


def test_imports_inside_functions_have_a_reason_beside_them() -> None:
    places = [f"{path}:{number}: {text}" for path in shipped_files() for number, text in late_imports(path)]
    assert places == []


def test_names_of_tests_are_sentences_of_bounded_length() -> None:
    long = [
        f"{path}:{function.lineno} {function.name}"
        for path in python_files()
        if path.startswith("tests/")
        for function in functions_of(path)
        if function.name.startswith("test_") and len(function.name) > TEST_NAME_LENGTH_MAX
    ]
    assert long == []


def test_a_patch_of_the_system_is_of_one_thread() -> None:
    """Brokers of other tests live in the same process: a failing ``os.pwrite`` is their failing disk."""
    shared = re.compile(r"setrlimit\(|setattr\(\s*(os|fcntl|socket|time), \"[a-z]\w*\", (?!of_this_thread\()")
    wide = [
        f"{path}: {found.group()}"
        for path in python_files()
        if path.startswith("tests/") and not path.startswith(PROOF) and path not in IN_THEIR_OWN_PROCESS
        for found in shared.finditer(text_of(path))
    ]
    assert not wide
