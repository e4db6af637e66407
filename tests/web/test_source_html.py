"""The Source tab of a report: files, lines with their times, search, keys; and the ways to it from findings and flame graphs."""
import os
import re
import socket
import sys

import pytest
from conftest import ROOT, Page

sys.path.append(str(ROOT / "tests/cli"))
from made import Made  # noqa: E402

MS = 1_000_000
TRAIN = """import tool

def load(path):
    rows = []
    for i in range(100):
        rows.append(tool.read(path, i))  # {hostile}
    return rows

def train():
    for step in range(10):
        batch = load("data")
        batch.sort()

train()
{end}"""
HOSTILE = "</script><img src=x onerror=window.hacked=1> \u202e"
TOOL = "def read(path, i):\n    return open(path).read()\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code")
    (folder / "train.py").write_text(TRAIN.format(hostile=HOSTILE, end="x = 1\n" * 3000))
    library = folder / "lib/python3.11/site-packages/tool"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(TOOL)
    for path in (folder / "train.py", library / "__init__.py"):
        os.utime(path, (1, 1))
    (folder / "plugin.c").write_text("void spin(void)\n{ for (;;) ; }\n")
    (folder / "late.py").write_text("x = 1\n")
    os.utime(folder / "late.py", (4102444800, 4102444800))
    return folder


@pytest.fixture(scope="module")
def report(pages, folder):
    """The report of a program with 100 samples of 10 ms: 60 in the library, 30 in sort, 10 in a native library."""
    template = pages.folder / "template-source.kymo"
    assert pages.kymo("pack", pages.recording("train", "400"), template).returncode == 0
    path, file = pages.folder / "source.kymo", pages.folder / "source.html"
    train, tool = f"{folder}/train.py", f"{folder}/lib/python3.11/site-packages/tool/__init__.py"
    main = [f"train ({train}:{{}})", f"<module> ({train}:14)"]
    load = [f"load ({train}:6)", main[0].format(11), main[1]]
    stacks = ([[f"read ({tool}:2)", *load]] * 60 + [[main[0].format(12), main[1]]] * 30 +
              [["inflate (libz.so.1)", f"read ({tool}:2)", *load]] * 8 + [[f"f ({folder}/gone.py:3)"], [f"f ({folder}/late.py:7)"]])
    with Made(template, path) as rows:
        rows.db.executemany("INSERT INTO python.samples (ts_ns, pid, tid, thread, stack, state, place, weight_ns, host) "
                            "VALUES (?, ?, ?, 'MainThread', ?, 'R', ?, ?, 'box')",
                            [(i * 10 * MS, rows.pid, rows.pid, stack, next((f for f in stack if train in f), None), 10 * MS)
                             for i, stack in enumerate(stacks)])
        rows.db.executemany("INSERT INTO native.samples (ts_ns, pid, tid, thread, stack, place, weight_ns, host) "
                            "VALUES (?, ?, ?, 'MainThread', ?, ?, ?, 'box')",
                            [(i, rows.pid, rows.pid, [f"spin ({folder}/plugin.c:2)", "run (libplugin.so)", *load, "main (python3.11)"],
                              f"spin ({folder}/plugin.c:2)", 5 * MS) for i in range(10)])
        rows.db.execute("UPDATE kymo.runs SET cwd = ?, duration_ns = ?, host = ?", [str(folder), 1000 * MS, socket.gethostname()])
    done = pages.kymo("report", path, file)
    assert done.returncode == 0, done.stderr
    return file


@pytest.fixture(scope="module")
def page(report, browser):
    one = Page(browser)
    one.open(report.as_uri())
    yield one
    seen = one.seen()
    assert (seen["errors"], one.js("window.hacked ?? null"), one.count("main img")) == ([], None, 0)
    one.close()


def at(page, tab, **query):
    """Opens an address, as a link does."""
    words = "&".join(f"{key}={value}" for key, value in query.items())
    page.js(f"location.hash = '#/{tab}?{words}'")
    page.until(f"document.querySelector('#tab-{tab}').getAttribute('aria-selected') === 'true'")


