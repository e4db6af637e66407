"""kymo export -f chrome|perfetto, imported again, has the same rows, to the ns."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_trace  # noqa: E402
from test_import import KYMO, ROOT, Kymo, zone  # noqa: E402

TRACES = pathlib.Path(os.environ.get("KYMO_TRACES", ROOT.parent / "shared" / "traces"))
FORMATS = {"chrome": "json", "perfetto": "perfetto-trace"}
TABLES = {
    "trace.zones": "source, name, file, line, start_ns, duration_ns, depth, pid, tid, step",
    "trace.steps": "* EXCLUDE (host, rank)",
    "trace.counters": "ts_ns, name, value, pid, tid",
    "trace.marks": "ts_ns, name, pid, tid",
    "kymo.threads": "pid, tid, thread",
    "device.ops": "* EXCLUDE (host, rank)",
    "device.waits": "* EXCLUDE (host, rank)",
    "device.kernels": "* EXCLUDE (host, rank, stddev_ns)",
    "kymo.runs": "started_unix_ns",
}


def rows(kymo, run):
    made = {}
    for table, columns in TABLES.items():
        of_program = " WHERE pid IN (SELECT pid FROM kymo.processes WHERE role = 'target')" if table == "kymo.threads" else ""
        made[table] = kymo.rows(run, f"SELECT {columns} FROM {table}{of_program} ORDER BY ALL")
    return made


def check_round_trip(kymo, run, form):
    kymo("export", run, "-f", form, "-o", f"out.{FORMATS[form]}", "--force")
    kymo("import", f"out.{FORMATS[form]}", "-o", "again", "--force")
    before, after = rows(kymo, run), rows(kymo, "again")
    for table in TABLES:
        assert len(after[table]) == len(before[table]), table
        assert after[table] == before[table], table
    assert kymo.rows("again", "FROM kymo.imports WHERE became LIKE 'skipped%'") == []
    return before


@pytest.fixture
def kymo(tmp_path):
    return Kymo(tmp_path)


@pytest.mark.parametrize("form", FORMATS)
def test_an_imported_trace(kymo, form):
    make_trace.write(kymo.home / "trace.json", 3)
    kymo("import", "trace.json", "-o", "run")
    before = check_round_trip(kymo, "run", form)
    assert len(before["trace.steps"]) == 3 and before["device.ops"] and before["device.waits"] and before["device.kernels"]


@pytest.mark.parametrize("form", FORMATS)
def test_names_that_need_escapes(kymo, form):
    names = ['quote " and \\ and \\n', "tab\tnew\nline", "ünï ☃ 🦙", "</script>", "%s%n", "a" * 4000]
    values = [0.1, 1 / 3, -1e-300, 1.7976931348623157e308, 123456789.123456, 0, 2**53 + 1]
    events = [zone(name, 10 * n + 0.001, 5, tid=n % 2) for n, name in enumerate(names)]
    events += [{"ph": "C", "name": name, "pid": 7, "tid": 1, "ts": n, "args": {"value": values[n]}} for n, name in enumerate(names)]
    events += [{"ph": "i", "name": name, "pid": 7, "tid": 1, "ts": n} for n, name in enumerate(names)]
    run = kymo.take("run", events, baseTimeNanoseconds=1_700_000_000_123_456_789)
    before = check_round_trip(kymo, run, form)
    assert [row["value"] for row in before["trace.counters"]] == values[:len(names)]
    assert sorted(row["name"] for row in before["trace.zones"]) == sorted(names)


@pytest.mark.parametrize("form", FORMATS)
def test_a_recording_of_a_program(kymo, form):
    """Two threads, steps with phases, counters, marks and a device, recorded by kymo itself."""
    program = ROOT / "build/tests/progs/round_trip"
    done = subprocess.run([KYMO, "run", "--device", "-o", "run", "--", program], cwd=kymo.home, env=kymo.env, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    before = check_round_trip(kymo, "run", form)
    assert len(before["trace.zones"]) == 6 * 21
    assert [row["forward_ns"] is not None for row in before["trace.steps"]] == [True] * 5
    assert len(before["trace.counters"]) == 5 and len(before["device.waits"]) == 5
    assert len(before["device.ops"]) == 5 * (1 + 3 + 1)


REAL = [("kineto/resnet50_num_workers_0/1159569_worker0.1623143089861.pt.trace.json.gz", "chrome"),
        ("nsys/mfu_2gpu_before.sqlite", "perfetto"), ("tracelens/traces/mi300/resnet_act_checkpoint.json.gz", "perfetto")]


@pytest.mark.skipif(not TRACES.is_dir(), reason=f"no traces of real GPUs in {TRACES}; set KYMO_TRACES")
@pytest.mark.parametrize("name, form", REAL)
def test_traces_of_real_gpus(kymo, name, form):
    kymo("import", TRACES / name, "-o", "run")
    check_round_trip(kymo, "run", form)


@pytest.mark.parametrize("form", FORMATS)
def test_what_comes_before_a_cut_is_kept(kymo, form):
    make_trace.write(kymo.home / "trace.json", 1)
    kymo("import", "trace.json", "-o", "run")
    kymo("export", "run", "-f", form, "-o", "whole")
    data = (kymo.home / "whole").read_bytes()
    for cut in range(2000, len(data), len(data) // 4):
        (kymo.home / "cut").write_bytes(data[:cut])
        done = kymo("import", "cut", "-o", "again", "--force")
        assert "truncated" in done.stderr and "are kept" in done.stderr


def test_json_after_a_newline_is_no_perfetto_trace(kymo):
    (kymo.home / "t.json").write_text("\n" + json.dumps([zone("a", 1, 1)]))
    assert kymo.value("t.json", "SELECT name FROM trace.zones") == "a"
