"""A job and an imported trace of several ranks: tracks by rank, collectives joined, the map, the picker. One browser looks at all."""
import json
import os
import subprocess
import sys
import time

import pytest
from conftest import KYMO, PROGS, ROOT, Page, Viewer

sys.path.append(str(ROOT / "tests/import"))
import make_trace  # noqa: E402

RANKS, STEPS = 24, 200
# Positions of the first rank in the timeline: heading, main thread, collectives.
COLLECTIVES_Y = 174
GUTTER, WIDTH = 132, 1280
ROW = 14  # of a rank in the map: 24 of them in the room above the table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ranks")
    env = {**os.environ, "KYMO_DIR": str(path / "live"), "HOME": str(path), "XDG_STATE_HOME": str(path)}
    (path / "live").mkdir(mode=0o700)
    subprocess.run([PROGS / "made_job", path / "job", str(RANKS), str(STEPS), "calls"], check=True)
    traces = [path / f"trace-{rank}.json" for rank in range(2)]
    for rank, file in enumerate(traces):
        make_trace.write(file, rank=rank, ranks=2)
    for words in (("import", *traces, "-o", path / "trace"), ("report", path / "job", path / "job.html"),
                  ("report", path / "trace", path / "trace.html")):
        done = subprocess.run([KYMO, *words], env=env, capture_output=True, text=True, cwd=path)
        if "built without HTML" in done.stderr:
            pytest.skip("this kymo was built without HTML reports")
        assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def viewer(folder):
    one = Viewer(folder, folder / "job")
    yield one
    one.close()


@pytest.fixture(scope="module")
def page(viewer, browser):
    one = Page(browser)
    one.open(viewer.url)
    yield one
    one.close()


@pytest.fixture(scope="module")
def show(page):
    """show(recording, tab, query): its tab is on the screen."""
    told = page.js("fetch('/api/targets').then((answer) => answer.json())")
    ids = {t["path"].split("/")[-1]: t["id"] for t in told["targets"]}

    def go(name, tab, query=""):
        page.js(f"location.hash = '#/{ids[name]}/{tab}{query}'")
        page.until(f"document.querySelector('#tab-{tab}')?.getAttribute('aria-selected') === 'true' && "
                   f"location.hash.startsWith('#/{ids[name]}/{tab}')")
        page.until("!document.querySelector('main [aria-busy]')")
        return ids[name]
    return go


def over_pixels(page):
    """How many pixels of the canvas over the timeline are not empty."""
    return page.js("""(() => { const c = document.querySelector('.stage canvas.over');
        const d = c.getContext('2d').getImageData(140, 50, c.width - 150, c.height - 60).data; let n = 0;
        for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })()""")


def colour_at(page, x, y, selector=".stage.map canvas"):
    return page.js(f"""(() => {{ const c = document.querySelector('{selector}'), s = c.width / c.clientWidth;
        return [...c.getContext('2d').getImageData({x} * s, {y} * s, 1, 1).data].slice(0, 3); }})()""")


def until_colour(page, x, y, condition):
    """Until the map has a colour there; a condition on r, g and b."""
    page.until(f"""(() => {{ const c = document.querySelector('.stage.map canvas'), s = c.width / c.clientWidth;
        const [r, g, b] = c.getContext('2d').getImageData({x} * s, {y} * s, 1, 1).data; return {condition}; }})()""")


def await_lines(page):
    """They are drawn with the next frame, once the partners are known."""
    until = time.monotonic() + 60
    while over_pixels(page) <= 400:
        assert time.monotonic() < until, over_pixels(page)
        time.sleep(0.1)


def choose_ranks(page, text, said):
    """A page that is drawn again meanwhile may take the focus away."""
    for _ in range(20):
        page.fill(".ranks input[type=text]", text)
        page.press("Tab")
        time.sleep(0.5)
        if said in page.js("location.hash"):
            return
    page.until(f"location.hash.includes({said!r})")


def hover_until_tip(page, x, y, pattern):
    page.move(x - 3, y)
    page.move(x, y)
    return page.says(".tip:not([hidden])", pattern)


# --- the timeline -------------------------------------------------------------------------------------------------