def cells(page, line):
    """The texts of a line, without its bar."""
    return page.js(f"[...document.querySelectorAll('#line-{line} > span:not(.bars)')].map((c) => c.textContent)")


def current(page):
    return int(page.js("document.querySelector('.line.current')?.dataset.line ?? 0"))


def test_own_files_come_first_with_their_share(page, folder):
    page.tab("source")
    page.see(".listing")
    assert page.texts(".files h2") == ["Your code", "Libraries"]
    files = page.texts(".files .file")
    assert [re.split(r"\n+", one)[:2] for one in files] == [["train.py", "98 %"], ["plugin.c", "5.0 %"], ["gone.py", "1.0 %"],
                                                           ["late.py", "1.0 %"], ["tool/__init__.py", "68 %"]]
    assert page.text(".files [aria-current]").startswith("train.py") and page.text(".path") == f"{folder}/train.py"


def test_a_line_has_its_own_time_and_the_time_of_all_below_it(page):
    assert page.texts(".line.head > span")[:2] == ["Self", "Total"]
    assert cells(page, 11) == ["", "680 ms", "11", '        batch = load("data")']
    assert cells(page, 12) == ["300 ms", "300 ms", "12", "        batch.sort()"]
    assert cells(page, 6)[:2] == ["680 ms", "680 ms"], "with the library that it calls"
    assert cells(page, 14)[:2] == ["", "980 ms"] and cells(page, 3)[:2] == ["", ""]
    bar = page.js("[...document.querySelectorAll('#line-12 .bars i')].map((i) => [i.className, i.style.width])")
    assert bar == [["all", "31%"], ["own", "31%"]]
    page.shot("source-light")


def test_text_is_data_and_marks_of_direction_are_shown(page):
    assert cells(page, 6)[-1].endswith("# </script><img src=x onerror=window.hacked=1> \\u202e")


def test_only_lines_in_view_are_elements(page):
    assert page.js("document.querySelector('.listing').getAttribute('aria-rowcount')") == "3015"
    assert page.count(".lines .line") < 120
    page.js("document.querySelector('.listing').focus()")
    page.press("End")
    page.until("document.querySelector('.line.current')?.dataset.line === '3014'")
    assert page.count(".lines .line") < 120
    page.press("Home")
    assert current(page) == 1


def test_keys_go_from_hot_line_to_hot_line_and_are_read_out(page):
    page.press("x")
    assert current(page) == 6
    page.press("]")
    assert page.text("[aria-live]") == "Line 12, Self 300 ms, Total 300 ms, batch.sort()"
    assert page.js("document.querySelector('.listing').getAttribute('aria-activedescendant')") == "line-12"
    page.press("ArrowUp")
    assert current(page) == 11 and page.js("location.hash").endswith("&line=11")
    page.press("]")
    page.press("]")
    assert current(page) == 6, "around the end"


def test_a_search_marks_counts_and_steps(page):
    page.press("/")
    page.type("batch")
    page.says(".bar [role=status]", "2 of 2 lines|1 of 2 lines")
    assert page.count("mark") == 2
    page.press("Enter")
    page.press("Enter")
    page.press("Shift+Enter")
    assert current(page) in (11, 12)
    page.type("zzz")
    page.says(".bar [role=status]", "not found")
    page.fill("input[aria-label='Find in this file']", "")
    page.press("Escape")


def test_the_list_is_filtered_and_walked_by_keys(page):
    page.fill("input[aria-label='Filter files']", "tool")
    assert page.count(".files .file") == 1
    page.fill("input[aria-label='Filter files']", "")
    page.js("document.querySelector('.files .file').focus()")
    page.press("ArrowDown")
    page.press("ArrowDown")
    assert page.js("document.activeElement.title").endswith("gone.py")
    page.press("Enter")
    page.says(".notes", "The text is not shown: it is not on this machine. These are the lines that the recording names.")
    assert page.texts(".lines .line .number") == ["3"]


def test_a_file_that_changed_says_so(page, folder):
    at(page, "source", file=f"{folder}/late.py")
    page.says(".notes", "This file was changed after the recording began. The lines may have moved.")
    page.says(".notes", "The recording names 1 line after its end.")


