"""kymo.overhead: what recording and watching have cost, measured."""
import re
import struct
import sys

import pytest

from conftest import KYMO, PROGS
from probe_tools import rows


def test_the_collectors_own_processor_time_is_a_row_and_in_the_summary(kymo):
    done = kymo("run", "-o", "run", "--", PROGS / "run_rows", "100000", "10", env={"KYMO_QUIET": "0", "KYMO_SYSTEM_RATE": "0.02"})
    assert done.status == 0
    got = {row["source"]: row for row in rows(kymo, "run", "FROM kymo.overhead")}
    assert set(got) - {"native"} == {"c", "collector"}
    assert got["c"]["events"] == 100000 and got["c"]["cost_ns_per_event"] > 0
    collector = got["collector"]
    assert collector["events"] >= 2 and 0 < collector["total_ns"] < 60e9
    assert collector["cost_ns_per_event"] == pytest.approx(collector["total_ns"] / collector["events"], abs=0.06)
    run, = rows(kymo, "run", "SELECT duration_ns FROM kymo.runs")
    assert abs(collector["pct"] - 100 * collector["total_ns"] / run["duration_ns"]) < 0.01
    assert re.search(r"losses: .*; overhead <? ?[\d.]+ %; kymo used <? ?[\d.]+ % of a core\n", done.err)
    assert "% of a core" in kymo("report", "run").out
    over_time = rows(kymo, "run", "SELECT source, cost_ns FROM kymo.costs ORDER BY ts_ns")
    assert over_time[-1] == {"source": "collector", "cost_ns": collector["total_ns"]}


def test_the_sampler_is_a_row_of_its_own_and_not_counted_twice(kymo):
    done = kymo("run", "-o", "run", "--", sys.executable, "-c", "import time; time.sleep(1.5)",
                env={"KYMO_QUIET": "0", "KYMO_SAMPLE_RATE": "0.002"})
    assert done.status == 0
    got = {row["source"]: row for row in rows(kymo, "run", "FROM kymo.overhead")}
    sampler, collector = got["sampler"], got["collector"]
    samples, = rows(kymo, "run", "SELECT count(DISTINCT (ts_ns, pid)) AS n FROM python.samples")
    assert sampler["events"] >= samples["n"] > 10
    assert sampler["total_ns"] > 0 and sampler["cost_ns_per_event"] == pytest.approx(sampler["total_ns"] / sampler["events"], abs=0.06)
    assert collector["total_ns"] > 0
    assert re.search(r"\n  CPU usage: collector <? ?[\d.]+ %, sampler <? ?[\d.]+ % of a core\n", kymo("report", "run").out)


def test_what_an_adapter_measured_is_the_cost_of_its_zones(kymo):
    """Zones of Python are priced by their own adapter's measurement, and by nothing where there is none."""
    path = kymo.record("plain")
    names = next(path.glob("p*/names"))
    data = bytearray(names.read_bytes())
    count, = struct.unpack_from("<Q", data, 16)
    for i in range(1, count):  # all names become Python's
        struct.pack_into("<I", data, 64 + 32 * i + 4, 1)
    names.write_bytes(data)
    got, = rows(kymo, path, "FROM kymo.overhead")
    assert got["source"] == "python" and got["events"] > 0
    assert (got["cost_ns_per_event"], got["total_ns"], got["pct"]) == (None, None, None)
    control = next(path.glob("p*/control"))
    page = bytearray(control.read_bytes())
    head_bytes, = struct.unpack_from("<I", page, 12)
    at = head_bytes - 8 * (56 + 8)  # source_cost_ticks, before what is reserved
    struct.pack_into("<Q", page, at + 8, 1000)
    control.write_bytes(page)
    got, = rows(kymo, path, "FROM kymo.overhead")
    assert 100 < got["cost_ns_per_event"] < 2000 and got["total_ns"] > 0


def thread_local_bytes(file):
    """The size of the segment that each thread of a program gets as a copy of its own (PT_TLS)."""
    image = file.read_bytes()
    at, = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    parts = [struct.unpack_from("<IIQQQQQQ", image, at + i * size) for i in range(count)]
    return sum(part[6] for part in parts if part[0] == 7)


def test_a_thread_of_kymo_clears_little_memory():
    # libc clears it at the start of each thread, that of a command that only prints its version too.
    assert thread_local_bytes(KYMO) < 16384
