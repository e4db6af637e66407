"""libkymo_nvtx.so: programs that are marked with NVTX, recorded by `kymo run` without a change."""
import importlib.util
import pathlib
import subprocess
import sys

import pytest
from marked_home import Marked
from programs import BUILD, HERE, said

VARIABLE = "NVTX_INJECTION64_PATH"


def headers():
    """The folder with nvtx3/, of the package nvidia-nvtx."""
    for folder in map(pathlib.Path, sys.path):
        if (folder / "nvidia/cu13/include/nvtx3/nvToolsExtPayload.h").exists():
            return folder / "nvidia/cu13/include"
    pytest.skip("nvidia-nvtx, which has the headers of NVTX, is not installed")
    return None


@pytest.fixture(scope="module")
def checks(tmp_path_factory):
    out = tmp_path_factory.mktemp("nvtx") / "nvtx_checks"
    said(["cc", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{headers()}", HERE / "nvtx_checks.c", "-o", out, "-ldl", "-pthread"])
    return out


@pytest.fixture(scope="module")
def everything(checks, tmp_path_factory):
    home = Marked(tmp_path_factory.mktemp("everything"), VARIABLE)
    home.said = home.record(checks)
    return home


@pytest.fixture
def home(tmp_path):
    return Marked(tmp_path, VARIABLE)


def test_ranges_have_their_domain_category_and_depth(everything):
    assert everything.rows("SELECT name, file, depth FROM trace.zones WHERE source = 'nvtx' AND thread NOT LIKE '%(ranges)' "
                           "ORDER BY start_ns") == [
        {"name": "by the worker", "file": None, "depth": 0},
        {"name": "push ascii", "file": None, "depth": 0},
        {"name": "push wide 🐍", "file": None, "depth": 1},
        {"name": "push ex", "file": None, "depth": 2},
        {"name": "categorised", "file": "seven", "depth": 0},
        {"name": "categorised", "file": "9", "depth": 0},
        {"name": "registered", "file": "checks", "depth": 0},
        {"name": "registered wide", "file": "checks", "depth": 1},
        {"name": "registered wide", "file": "checks/io", "depth": 0},
        {"name": "(no message)", "file": "checks", "depth": 0},
        {"name": "payload", "file": "checks", "depth": 0},
        {"name": "payload", "file": "checks", "depth": 0},
        {"name": "static schema", "file": "checks", "depth": 0},
        {"name": "dynamic", "file": "checks", "depth": 0},
        {"name": "the lock", "file": "checks", "depth": 0},
    ]


def test_ranges_by_start_and_end_are_ranges_of_the_thread_that_began_them(everything):
    assert everything.rows("SELECT name, thread FROM trace.zones WHERE thread LIKE '%(ranges)' ORDER BY start_ns") == [
        {"name": "crossing", "thread": "nvtx main (ranges)"},
        {"name": "range of the worker", "thread": "worker of nvtx (ranges)"},
        {"name": "start ascii", "thread": "nvtx main (ranges)"},
        {"name": "start wide", "thread": "nvtx main (ranges)"},
        {"name": "dynamic", "thread": "nvtx main (ranges)"},
    ]


def test_a_thread_is_named_by_another_one(everything):
    """Before its first row ("named early"), and again after it."""
    assert everything.rows("SELECT thread FROM trace.zones WHERE name = 'by the worker'") == [{"thread": "worker of nvtx"}]


def test_payloads_are_texts_of_their_ranges(everything):
    assert everything.rows("SELECT name, text FROM trace.zone_text ORDER BY start_ns, text") == [
        {"name": "payload", "text": "payload=9223372036854775808"},
        {"name": "payload", "text": "payload=0.5"},
        {"name": "static schema", "text": "count=4 ratio=0.25 values=[1,2,3.5] operation=MAX place={x=-1 y=7} text=pointed to "
                                          "fixed=inline string=by handle"},
        {"name": "dynamic", "text": "length=3 sizes=[10,20,30] after=-5"},
        {"name": "dynamic", "text": "payload=-5"},
        {"name": "dynamic", "text": "length=3 sizes=[10,20,30] after=-5"},
        {"name": "dynamic", "text": "payload=-5"},
    ]


def test_marks_have_domain_category_and_payload_as_text(everything):
    assert everything.rows("SELECT name, text FROM trace.marks ORDER BY ts_ns") == [
        {"name": "mark ascii", "text": None},
        {"name": "mark wide €", "text": None},
        {"name": "mark ex", "text": "payload=-3"},
        {"name": "registered wide", "text": "checks/io"},
        {"name": "dynamic", "text": "checks; length=3 sizes=[10,20,30] after=-5"},
        {"name": "NVTX resource name", "text": "pointer 0x1234: the pool"},
    ]


def test_counters_are_counters(everything):
    assert everything.rows("SELECT name, value FROM trace.counters ORDER BY ts_ns") == [
        {"name": "temperature", "value": 36.5}, {"name": "temperature", "value": 37.0},
        {"name": "slots.used", "value": 30.0}, {"name": "slots.free", "value": 70.0}]


def test_the_program_gets_what_it_gets_without_a_tool(everything, checks):
    """Levels are -2 in both cases; whether a domain is enabled is what a tool is asked for."""
    assert said([checks], env={key: text for key, text in everything.env.items() if key != VARIABLE}) == "-2\n0\n"
    assert everything.said == "-2\n1\n"


def test_what_is_open_at_sigkill_is_shown(home, checks):
    home.record(checks, "kill", status=-9)
    assert home.rows("SELECT name, source FROM trace.open_zones ORDER BY name") == [
        {"name": "last", "source": "nvtx"}, {"name": "pending", "source": "nvtx"}]


def test_names_without_end_become_one_and_no_range_vanishes(home, checks):
    count = 20_000
    home.record(checks, "names", count)
    (zones,) = home.rows("SELECT count(*) AS rows, count(DISTINCT name) AS names FROM trace.zones")
    assert zones == {"rows": count, "names": 4096 + 1}
    (texts,) = home.rows("SELECT count(*) AS texts, count(DISTINCT text) AS kinds, min(name) AS name, max(name) AS last "
                         "FROM trace.zone_text")
    assert texts == {"texts": count - 4096, "kinds": count - 4096, "name": "item # of #", "last": "item # of #"}


def test_each_library_of_a_program_is_recorded_also_after_one_is_unloaded(home, checks, tmp_path):
    plugin = tmp_path / "plugin.so"
    said(["cc", "-O2", "-shared", "-fPIC", f"-I{headers()}", HERE / "nvtx_plugin.c", "-o", plugin, "-ldl"])
    home.record(checks, "plugin", plugin)
    assert home.rows("SELECT name FROM trace.zones ORDER BY start_ns") == [{"name": "of the plugin"}, {"name": "of the program"}]


def test_a_forked_child_records_its_own_ranges(home, checks):
    home.record(checks, "fork")
    assert home.rows("SELECT name, count(*) AS n, count(DISTINCT pid) AS pids FROM trace.zones GROUP BY name ORDER BY name") == [
        {"name": "before the fork", "n": 1, "pids": 1}, {"name": "both", "n": 2, "pids": 2},
        {"name": "in the child", "n": 1, "pids": 1}]


def test_wrong_payloads_and_handles_do_not_end_the_program(home, checks):
    home.record(checks, "broken")
    texts = [row["text"] for row in home.rows("SELECT text FROM trace.zone_text ORDER BY start_ns, text")]
    assert texts[0].startswith("number=5 pointer=0x10 list=[")
    assert home.rows("SELECT count(*) AS open FROM trace.open_zones") == [{"open": 0}]


def test_a_tool_of_the_user_is_not_replaced(home):
    home.record("sh", "-c", f'test "${VARIABLE}" = /their/tool.so', **{VARIABLE: "/their/tool.so"})


def test_an_empty_variable_of_the_user_is_not_replaced(home):
    home.record("sh", "-c", f'test "${{{VARIABLE}-unset}}" = ""', **{VARIABLE: ""})


def test_a_library_while_recording_is_off_changes_nothing(home, checks):
    assert home.run(checks, **{VARIABLE: str(BUILD / "libkymo_nvtx.so"), "KYMO": "off"}) == "-2\n0\n"
    assert home.recordings() == []


def test_both_names_of_the_entry_are_exported_and_return_1():
    code = ("import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); "
            "print(library.InitializeInjectionNvtx2(None), library.InitializeInjectionNvtx(None), "
            "library.InitializeInjectionNvtxExtension(None))")
    assert said([sys.executable, "-c", code, BUILD / "libkymo_nvtx.so"]) == "1 1 1\n"


PYTHON = """
import nvtx
with nvtx.annotate("annotated", domain="python", category="loop", payload=3):
    pass
@nvtx.annotate()
def decorated():
    nvtx.mark("marked", domain="python")
decorated()
range = nvtx.start_range("started")
nvtx.end_range(range)
nvtx.push_range("pushed")
nvtx.pop_range()
"""


@pytest.mark.parametrize("options", [[], ["--python"]], ids=["plain", "with calls"])
def test_ranges_of_the_package_nvtx_arrive_also_where_calls_are_recorded(home, tmp_path, options):
    if not importlib.util.find_spec("nvtx"):
        pytest.skip("nvtx is not installed")
    (tmp_path / "marks.py").write_text(PYTHON)
    home.record(sys.executable, tmp_path / "marks.py", options=options)
    assert home.rows("SELECT name, file FROM trace.zones WHERE source = 'nvtx' ORDER BY start_ns") == [
        {"name": "annotated", "file": "python/loop"}, {"name": "decorated", "file": None},
        {"name": "started", "file": None}, {"name": "pushed", "file": None}]
    texts = home.rows("SELECT name, text FROM trace.zone_text WHERE name NOT LIKE 'gc %'")
    assert texts == [{"name": "annotated", "text": "payload=3"}]
    assert home.rows("SELECT name, text FROM trace.marks") == [{"name": "marked", "text": "python"}]


TORCH = """
import torch
try:
    torch.cuda.nvtx.range_push("pushed")
except RuntimeError:
    raise SystemExit(9)
torch.cuda.nvtx.range_pop()
with torch.cuda.nvtx.range("scoped {}", 7):
    torch.cuda.nvtx.mark("marked")
"""
DALI = """
from nvidia.dali import fn, pipeline_def
@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def numbers():
    return fn.random.uniform(range=[0, 1], shape=[4])
pipe = numbers()
pipe.build()
pipe.run()
"""


@pytest.mark.parametrize("package, program", [("torch", TORCH), ("nvidia.dali", DALI)], ids=["torch", "dali"])
def test_packages_with_ranges_are_recorded(home, tmp_path, package, program):
    try:
        found = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        found = None
    if not found:
        pytest.skip(f"{package} is not installed")
    (tmp_path / "marks.py").write_text(program)
    if package == "torch" and subprocess.run([sys.executable, tmp_path / "marks.py"], check=False, capture_output=True).returncode:
        pytest.skip("torch is built without CUDA, and so without NVTX")
    home.record(sys.executable, tmp_path / "marks.py")
    assert home.rows("SELECT count(*) > 0 AS any FROM trace.zones WHERE source = 'nvtx'") == [{"any": True}]