def test_a_collective_shows_its_ranks_who_came_last_and_by_how_much(show, page):
    """Step 90: rank 3 arrives at 902 ms, the others at 898 ms."""
    show("job", "timeline", "?v0=896000000&v1=906000000")
    page.theme(False)
    page.until("!/reading/.test(document.querySelector('.bar [role=status]').innerText)")
    page.drawn()
    x = GUTTER + (WIDTH - GUTTER) * 4 // 10
    said = hover_until_tip(page, x, COLLECTIVES_Y, "came last")
    assert "all_reduce (collective) 4." in said
    assert "rank 3 came last, 3." in said and "23 other ranks waited" in said
    await_lines(page)
    page.mouse(x, COLLECTIVES_Y)
    assert page.says(".partners", "rank 3\\s+last").startswith("all_reduce 90, group default_pg, 4,096 bytes: rank 3 came last")
    assert len(page.texts(".partners tr")) == 4 and "20 ranks that came earlier" in page.text(".partners")
    await_lines(page)
    page.shot("ranks-collective-light")
    page.click(".partners tr:nth-child(2) button")  # goes to the call of that rank
    page.says(".sr[aria-live]", "all_reduce, collective, 4.")
    page.press("Escape")
    page.press("Escape")


def test_lines_of_all_collectives_in_view_can_be_shown(show, page):
    show("job", "timeline", "?v0=860000000&v1=960000000")
    page.drawn()
    page.move(700, 60)
    before = over_pixels(page)
    page.press("l")
    page.until("document.querySelector('[aria-pressed=true]')?.innerText.includes('Lines')")
    page.until("""(() => { const c = document.querySelector('.stage canvas.over');
        const d = c.getContext('2d').getImageData(140, 50, c.width - 150, c.height - 60).data; let n = 0;
        for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n > 1500; })()""")
    assert over_pixels(page) > before
    for dark in (False, True):
        page.theme(dark)
        page.shot(f"ranks-lines-{'dark' if dark else 'light'}")
    page.theme(False)


# --- the map ------------------------------------------------------------------------------------------------------

def test_the_map_shows_a_slow_rank_as_a_line_and_a_slow_host_as_a_band(show, page):
    show("job", "ranks")
    assert page.says(".bar [role=status]", "ranks ×") == \
        f"Duration of each step, beside the median of the ranks; {RANKS} ranks × {STEPS} steps"
    assert page.texts(".scale span") == ["shorter −100 %", "+100 % longer"]

    def place(rank, step):
        return GUTTER + (WIDTH - GUTTER) * (step - 0.5) / STEPS, 22 + ROW * (rank + 0.5)

    page.until("(() => { const c = document.querySelector('.stage.map canvas'); return c.clientHeight > 300; })()")
    until_colour(page, *place(3, 100), "r - b > 60")  # red
    usual, host = (colour_at(page, *place(*cell)) for cell in ((9, 100), (19, 190)))
    assert host[0] - host[2] > 25, (usual, host)
    assert max(usual) - min(usual) < 25, usual  # grey
    for dark in (True, False):
        page.theme(dark)
        page.until("/ranks ×/.test(document.querySelector('.bar [role=status]').innerText)")
        for size in ((1920, 1080), (1280, 720)):
            page.size(*size)
            page.shot(f"ranks-map-{'dark' if dark else 'light'}-{size[0]}")
    said = hover_until_tip(page, place(3, 100)[0], 74 + place(3, 100)[1], "rank 3, step 100")
    assert "rank 3, step 100: 12." in said and "median of the ranks 8." in said and "+50 %" in said
    assert [row.split("\t")[0] for row in page.texts("table[aria-label=Ranks] tbody tr")][0] == "3"  # cost the others most
    page.mouse(place(3, 100)[0], 74 + place(3, 100)[1])
    page.until("/timeline\\?v0=98\\d+&v1=100\\d+&rank=3$/.test(location.hash)")
    page.drawn()


def test_the_map_of_waits_shows_who_is_waited_for(show, page):
    show("job", "ranks", "?of=wait")
    page.says(".bar [role=status]", "waited, beside the median")
    assert page.texts(".scale span") == ["comes late −100 %", "+100 % waits more"]
    until_colour(page, GUTTER + (WIDTH - GUTTER) * 99.5 / STEPS, 22 + ROW * 3.5, "b - r > 60")  # blue
    page.press("+")
    page.press("ArrowRight")
    page.press("f")


