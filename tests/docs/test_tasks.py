"""docs/tasks: every command on these pages runs and prints what they show, but for the numbers."""
import importlib.util
import re

import pytest
from conftest import ROOT
from pages import run_page

PAGES = sorted((ROOT / "docs/tasks").glob("*.md"))
QUESTIONS = ["slow-training", "hangs", "killed", "memory-grows", "faster", "many-gpus"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_prints_what_it_shows(page, reader, tmp_path):
    text = page.read_text()
    if "import torch" in text and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: make setup")
    wrong = run_page(text, tmp_path / "work", {**reader, "OMP_NUM_THREADS": "1"}, numbers=False)
    assert not wrong, "\n\n".join(wrong)


def test_the_index_begins_with_the_pages_and_each_is_short():
    index = (ROOT / "docs/README.md").read_text()
    assert re.findall(r"\]\(tasks/([a-z-]+)\.md\)", index) == QUESTIONS
    assert sorted(QUESTIONS) == [page.stem for page in PAGES]
    assert all(len(page.read_text().splitlines()) <= 100 for page in PAGES)
