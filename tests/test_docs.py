"""The pages: their links lead somewhere, the index leads to each, and README, rows and cells stay short."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
WORDS_MAX: Final = {"README.md": 900, "docs/": 52_500, "tests/proof/docs/": 8_300}
"""Budgets of pages, by the beginning of their paths."""
FEATURES_WORDS_MAX: Final = {
    "docs/security.md": 2_500,
    "docs/threat-model.md": 900,
    "docs/web-page.md": 1_800,
    "docs/typed-topics.md": 2_800,
    "docs/tutorial-typed-topics.md": 600,
    "docs/doctor.md": 700,
}
"""What pages of features may have on top, once they are there."""
CELL_WORDS_MAX: Final = 25
ROW_WORDS_MAX: Final = {
    "docs/bad-input.md": 30,
    "docs/settings.md": 16,
    "docs/metrics.md": 25,
    "docs/clients.md": 10,
}
"""Budgets of pages that grow with the features, a row on average, what is quoted included."""
CONTENTS: Final[dict[str, tuple[int, tuple[str, ...]]]] = {
    "Index": (400, ("docs/index.md",)),
    "Tutorials": (
        2_800,
        (
            "docs/first-cluster.md",
            "docs/tutorial-exactly-once.md",
            "docs/exactly-once.md",
            "docs/history-on-hdfs.md",
        ),
    ),
    "How-to": (
        7_700,
        (
            "docs/installing.md",
            "docs/on-your-cluster.md",
            "docs/platforms.md",
            "docs/operating.md",
            "docs/administration.md",
            "docs/groups.md",
            "docs/transactions.md",
            "docs/remote-stores.md",
            "docs/testing.md",
            "docs/dump-log.md",
        ),
    ),
    "Reference": (6_130, ("docs/spark.md", "docs/types.md", "docs/format/wire.md")),
    "Formats": (
        6_550,
        (
            "docs/format/log-directory.md",
            "docs/format/batch.md",
            "docs/format/remote-segment.md",
            "docs/format/remote-manifest.md",
            "docs/format/consumer-offsets.md",
            "docs/format/transaction-state.md",
            "docs/format/write-state.md",
            "docs/format/messages.md",
            "docs/compaction.md",
        ),
    ),
    "Explanation": (
        11_000,
        (
            "docs/architecture.md",
            "docs/coordinators.md",
            "docs/differences.md",
            "docs/performance.md",
            "docs/glossary.md",
            "docs/write-your-own-shell.md",
        ),
    ),
    "Contributing": (6_400, ("docs/changing.md", "docs/proof.md", "docs/decisions/")),
    **{page: (words_max, (page,)) for page, words_max in FEATURES_WORDS_MAX.items()},
}
"""Each row's budget in words, and its pages; what ends with a slash is a folder. A page is in one row, or in
``ROW_WORDS_MAX``."""
PAGES: Final = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (
        *(ROOT / "README.md", ROOT / "CHANGELOG.md"),
        *(ROOT / "tests/datasource/connector-parity.md", ROOT / "tests/proof/rules-of-transactions.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "tests/proof/docs").glob("*.md"),
    )
)


def links_of(page: str) -> list[str]:
    """Targets of the page's links within the project."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them of headings, and those that the page sets itself."""
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return made | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


@pytest.mark.parametrize("page", PAGES)
def test_each_link_of_a_page_leads_somewhere(page: str) -> None:
    for link in links_of(page):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{link} of {page}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), f"{link} of {page}"


def test_the_index_leads_to_each_page() -> None:
    linked = {((ROOT / "docs") / link.partition("#")[0]).resolve() for link in links_of("docs/index.md")}
    decisions = (ROOT / "docs" / "decisions").resolve()
    missing = [
        page
        for page in map(Path, PAGES)
        if "docs" in page.parts
        and page.name != "index.md"
        and (ROOT / page).resolve() not in linked
        and not ((ROOT / page).resolve().parent == decisions and decisions in linked)
    ]
    assert missing == []


def test_the_map_names_modules_that_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)`", text)
    assert len(named) > 30
    assert [path for path in named if not (ROOT / "sparklog" / path).is_file()] == []


def words_of(*pages: str) -> int:
    """A word has a letter or a digit: bars of tables and of drawings, and arrows, are none."""
    texts = ((ROOT / page).read_text("utf-8").replace("|", " ") for page in pages)
    return sum(any(map(str.isalnum, word)) for text in texts for word in text.split())


@pytest.mark.parametrize("folder", WORDS_MAX)
def test_pages_have_no_more_words_than_their_budget(folder: str) -> None:
    pages = [page for page in PAGES if page.startswith(folder)]
    words_max = WORDS_MAX[folder] + sum(FEATURES_WORDS_MAX.get(page, 0) for page in pages)
    assert 0 < words_of(*pages) <= words_max, "shorten a page before another one grows"


def is_in_row(page: str, row: str) -> bool:
    return any(page == part or (part.endswith("/") and page.startswith(part)) for part in CONTENTS[row][1])


def test_a_folder_has_its_pages_and_a_new_page_is_in_no_row() -> None:
    assert is_in_row("docs/decisions/0099-new.md", "Contributing")
    assert not any(is_in_row(page, row) for page in ("docs/new.md", "docs/format/new.md") for row in CONTENTS)


def test_each_page_of_the_docs_is_in_one_row_of_the_contents() -> None:
    rows = {page: [row for row in CONTENTS if is_in_row(page, row)] for page in PAGES}
    wrong = {
        page: found
        for page, found in rows.items()
        if page.startswith("docs/") and len(found) + (page in ROW_WORDS_MAX) != 1
    }
    assert wrong == {}, "give each page a row of CONTENTS"


def test_the_contents_name_pages_that_exist() -> None:
    named = {page for _, pages in CONTENTS.values() for page in pages} - set(FEATURES_WORDS_MAX)
    assert [page for page in sorted(named) if not (ROOT / page).exists()] == []


@pytest.mark.parametrize("row", CONTENTS)
def test_a_row_of_the_contents_has_no_more_words_than_its_budget(row: str) -> None:
    words_by_page = {page: words_of(page) for page in PAGES if is_in_row(page, row)}
    words_max = CONTENTS[row][0]
    assert sum(words_by_page.values()) <= words_max, f"{row}: shorten a page before another one grows"


def table_rows(page: str) -> Iterator[list[str]]:
    """The cells of each row below a head; what stands in backquotes is literal, and left out."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"``.*?``|`[^`\n]*`", "", text)
    for table in re.findall(r"^\|[-:| ]+\|\n((?:\|.*\n)*)", text, re.MULTILINE):
        for row in table.splitlines():
            yield re.split(r"(?<!\\)\|", row)[1:-1]


def prose_words(cell: str) -> int:
    return len(re.findall(r"\S*\w\S*", re.sub(r"\]\([^)]*\)", "]", cell)))


def test_a_cell_is_counted_without_quotations_and_targets() -> None:
    assert prose_words("see [the list](settings.md) – or nothing") == 5


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_cells_of_tables_are_short(page: str) -> None:
    long = [cell for cells in table_rows(page) for cell in cells if prose_words(cell) > CELL_WORDS_MAX]
    assert long == []


@pytest.mark.parametrize("page", ROW_WORDS_MAX)
def test_rows_of_pages_that_grow_are_short(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\|(?![-:| ]+\|$).*\|$", text, re.MULTILINE)
    words = sum(len(row.replace("|", " ").split()) for row in rows)
    assert len(rows) > 50
    assert words <= ROW_WORDS_MAX[page] * len(rows), "shorten the rows that you add, or another one"
