"""The tabs as a stranger meets them: of a recording with little in it, and of one with much."""
import os
import subprocess

import pytest
from conftest import KYMO, PROGS, Page, Viewer


@pytest.fixture(scope="module")
def viewer(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tabs")
    subprocess.run([PROGS / "made_run", folder / "made", "train", "200"], check=True)
    subprocess.run([KYMO, "run", "-q", "-o", folder / "empty", "--", "/bin/true"], check=True, cwd=folder,
                   env={**os.environ, "KYMO_DIR": str(folder), "HOME": str(folder), "XDG_STATE_HOME": str(folder)})
    one = Viewer(folder)
    yield one
    one.close()


@pytest.fixture(scope="module")
def page(viewer, browser):
    one = Page(browser)
    one.open(viewer.url)
    yield one
    one.close()


@pytest.fixture(scope="module")
def show(viewer, page):
    """show(recording, tab, query): its tab is on the screen, and read."""
    told = page.js("fetch('/api/targets').then((answer) => answer.json())")
    ids = {t["path"].split("/")[-1]: t["id"] for t in told["targets"]}

    def go(name, tab, query=""):
        page.js(f"location.hash = '#/{ids[name]}/{tab}{query}'")
        page.until(f"document.querySelector('#tab-{tab}')?.getAttribute('aria-selected') === 'true' && "
                   f"location.hash.startsWith('#/{ids[name]}/{tab}')")
        page.until("!document.querySelector('main [aria-busy]')")
    return go


def test_sql_without_rows_says_so_with_the_time_and_keeps_the_heads(show, page):
    show("made", "sql", "?q=" + "FROM trace.marks WHERE false".replace(" ", "%20"))
    assert page.says(".status", r"^0 rows in [\d.]+ .?s · ")
    assert page.says(".results", r"0 rows in [\d.]+ .?s: the query ran, and nothing in this recording matches it\.$")
    assert page.texts(".results th")[:3] == ["ts_ns", "name", "text"]
    page.click(".tools >> text=Chart")
    assert page.says(".results", "^0 rows in")
    page.click(".tools >> text=Table")
