"""docs/from-*.md: every command on them runs, and prints what they say."""
import pytest
from conftest import ROOT
from pages import blocks, run_page

PAGES = sorted((ROOT / "docs").glob("from-*.md"))
SECTIONS = ["## What you type today, and here", "## What you gain", "## What is different", "## What does not exist here"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_happens(page, reader, tmp_path):
    wrong = run_page(page.read_text(), tmp_path / "work", reader)
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_answers_the_same_questions(page):
    text = page.read_text()
    assert [line for line in text.splitlines() if line.startswith("## ")] == SECTIONS
    assert any(kind == "console" for kind, _, _ in blocks(text))
