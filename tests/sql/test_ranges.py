"""Zones that do not nest (tests/progs/ranges.c): on a lane of their own in every table, export and timeline."""
import json
import os
import subprocess

import pytest
from conftest import PROGS, Recording


@pytest.fixture(scope="module", params=["ended", "killed"])
def ranges(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("ranges")
    (home / "live").mkdir(mode=0o700)
    words = ["kill"] if request.param == "killed" else []
    done = subprocess.run([PROGS / "ranges", *words], env={**os.environ, "KYMO": "on", "KYMO_DIR": str(home / "live")},
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == (-9 if words else 0), done.stderr
    recording = Recording(os.path.dirname(done.stdout.strip()), home)
    recording.killed = bool(words)
    return recording


def test_each_has_a_row_with_its_whole_time_on_the_lane_of_its_thread(ranges):
    assert ranges("SELECT name, thread, depth FROM trace.zones WHERE name NOT IN ('start', 'work') ORDER BY start_ns") == (
        "outlasts,main (ranges),0\ncrosses,main (ranges),1\nsent,main (ranges),0")
    assert ranges("SELECT name, count(*) FROM trace.zones WHERE name <> 'work' AND duration_ns > 3_900_000"
                  " GROUP BY name HAVING name <> 'start' ORDER BY name") in ("crosses,1\noutlasts,1", "crosses,1\noutlasts,1\nsent,1")
    assert ranges("SELECT DISTINCT z.tid = t.tid FROM trace.zones z, trace.zones t WHERE z.name = 'sent' AND t.name = 'work'") == "true"
    assert ranges("SELECT text FROM trace.zone_text") == "by another thread"


def test_the_zones_beside_them_keep_their_depth_and_self_time(ranges):
    assert ranges("SELECT DISTINCT name, depth, thread FROM trace.zones WHERE name IN ('start', 'work') ORDER BY name") == (
        "start,0,main\nwork,0,main")
    assert ranges("SELECT name FROM trace.regions WHERE self_ns <> total_ns") == ""


def test_zones_of_one_lane_and_depth_never_overlap(ranges):
    assert ranges("SELECT count(*) FROM trace.zones a, trace.zones b WHERE a.thread = b.thread AND a.depth = b.depth"
                  " AND a.start_ns < b.start_ns AND a.start_ns + a.duration_ns > b.start_ns") == "0"


def test_open_ranges_are_listed_until_they_end(ranges):
    assert ranges("SELECT name, thread FROM trace.open_zones ORDER BY start_ns") == (
        "outlasts,main (ranges)\npending,main (ranges)\nlast,main" if ranges.killed else "")
    assert ranges("SELECT count, open FROM trace.regions WHERE name = 'outlasts'") == ("1,1" if ranges.killed else "1,0")


def test_exports_do_not_cut_them(ranges):
    done = ranges.run("export", ranges.path, "-f", "chrome", "-o", "-")
    assert done.returncode == 0, done.stderr.decode()
    times = {event["name"]: event["dur"] for event in json.loads(done.stdout)["traceEvents"] if event["ph"] == "X"}
    assert times["outlasts"] > 3900 and times["crosses"] > 3900
    for form in ("perfetto", "speedscope", "folded"):
        assert ranges.run("export", ranges.path, "-f", form, "-o", "-").returncode == 0


def test_a_snapshot_and_a_packed_file_have_them(ranges):
    place = ranges.home / "run.kymo"
    assert ranges.run("pack", ranges.path, place, "--force").returncode == 0
    query = "SELECT name, thread, depth FROM trace.zones ORDER BY start_ns"  # the clock is measured anew by each command
    assert Recording(place, ranges.home)(query) == ranges(query)