def test_a_line_leads_to_its_frames_and_a_frame_to_its_line(page, folder):
    at(page, "source", file=f"{folder}/train.py", line=12)
    page.see("#line-12.current")
    page.press("Enter")
    page.drawn()
    page.says(".bar [role=status]", "^30 % in 1 frame$")
    page.says(".strip", r"train \(train\.py:12\)")
    page.press("o")
    page.see("#line-12.current")
    assert page.js("decodeURIComponent(location.hash)") == f"#/source?file={folder}/train.py&line=12"


def test_native_code_under_python_has_its_lines_and_its_flame_graph(page, folder):
    at(page, "source", file=f"{folder}/plugin.c")
    page.see("#line-2")
    assert cells(page, 2) == ["50.0 ms", "50.0 ms", "2", "{ for (;;) ; }"]
    at(page, "source", file=f"{folder}/train.py", line=6)
    page.see("#line-6.current")
    assert cells(page, 6)[:2] == ["680 ms", "680 ms"], "its native samples do not count again"
    at(page, "flame", of="native", find="spin")
    page.says(".bar [role=status]", "^100 % in 1 frame$")
    assert sorted(page.texts(".bar .legend > span")) == ["native", "python"]


def test_a_library_has_the_time_of_its_own_lines(page):
    at(page, "source", file="tool/__init__.py")
    page.see("#line-2")
    assert cells(page, 2)[:2] == ["600 ms", "680 ms"]


def test_native_frames_have_a_colour_of_their_own_and_modules_on_request(page):
    at(page, "flame", of="samples")
    page.drawn()
    assert page.texts(".bar .legend > span") == ["python", "native"]
    page.choose("select[aria-label='Colours']", "module")
    page.see(".legend.modules")
    assert page.texts(".legend.modules > span") == ["tool", "train", "libz", "gone", "late"]
    assert page.js("location.hash") == "#/flame?of=samples&colour=module"
    page.shot("flame-modules-light")
    page.js("location.reload()")
    page.see(".legend.modules")


def test_the_finding_names_its_place_with_its_text_and_links(page, folder):
    at(page, "overview")
    where = page.says(".verdict .where", "Where: ")
    page.says(".verdict .excerpt", "rows.append")
    assert re.match(r"Where:\s+load\s+train\.py:6\s+\d+ %", where)
    links = page.js("[...document.querySelectorAll('.verdict .where a')].map((a) => decodeURIComponent(a.getAttribute('href')))")
    assert links == ["#/flame?of=samples&find=load (train.py:&zoom=1", f"#/source?file={folder}/train.py&line=6"]
    assert page.count(".verdict details.sql") >= 1
    page.shot("overview-where-light")
    page.click(".verdict .where a")
    page.drawn()
    page.says(".strip", r"load \(train\.py:6\)")
    at(page, "overview")
    page.click(".verdict .where a:nth-of-type(2)")
    page.see("#line-6.current")


@pytest.mark.parametrize("width, height", [(1280, 720), (1920, 1080), (800, 700)])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_overflows_in_either_theme(page, folder, width, height, dark):
    page.size(width, height)
    at(page, "source", file=f"{folder}/train.py", line=12)
    page.see("#line-12.current")
    page.js("document.activeElement.blur()")
    page.theme(dark)
    page.see("#line-12.current")
    page.shot(f"source-{width}-{'dark' if dark else 'light'}")
    assert page.js("document.documentElement.scrollWidth <= innerWidth")
    assert page.js("[...document.querySelectorAll('.bar > *, .file .name')].every((e) => e.scrollHeight <= e.clientHeight + 4)")
    page.size(1280, 720)


def test_every_control_has_a_name_and_the_title_has_the_recording(page):
    unnamed = page.js("""[...document.querySelectorAll('button, input, select, [role=grid], nav, [role=navigation]')]
        .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim())).map((e) => e.outerHTML)""")
    assert unnamed == []
    assert page.js("document.title") == "Source · train.py · source.kymo · kymo"
