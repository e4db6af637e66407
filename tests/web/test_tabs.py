"""The tabs as a stranger meets them: of a recording with little in it, and of one with much."""
import json
import os
import re
import subprocess

import pytest
from conftest import KYMO, PROGS, ROOT, Page, Viewer


@pytest.fixture(scope="module")
def viewer(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tabs")
    subprocess.run([PROGS / "made_run", folder / "made", "train", "200"], check=True)
    subprocess.run(["cc", f"-I{ROOT}/include", "-o", folder / "gaps", ROOT / "tests/device/gaps.c", f"-L{ROOT}/build", "-lkymo",
                    f"-Wl,-rpath,{ROOT}/build"], check=True)
    for words in (("run", "-q", "-o", "empty", "--", "/bin/true"), ("run", "-q", "-o", "device", "--device", "--", folder / "gaps"),
                  ("pack", "device", "packed.kymo")):
        subprocess.run([KYMO, *words], check=True, cwd=folder, stderr=subprocess.DEVNULL,
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
    assert page.says(".results", r"0 rows in [\d.]+ .?s: no row of this recording matches\.$")
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
    assert re.search(r"torch used no CUDA device in this run\. .* kymo run --memory -- python train\.py$", page.text(".card"))
    page.open(with_modules(viewer, 12.5) + "#/torch")
    page.says("table[aria-label='Torch modules'] tbody", "12.5 MB$")
    assert "torch used no CUDA device" not in page.text(".card")
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


def test_devices_follow_the_selected_range(show, page, viewer):
    at = json.loads(viewer.query(viewer.folder / "device", "SELECT first_ns FROM device.queues WHERE queue = 'queue 0'"))[0]["first_ns"]
    show("device", "devices", f"?t0={at + 2_000_000}&t1={at + 35_000_000}")  # from 12 to 45 of what gaps.c tells
    page.says("main", r"Queues\s*selected range, [\d.]+ m?s – [\d.]+ m?s; utilisation, with idle time")
    rows = page.js("""[...document.querySelectorAll("table[aria-label='Queues'] tbody tr")]
        .map((r) => [...r.cells].map((c) => c.innerText))""")
    # busy, idle, share, overlap, operations, gaps, the longest, and by cause: late, synchronisation, dependency, launch
    assert [[row[0], *row[2:]] for row in rows] == [
        ["queue 0, card", "29.0 ms", "4.00 ms", "88 %", "34 %", "4", "2", "3.00 ms", "0 ns", "0 ns", "3.00 ms", "1.00 ms"],
        ["copies, card", "10.0 ms", "23.0 ms", "30 %", "100 %", "1", "1", "20.0 ms", "0 ns", "0 ns", "0 ns", "20.0 ms"],
        ["late, card", "1.00 ms", "32.0 ms", "3.0 %", "0 %", "1", "1", "14.0 ms", "0 ns", "0 ns", "14.0 ms", "0 ns"]]
    assert page.texts("table[aria-label='Launches'] tbody td:nth-child(5)") == ["3", "2"]  # that begin in it
    assert page.count("table[aria-label='Models']") == 0
    show("device", "devices", "?t0=0&t1=1000")
    page.says("main", "^No device operation ran in this range")
    show("device", "devices")
    page.says("main", r"Queues\s*utilisation, with")
    assert page.texts("table[aria-label='Queues'] tbody td:nth-child(7)") == ["7", "2", "3"]


def test_two_counts_of_samples_differ_only_beyond_chance(browser, tmp_path):
    bundle = tmp_path / "diff.mjs"
    subprocess.run([ROOT / "deps/web/esbuild", ROOT / "web/src/flame-diff.js", "--bundle", "--format=esm", f"--outfile={bundle}",
                    "--log-level=error"], check=True)
    asked = [(100, 1, 110, 1), (100, 1, 150, 1), (0, 1, 4, 1), (0, 1, 9, 1), (100, 10, 10, 1), (100, 10, 25, 1), (0, 1, 0, 1)]
    script = f"""import {{ countsDiffer }} from '{bundle}';
        console.log(JSON.stringify({json.dumps(asked)}.map((one) => countsDiffer(...one))))"""
    said = subprocess.run([browser[0], "--input-type=module", "-e", script], check=True, capture_output=True, text=True).stdout
    assert json.loads(said) == [False, True, False, True, False, True, False]


FILLS = {
    "overview": "kymo run --python -- python train.py", "timeline": "kymo run --python -- python train.py",
    "flame": "kymo run --python -- python train.py", "memory": "kymo run --memory -- python train.py",
    "torch": "kymo run --torch -- python train.py", "devices": "kymo run --device -- python train.py",
    "stacks": "kymo run --serve -- python train.py",
}


@pytest.mark.parametrize("tab", FILLS)
def test_a_tab_without_data_names_the_command_that_fills_it(show, page, tab):
    show("empty", tab)
    page.until("document.querySelector('main code')")
    assert set(page.texts("main code")) == {FILLS[tab]}


def test_what_is_known_in_part_is_no_null_and_no_empty_box(show, page):
    show("empty", "compare")
    texts = page.texts("#pick-b option")
    assert [text for text in texts if text.endswith("packed.kymo")] and not [text for text in texts if "null" in text]
    page.js("location.hash = location.hash.replace('/compare', '/streams')")
    page.says("main", "Overhead of recording")
    assert "Zones in this file" not in page.text("main")


TABS = ("overview", "timeline", "flame", "memory", "metrics", "torch", "devices", "compare", "sql", "stacks")


def test_no_key_acts_behind_a_dialog_and_escape_closes_it(show, page):
    for tab, opened in (("sql", ".tools >> text=History"), ("timeline", "header button[aria-label=Keys]")):
        show("made", tab)
        page.click(opened)
        page.see("dialog[open]")
        for key in ("1", "t", "?", "r"):
            page.press(key)
        assert page.count("dialog[open]") == 1 and page.js("document.title").lower().startswith(tab)
        page.press("Escape")
        page.until("!document.querySelector('dialog[open]')")


def test_the_focus_is_seen_wherever_it_goes(show, page):
    for tab in TABS:
        show("made", tab)
        for _ in range(12):
            page.press("Tab")
            seen = page.js("""(() => { const at = document.activeElement;
                return at === document.body || getComputedStyle(at).outlineStyle !== 'none' || at.outerHTML.slice(0, 200); })()""")
            assert seen is True, tab


def test_nothing_is_cut_or_spills_in_a_small_window(show, page):
    spills = """[...document.querySelectorAll('.card, .bar, .figure')]
        .filter((e) => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)
        .map((e) => e.className + ': ' + e.innerText.slice(0, 60))"""
    page.size(1024, 700)
    for tab in ("overview", "timeline", "flame", "memory", "metrics", "devices"):
        show("device" if tab == "devices" else "made", tab)
        page.see(".card, .bar")
        assert page.js(spills) == [], tab
    # The name of a region is read, not guessed from its first letters.
    show("made", "overview")
    page.see("table[aria-label='Top regions'] tbody td")
    assert page.js("document.querySelector(\"table[aria-label='Top regions'] tbody td\").clientWidth") > 150
    page.size(1280, 720)


def test_nothing_is_told_to_the_console_on_any_tab(show, page):
    for name in ("empty", "made", "device"):
        for tab in TABS:
            show(name, tab, "?t0=1000&t1=2000" if name == "device" else "")
        show(name, "overview")
        page.js("location.hash = location.hash.replace('/overview', '/streams')")
        page.says("main", "Overhead of recording")
    page.press("t")
    page.press("t")
    seen = page.seen()
    assert (seen["errors"], seen["refused"]) == ([], [])