def test_an_answer_has_at_most_the_cells_that_were_asked_for(show, page):
    target = show("job", "ranks")
    sizes = page.js(f"""Promise.all(['columns=50&rows=6', 'columns=4000&rows=4000', 'columns=0', 'columns=9999', 'ranks=x']
        .map((words) =>
        fetch('/api/map?target={target}&' + words).then(async (answer) => {{ const b = await answer.arrayBuffer();
            return [answer.status, answer.ok ? b.byteLength - 8 - new DataView(b).getUint32(4, true) : 0]; }})))""")
    assert sizes == [[200, 300], [200, RANKS * STEPS], [400, 0], [400, 0], [400, 0]]


# --- the picker ---------------------------------------------------------------------------------------------------

def test_a_choice_of_ranks_holds_in_every_tab_and_in_the_address(show, page):
    show("job", "overview")
    page.says(".verdict h1", ".")
    page.click(".ranks summary")
    page.see(".ranks label")
    assert len(page.texts(".ranks label")) == RANKS
    page.shot("ranks-picker-light")
    page.click(".ranks label:nth-child(4) input")
    page.click(".ranks label:nth-child(5) input")
    page.until("location.hash.endsWith('?ranks=3-4')")
    page.press("Escape")
    assert page.says(".verdict h1", "Ranks 3–4: ").startswith("Ranks 3–4: 200 steps, median 8.")
    whole = page.text("header .program")
    assert whole == "made · 24 ranks"
    for tab in ("timeline", "ranks", "flame", "source", "devices", "sql", "overview"):
        page.tab(tab)
        page.until("location.hash.includes('ranks=3-4')")
        assert page.text(".ranks summary") == "Ranks 3–4 ▾", tab
    page.tab("ranks")
    page.says(".bar [role=status]", "2 ranks × 200 steps")
    page.tab("timeline")
    page.js("location.hash = location.hash.replace(/timeline.*/, 'timeline?v0=896000000&v1=906000000&ranks=3-4')")
    page.drawn()
    x = GUTTER + (WIDTH - GUTTER) * 62 // 100  # rank 3 comes first and arrives at 902 ms; its steps overlap and take two rows
    hover_until_tip(page, x, COLLECTIVES_Y + 16, "all_reduce .*\\n.*\\nrank 3 came last")
    page.click(".ranks summary")
    page.see(".ranks label")
    choose_ranks(page, "5, 7-9", "ranks=5%2C7-9")
    page.click(".ranks .row button")
    page.until("!location.hash.includes('ranks')")


# --- imported traces ------------------------------------------------------------------------------------------------

def test_device_time_of_each_rank_is_a_bar(show, page):
    show("trace", "overview")
    page.see(".breakdown")
    assert [text.split("\n")[0] for text in page.texts(".bar-of-rank")] == ["rank 0", "rank 1"]
    label = page.js("document.querySelector('.bar-of-rank .spent').getAttribute('aria-label')")
    assert label.startswith("compute ") and "exposed communication " in label and "copies " in label and "idle " in label
    assert page.js("document.documentElement.scrollWidth") == WIDTH
    for dark in (True, False):
        page.theme(dark)
        page.see(".breakdown")
        page.shot(f"ranks-breakdown-{'dark' if dark else 'light'}")


