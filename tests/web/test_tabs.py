"""The tabs as a stranger meets them: of a recording with little in it, and of one with much."""
import json
import os
import re
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


def with_modules(viewer, memory):
    """A report with modules of torch, each with that much memory; no torch is needed for it."""
    report = viewer.folder / f"torch-{memory}.html"
    subprocess.run([KYMO, "report", viewer.folder / "made", report], env=viewer.env, check=True, capture_output=True)
    row = {"module": "Net", "calls": 3, "forward_ns": 1e6, "backward_ns": 2e6, "step_ns": 0, "total_ns": 3e6, "self_ns": 3e6,
           "max_allocated": memory, "device_ns": None, "depth": 0}
    text = report.read_text()
    assert text.count('"modules":[]') == 1
    report.write_text(text.replace('"modules":[]', f'"modules":[{json.dumps(row)}]'))
    return report.as_uri()


def test_torch_without_device_memory_says_why_and_what_records_it(viewer, page):
    page.open(with_modules(viewer, None) + "#/torch")
    assert page.texts("table[aria-label='Torch modules'] tbody td")[-1] == "–"
    assert re.search(r"torch used none in this run\. .* kymo run --memory -- python train\.py\.$", page.text(".card"))
    page.open(with_modules(viewer, 12.5) + "#/torch")
    page.says("table[aria-label='Torch modules'] tbody", "12.5 MB$")
    assert "torch used none" not in page.text(".card")
    page.open(viewer.url)


def test_memory_says_since_when_it_has_grown_and_all_charts_show_the_same_time(show, page):
    show("made", "memory")
    told = " ".join(page.says(".figures", "After start-up").split())
    early = re.search(r"After start-up [\d.]+ GBat ([\d.]+ ms) ", told)[1]
    assert f" Grown since {early} 0 Bto the end " in told
    show("made", "metrics")
    page.see(".uplot")
    labels = page.js("[...document.querySelectorAll('.chart')].map((c) => c.getAttribute('aria-label'))")
    axes = {label.split(", axis ")[1] for label in labels}
    assert len(axes) == 1 and axes.pop().startswith("0 ns – ")
