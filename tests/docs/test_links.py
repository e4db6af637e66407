"""Every relative link, anchor and source path in the documentation exists."""
import re

import pytest
from conftest import ROOT

PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md"),
                *(ROOT / "examples").rglob("*.md"), *(ROOT / "compat").rglob("*.md")})
FENCED = re.compile(r"^```.*?^```$", re.S | re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SOURCE = re.compile(r"`((?:src|include|web|tests|tools|python|compat|bench|fuzz|examples|packaging|man|docs)/[\w./-]+)`")


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", path.read_text()), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken(page):
    text = FENCED.sub("", page.read_text())
    for link in LINK.findall(text):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link
    yield from (path for path in SOURCE.findall(text) if not re.search("NAME|SCHEMA", path) and not (ROOT / path).exists())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_exist(page):
    assert list(broken(page)) == []


def test_every_page_is_listed_in_the_index():
    index = (ROOT / "docs/README.md").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md" and f"]({page.name}" not in index] == []
