"""The pages: their links lead somewhere, the index leads to each, and README, cells and rows stay short."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
WORDS_MAX: Final = {"README.md": 900, "docs/": 68_000, "tests/proof/docs/": 8_000}
"""Budgets of pages, by the beginning of their paths."""
CELL_WORDS_MAX: Final = 25
ROW_WORDS_MAX: Final = {
    "docs/bad-input.md": 30,
    "docs/settings.md": 16,
    "docs/metrics.md": 25,
    "docs/clients.md": 10,
}
"""Budgets of pages that grow with the features, a row on average, what is quoted included."""
WIDE_PAGES: Final = frozenset(
    f"docs/{name}.md"
    for name in ("architecture", "differences", "exactly-once", "groups", "platforms", "spark", "testing")
)
"""Pages with cells that are still to be shortened."""
PAGES: Final = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (
        *(ROOT / "README.md", ROOT / "CHANGELOG.md"),
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


def words_of(*pages: str) -> int:
    """Bars of tables are no words."""
    texts = (
        re.sub(r"^\|[-:| ]+\|$|\|", " ", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE)
        for page in pages
    )
    return sum(len(text.split()) for text in texts)


@pytest.mark.parametrize("folder", WORDS_MAX)
def test_pages_have_no_more_words_than_their_budget(folder: str) -> None:
    pages = [page for page in PAGES if page.startswith(folder)]
    assert 0 < words_of(*pages) <= WORDS_MAX[folder], "shorten a page before another one grows"


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


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.startswith("docs/") and page not in WIDE_PAGES]
)
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
