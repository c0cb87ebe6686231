"""The pages: their links lead somewhere, the index leads to each, and the README stays short."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
WORDS_MAX: Final = {"README.md": 900, "docs/": 68_000, "tests/proof/docs/": 8_000}
"""Budgets of pages, by the beginning of their paths."""
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