def test_streams_are_tracks_and_an_arrow_leads_from_the_launch_to_the_kernel(show, page):
    target = show("trace", "timeline")
    page.drawn()
    head = page.js(f"""fetch('/api/zones?target={target}&from=0&to=1').then(async (answer) => {{ const b = await answer.arrayBuffer();
        return JSON.parse(new TextDecoder().decode(new Uint8Array(b, 8, new DataView(b).getUint32(4, true)))); }})""")
    queues = [(lane["rank"], lane["name"].split(",")[0]) for lane in head["lanes"] if lane["kind"] == "queue"]
    assert sorted(queues) == [(0, "stream 20"), (0, "stream 7"), (1, "stream 20"), (1, "stream 7")]
    assert [lane["kind"] for lane in head["lanes"] if lane["rank"] == 0][:2] == ["critical", "thread"]
    rows = page.js(f"fetch('/api/joins?target={target}&of=launches&ranks=0').then((answer) => answer.json())")["rows"]
    op = next(row for row in rows if row["name"].startswith("ampere"))
    lane = next(lane for lane in head["lanes"] if lane["kind"] == "queue" and lane["rank"] == 0 and "stream 7" in lane["name"])
    thread = next(lane for lane in head["lanes"] if lane["kind"] == "thread" and lane["tid"] == op["tid"] and lane["rank"] == 0)
    view = f"v0={op['queued_ns'] - 200_000}&v1={op['end_ns'] + 200_000}"
    page.move(700, 60)
    for name, at in (("kernel", f"{lane['id']}.0.{op['start_ns'] + 1000}"), ("host", f"{thread['id']}.0.{op['queued_ns']}")):
        show("trace", "timeline", f"?{view}")
        page.until("document.querySelector('.drawer').hidden")
        page.move(700, 60)
        empty = over_pixels(page)
        show("trace", "timeline", f"?{view}&sel={at}")
        page.see(".drawer h3")
        page.until(f"""(() => {{ const c = document.querySelector('.stage canvas.over');
            const d = c.getContext('2d').getImageData(140, 50, c.width - 150, c.height - 60).data; let n = 0;
            for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n > {empty} + 60; }})()""")
        page.shot(f"ranks-arrow-{name}-light")


def test_an_arrow_leads_from_the_forward_operator_to_the_backward_one(show, page):
    target = show("trace", "timeline")
    page.drawn()
    rows = page.js(f"fetch('/api/joins?target={target}&of=links&ranks=0').then((answer) => answer.json())")["rows"]
    link = rows[0]
    assert link["from_name"] == "aten::addmm" and link["to_name"].endswith("AddmmBackward0") and link["from_ns"] < link["to_ns"]
    head = page.js(f"""fetch('/api/zones?target={target}&from=0&to=1').then(async (answer) => {{ const b = await answer.arrayBuffer();
        return JSON.parse(new TextDecoder().decode(new Uint8Array(b, 8, new DataView(b).getUint32(4, true)))); }})""")
    thread = next(lane for lane in head["lanes"] if lane["kind"] == "thread" and lane["tid"] == link["tid"] and lane["rank"] == 0)
    view = f"v0={link['from_ns'] - 200_000}&v1={link['to_ns'] + 400_000}"
    show("trace", "timeline", f"?{view}")
    page.until("document.querySelector('.drawer').hidden")
    page.move(700, 60)
    empty = over_pixels(page)
    show("trace", "timeline", f"?{view}&sel={thread['id']}.0.{link['to_ns'] + 1000}")
    page.see(".drawer h3")
    page.until(f"""(() => {{ const c = document.querySelector('.stage canvas.over');
        const d = c.getContext('2d').getImageData(140, 50, c.width - 150, c.height - 60).data; let n = 0;
        for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n > {empty} + 60; }})()""")
    page.shot("ranks-arrow-backward-light")


# --- reports --------------------------------------------------------------------------------------------------------

def test_a_report_of_a_job_answers_the_same_without_a_server(folder, page):
    page.open(f"file://{folder}/job.html#/timeline?v0=896000000&v1=906000000")
    page.drawn()
    x = GUTTER + (WIDTH - GUTTER) * 4 // 10
    assert "rank 3 came last, 3." in hover_until_tip(page, x, COLLECTIVES_Y, "came last")
    page.tab("ranks")
    page.says(".bar [role=status]", f"{RANKS} ranks × {STEPS} steps")
    until_colour(page, GUTTER + (WIDTH - GUTTER) * 99.5 / STEPS, 22 + ROW * 3.5, "r - b > 60")
    page.js("location.hash = '#/overview?ranks=3'")
    page.says(".verdict h1", "^Rank 3: ")
    page.open(f"file://{folder}/trace.html")
    assert len(page.texts(".bar-of-rank")) == 2
    data = json.loads(page.js("document.getElementById('kymo-data').textContent"))
    assert len(data["joined"]["launches"]) > 50 and len(data["joined"]["collectives"]) == 6 and len(data["joined"]["links"]) > 50


def test_nothing_failed_and_nothing_was_fetched_from_elsewhere(page):
    seen = page.seen()
    assert [text for text in seen["errors"] if "400 (Bad Request)" not in text] == []
    assert [one for one in seen["requests"] if not one.startswith("file:")] == []
    assert [one for one in seen["refused"] if "/api/map?" not in one] == []
