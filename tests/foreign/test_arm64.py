"""libkymo on ARM64: compiled for it, run by an emulator, read by the kymo of this machine. The emulator computes as the other
processor does; the order in which that one shows stores to others is not seen here (ThreadSanitizer looks at it)."""
import shutil
import subprocess

import pytest
from programs import KYMO, ROOT, Home, said

CC, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
# Its loader is named, not found by qemu's -L: that would send the walk from / to a directory into the folder of libraries.
LOADER = ["/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1", "--library-path", "/usr/aarch64-linux-gnu/lib"]
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror", f"-I{ROOT}/include", f"-I{ROOT}/src"]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    for tool in (CC, EMULATOR):
        if not shutil.which(tool):
            pytest.skip(f"there is no {tool}: make setup")
    out = tmp_path_factory.mktemp("arm64")
    folders = ("base", "base/files", "base/scratch", "record", "record/device")
    sources = [str(path) for folder in folders for path in sorted((ROOT / "src" / folder).glob("*.c"))]
    said([CC, *FLAGS, "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec", "-shared", *sources, "-o", out / "libkymo.so.0",
          "-Wl,-soname,libkymo.so.0", "-Wl,-z,now", "-Wl,-z,nodelete", "-pthread"], seconds=600)
    said([CC, *FLAGS, ROOT / "tests/foreign/arm64/threads.c", "-o", out / "threads", out / "libkymo.so.0", f"-Wl,-rpath,{out}",
          "-pthread"])
    return out / "threads"


@pytest.fixture(scope="module")
def home(program, tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("home"))
    done = subprocess.run([EMULATOR, *LOADER, program], env={**home.env, "KYMO": "on"}, capture_output=True,
                          text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("all turns are done\n", "")
    return home


def test_every_row_of_every_thread_reads_back(home):
    assert home.rows("SELECT name, count FROM trace.regions WHERE name = 'turn'") == [{"name": "turn", "count": 15000}]
    assert home.column("SELECT sum(value) FROM trace.counters GROUP BY thread, tid") == [12497500.0] * 3
    assert home.one("SELECT count(*) FROM kymo.streams WHERE emitted <> kept + overwritten + dropped") == 0


def test_the_counter_of_that_processor_is_read_in_nanoseconds(home):
    assert home.one("SELECT count(*) FROM trace.zones WHERE duration_ns < 0 OR duration_ns > 120e9") == 0
    assert home.one("SELECT count(*) FROM trace.marks WHERE ts_ns < 0 OR ts_ns > 120e9") == 0
    # The emulator's counter moves once a microsecond: zones may begin in one tick, so that the turn says which is meant, and
    # what was in one tick may differ by 1 ns, rounded.
    inside = home.rows("""
        WITH turns AS (SELECT tid, start_ns, start_ns + duration_ns + 1 AS end_ns,
                              row_number() OVER (PARTITION BY tid ORDER BY start_ns, duration_ns) - 1 AS turn
                       FROM trace.zones WHERE name = 'turn')
        SELECT count(*) AS rows, count(*) FILTER (ts_ns BETWEEN start_ns AND end_ns) AS inside
        FROM trace.counters c JOIN turns t ON c.tid = t.tid AND c.value = t.turn""")
    assert inside == [{"rows": 15000, "inside": 15000}]


def test_killed_inside_a_zone_it_is_still_open(home):
    (recording,) = home.recordings()
    zones = said([KYMO, "query", "-f", "csv", recording, "SELECT name FROM trace.open_zones ORDER BY name"], env=home.env)
    assert zones == "name\nin the child\nin the parent\n"
    assert home.column("SELECT name FROM trace.marks") == ["the last word"] * 2
