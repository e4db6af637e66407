"""make demo: everything on one timeline, in one run."""
import csv
import fcntl
import importlib.util
import io
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from conftest import ROOT

KYMO = ROOT / "build/kymo"
STEPS = 60  # so many that one which waits for the disk does not outweigh the others
# What a step launches: module, function, the plugin's region (vAccel's) and zone (Tracy's), kind and name.
LAUNCHES = [
    ("", "load_batch", "denoise", "upload", "write", "write"),
    ("", "load_batch", "denoise", "compute", "kernel", "blur_rows"),
    ("", "load_batch", "denoise", "compute", "kernel", "blur_columns"),
    ("", "load_batch", "denoise", "download", "read", "read"),
    ("stem.edges", "Edges.forward", "edges", "upload", "write", "write"),
    ("stem.edges", "Edges.forward", "edges", "compute", "kernel", "sobel"),
    ("stem.edges", "Edges.forward", "edges", "download", "read", "read"),
]


def reason_to_skip():
    if not any(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd")):
        return "no OpenCL device: pocl-opencl-icd is missing (make setup)"
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed: make setup"
    return None


def in_terminal(command, env):
    """The exit status and what is shown, on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    child = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # how a terminal ends
            data = b""
        if not data:
            break
        seen += data
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", seen.decode().replace("\r\n", "\n"))
    return child.wait(), [line.split("\r")[-1] for line in text.splitlines()]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder in the tree, as the demo's own, and an environment with nothing of ours in it."""
    folder, trial = tmp_path_factory.mktemp("demo"), ROOT / "build/trial"
    (folder / "live").mkdir(mode=0o700)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KYMO", "VACCEL", "OPENCL", "OCL", "NO_COLOR", "COLUMNS"))}
    env = {**clean, "KYMO_DIR": str(folder / "live"), "XDG_STATE_HOME": str(folder), "POCL_CACHE_DIR": str(trial / "pocl"),
           "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    return trial, env


@pytest.fixture(scope="module")
def demo(place):
    """The lines that the demo shows."""
    why = reason_to_skip()
    if why:
        pytest.skip(why)
    folder, env = place
    status, lines = in_terminal(["tools/demo", str(STEPS), str(folder.relative_to(ROOT))], env)
    assert status == 0, "\n".join(lines)
    return lines


def ask(place, sql):
    folder, env = place
    done = subprocess.run([KYMO, "query", "-f", "csv", folder / "run", sql], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [tuple(row) for row in csv.reader(io.StringIO(done.stdout))][1:]


def test_it_fits_a_terminal_and_says_where_its_page_is(demo, place):
    pages = [line for line in demo if line.startswith("file://")]
    assert pages == [f"file://{place[0]}/report.html"]
    assert (place[0] / "report.html").stat().st_size > 100_000
    assert [line for line in demo if len(line) > 80 and line not in pages] == []
    assert not [line for line in demo if line.startswith("demo:")]  # nothing is left out


def test_it_shows_a_summary_and_the_answer_of_one_query(demo):
    assert any(line.startswith(f"  {STEPS} steps   median ") for line in demo)
    at = demo.index("step  module      function       region   zone      operation      us")
    rows = [line.split() for line in demo[at + 2:at + 9]]
    step = str((STEPS - 1) // 2)
    assert [row[:-1] for row in rows] == [
        [step, module or "NULL", function, region, zone, name] for module, function, region, zone, _, name in LAUNCHES]


def test_every_operation_has_its_step_module_function_and_zones(demo, place):
    """The first step begins within a wait for data, and calls are recorded from there on; of the others the calls show as much."""
    assert ask(place, "SELECT step, module, function, path[-2], zone, kind, name FROM device.launches ORDER BY queued_ns") == [
        (str(step), module or ("" if step else "DataLoader.next"), *row) for step in range(STEPS) for module, *row in LAUNCHES]
    assert ask(place, "SELECT DISTINCT function, regexp_extract(file, 'examples/.*') FROM device.launches ORDER BY 1") == [
        ("Edges.forward", "examples/pictures/train.py"), ("load_batch", "examples/pictures/pictures.py")]
    assert ask(place, "SELECT DISTINCT path[1] FROM device.launches WHERE function = 'Edges.forward'") == [("train_step",)]


def test_an_operation_is_queued_within_its_zone_and_that_is_within_its_step(demo, place):
    """And in its module's forward, by the rows of modules: one clock for all."""
    assert ask(place, """
        SELECT count(*), count(*) FILTER (queued_ns BETWEEN z.start_ns - error_ns AND z.start_ns + z.duration_ns + error_ns),
               count(*) FILTER (z.start_ns >= s.start_ns AND z.start_ns + z.duration_ns <= s.start_ns + s.duration_ns)
        FROM device.ops o JOIN trace.zones z ON z.tid = o.tid AND z.start_ns = o.zone_start_ns AND z.name = o.zone
        JOIN trace.steps s ON s.pid = o.pid AND s.step = o.step""") == [(str(7 * STEPS),) * 3]
    assert ask(place, """
        SELECT o.name, count(*) FROM device.launches o JOIN python.torch_trace t ON t.tid = o.tid AND t.module = o.module
          AND t.step = o.step AND o.zone_start_ns BETWEEN t.ts_ns AND t.ts_ns + t.duration * 1e9
        WHERE t.stage = 'forward' GROUP BY 1 ORDER BY 1""") == [
            ("read", str(STEPS)), ("sobel", str(STEPS)), ("write", str(STEPS))]


def test_the_join_of_the_docs_says_the_same(demo, place):
    blocks = [block.split("```")[0] for block in (ROOT / "docs/devices.md").read_text().split("```sql\n")[1:]]
    sql = next(block for block in blocks if "QUALIFY" in block)
    assert sorted(ask(place, sql)) == sorted(ask(place, "SELECT step, function, zone, name, duration_ns FROM device.launches"))


def test_it_finds_what_is_slow_on_purpose(demo, place):
    folder, env = place
    done = subprocess.run([KYMO, "report", "-f", "json", folder / "run"], env=env, capture_output=True, text=True, check=True)
    assert "data" in [verdict["name"] for verdict in json.loads(done.stdout)["verdicts"]]


FILTERED = """
import pictures
clean, shapes = pictures.load_batch(range(4))
edges = clean[:]
pictures.filters.edges(clean.buffer_info()[0], edges.buffer_info()[0], 4, pictures.SIDE)
print(pictures.filters.device_name().decode(), *[f"{pixel:.4f}" for pixel in clean[::97] + edges[::97]])
"""


def test_without_a_device_the_processor_filters_the_same(demo, place):
    folder, env = place
    env = {**env, "FILTERS": str(folder / "libfilters.so"), "KYMO": "off", "PYTHONPATH": str(ROOT / "examples/pictures")}
    there, none = (subprocess.run([sys.executable, "-c", FILTERED], env={**env, **more}, capture_output=True, text=True, check=True)
                   .stdout for more in ({}, {"OCL_ICD_VENDORS": "/nonexistent"}))
    assert none.startswith("the processor ") and not there.startswith("the processor ")
    assert there.split()[-86:] == none.split()[-86:]
