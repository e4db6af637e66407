"""libkymo_itt.so: programs that are marked with the ITT API, recorded by `kymo run` without a change."""
import importlib.util
import subprocess
import sys

import pytest
from marked_home import Marked
from programs import BUILD, HERE, said

VARIABLE = "INTEL_LIBITTNOTIFY64"


@pytest.fixture(scope="module")
def checks(tmp_path_factory):
    out = tmp_path_factory.mktemp("itt") / "itt_checks"
    said(["cc", "-O2", "-Wall", "-Wextra", "-Werror", HERE / "itt_checks.c", "-o", out, "-ldl", "-pthread"])
    return out


@pytest.fixture
def home(tmp_path):
    return Marked(tmp_path, VARIABLE)


@pytest.mark.parametrize("more", [{}, {"KYMO_OPENCV": "on"}], ids=["plain", "with OpenCV"])
def test_each_kind_of_mark_arrives(home, checks, more):
    home.record(checks, **more)
    zones = {row["name"]: row for row in home.rows("SELECT * FROM trace.zones")}
    assert {row["source"] for row in zones.values()} == {"itt"}
    assert set(zones) == {"outer", "inner", "first", "second", "region", "checks", "other", "event"}
    assert (zones["outer"]["depth"], zones["inner"]["depth"]) == (0, 1)
    assert (zones["outer"]["file"], zones["inner"]["file"]) == ("checks", "other")
    assert zones["first"]["thread"] == "marked (ranges)" and zones["outer"]["thread"] == "marked"
    assert home.rows("SELECT name, text FROM trace.zone_text ORDER BY ALL") == [
        {"name": "first", "text": "of=first"}, {"name": "inner", "text": "sizes=3,4"}, {"name": "outer", "text": "layer=conv"}]
    assert home.rows("SELECT name, value FROM trace.counters ORDER BY ALL") == [
        {"name": "bytes", "value": 40.0}, {"name": "bytes", "value": 42.0}, {"name": "load", "value": 0.5}]
    assert home.rows("SELECT name, text FROM trace.marks") == [{"name": "marker", "text": "checks"}]


def test_what_is_open_at_sigkill_is_shown(home, checks):
    home.record(checks, "kill", status=-9)
    assert home.rows("SELECT name, source FROM trace.open_zones ORDER BY name") == [
        {"name": "last", "source": "itt"}, {"name": "pending", "source": "itt"}]


def test_a_collector_of_the_user_is_not_replaced(home, checks):
    home.record("sh", "-c", f'test "${VARIABLE}" = /their/collector.so', **{VARIABLE: "/their/collector.so"})


def test_without_kymo_run_nothing_is_loaded(home, checks):
    done = subprocess.run([str(checks)], env=home.env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (3, "no collector\n")


def test_a_collector_while_recording_is_off_changes_nothing(home, checks):
    home.run(checks, **{VARIABLE: str(BUILD / "libkymo_itt.so"), "KYMO": "off"})
    assert home.recordings() == []


TORCH = """
import torch
torch.profiler.itt.range_push("pushed")
torch.ones(8).sum()
torch.profiler.itt.mark("marked")
torch.profiler.itt.range_pop()
with torch.profiler.itt.range("scoped"):
    torch.ones(8)
"""


def test_torch_s_ranges_arrive_also_where_calls_are_recorded(home, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "marks.py").write_text(TORCH)
    home.record(sys.executable, tmp_path / "marks.py", options=["--python"])
    # The wrappers of Python are scopes around each push and pop.
    assert {row["name"] for row in home.rows("SELECT name FROM trace.zones WHERE source = 'itt'")} >= {"pushed", "scoped", "marked"}


ITTAPI = """
import ittapi
with ittapi.task("python task", domain="tests"):
    pass
"""
OPENCV = """
import cv2, numpy
cv2.GaussianBlur(numpy.zeros((256, 256, 3), numpy.uint8), (5, 5), 1)
"""
OPENVINO = """
import numpy, openvino, openvino.opset13 as ops
value = ops.parameter([1, 8], numpy.float32)
model = openvino.Model([ops.matmul(value, ops.constant(numpy.ones((8, 8), numpy.float32)), False, False)], [value])
openvino.compile_model(model, "CPU")({0: numpy.ones((1, 8), numpy.float32)})
"""


@pytest.mark.parametrize("package, program", [("ittapi", ITTAPI), ("cv2", OPENCV), ("openvino", OPENVINO)],
                         ids=["ittapi", "cv2", "openvino"])
def test_packages_with_marks_are_recorded(home, tmp_path, package, program):
    if not importlib.util.find_spec(package):
        pytest.skip(f"{package} is not installed")
    (tmp_path / "marks.py").write_text(program)
    home.record(sys.executable, tmp_path / "marks.py", KYMO_OPENCV="on")
    assert home.rows("SELECT count(*) > 0 AS any FROM trace.zones WHERE source = 'itt'") == [{"any": True}]
