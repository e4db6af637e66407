"""docs/import.md: every command on it runs, and prints what it says."""
from conftest import ROOT
from pages import run_page


def test_the_page_says_what_happens(reader, tmp_path):
    wrong = run_page((ROOT / "docs/import.md").read_text(), tmp_path / "work", {**reader, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert not wrong, "\n\n".join(wrong)
