"""Links in documents lead somewhere, and documents stay short."""

from __future__ import annotations

import re
from pathlib import Path

from tests.rows import each_row

ROOT = Path(__file__).parents[2]
#: What a reader is to read; benchmarks and installation have pages of their own.
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("[a-z]*/README.md")),
    *sorted(ROOT.glob("evaluation/results/*.md")),
]
OTHERS = [*sorted(ROOT.glob("installation/*.md")), *sorted(ROOT.glob("benchmarks/*/README.md"))]
_CODE = re.compile(r"```.*?```", re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:)([^)\s]+)\)")


def words(pages: list[Path]) -> int:
    return sum(len(page.read_text().split()) for page in pages)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _CODE.sub("", page.read_text()), re.MULTILINE)
    texts = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


def is_there(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


@each_row("page", sorted({*PAGES, *OTHERS}), ids=lambda page: str(page.relative_to(ROOT)))
def test_its_links_lead_somewhere(page: Path) -> None:
    links = _LINK.findall(_CODE.sub("", page.read_text()))
    assert [link for link in links if not is_there(page, link)] == []


def test_the_documents_stay_short() -> None:
    assert words([ROOT / "README.md"]) <= 900
    assert words(PAGES) <= 25_000
