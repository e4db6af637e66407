"""Profiles of speedscope and pprof as recordings."""

import gzip
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_trace  # noqa: E402
from test_import import Kymo  # noqa: E402

FOLDED = "SELECT stack, count(*)::BIGINT AS n, sum(weight_ns)::BIGINT AS ns FROM {table} GROUP BY 1 ORDER BY ALL"


@pytest.fixture
def kymo(tmp_path):
    return Kymo(tmp_path)


# ---- speedscope -------------------------------------------------------------------------------------------------------------

FRAMES = [
    {"name": "main", "file": "/home/me/app.py", "line": 3},
    {"name": "load", "file": "/home/me/app.py", "line": 12},
    {"name": "no place"},
]


def speedscope(path, profiles, frames=FRAMES, first=True, **more):
    shared, profiles = {"shared": {"frames": frames}}, {"profiles": profiles}
    path.write_text(
        json.dumps(
            {
                "$schema": "https://www.speedscope.app/file-format-schema.json",
                **more,
                **(shared if first else profiles),
                **(profiles if first else shared),
            }
        )
    )


def evented(*events, unit="milliseconds", name="worker", **more):
    return {
        "type": "evented",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": events[-1][2] if events else 0,
        "events": [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events],
        **more,
    }


def sampled(samples, weights, unit="seconds", name='Process 41 Thread 43 "MainThread"'):
    return {
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }


@pytest.mark.parametrize("first", [True, False])
def test_evented_profiles_become_zones(kymo, first):
    speedscope(
        kymo.home / "p.speedscope.json",
        [evented(("O", 0, 1.5), ("O", 1, 1.500001), ("C", 1, 2.25), ("O", 2, 3), ("C", 2, 3), ("C", 0, 4.000002))],
        first=first,
    )
    kymo("import", "p.speedscope.json", "-o", "run")
    assert kymo.rows(
        "run", "SELECT source, name, file, line, start_ns, duration_ns, depth, thread FROM trace.zones ORDER BY depth, start_ns"
    ) == [
        {
            "source": "python",
            "name": "main",
            "file": "/home/me/app.py",
            "line": 3,
            "start_ns": 1500000,
            "duration_ns": 2500002,
            "depth": 0,
            "thread": "worker",
        },
        {
            "source": "python",
            "name": "load",
            "file": "/home/me/app.py",
            "line": 12,
            "start_ns": 1500001,
            "duration_ns": 749999,
            "depth": 1,
            "thread": "worker",
        },
        {
            "source": "mark",
            "name": "no place",
            "file": None,
            "line": None,
            "start_ns": 3000000,
            "duration_ns": 0,
            "depth": 1,
            "thread": "worker",
        },
    ]
    assert kymo.rows("run", "SELECT sum(events)::BIGINT AS n, bool_and(became NOT LIKE 'skipped%') AS all_kept FROM kymo.imports") == [
        {"n": 6, "all_kept": True}
    ]


def test_sampled_profiles_of_python_become_python_samples(kymo):
    speedscope(
        kymo.home / "p.json",
        [sampled([[0], [0, 1], []], [0.01, 0.02, 0.005]), sampled([[0, 1]], [0.5], name='Process 41 Thread 44 "loader"')],
    )
    kymo("import", "p.json", "-o", "run")
    assert kymo.rows("run", "SELECT ts_ns, pid, tid, thread, stack, weight_ns, activity FROM python.samples ORDER BY tid, ts_ns") == [
        {
            "ts_ns": 10_000_000,
            "pid": 41,
            "tid": 43,
            "thread": "MainThread",
            "stack": ["main (/home/me/app.py:3)"],
            "weight_ns": 10_000_000,
            "activity": "running",
        },
        {
            "ts_ns": 30_000_000,
            "pid": 41,
            "tid": 43,
            "thread": "MainThread",
            "stack": ["load (/home/me/app.py:12)", "main (/home/me/app.py:3)"],
            "weight_ns": 20_000_000,
            "activity": "running",
        },
        {
            "ts_ns": 35_000_000,
            "pid": 41,
            "tid": 43,
            "thread": "MainThread",
            "stack": None,
            "weight_ns": 5_000_000,
            "activity": "running",
        },
        {
            "ts_ns": 500_000_000,
            "pid": 41,
            "tid": 44,
            "thread": "loader",
            "stack": ["load (/home/me/app.py:12)", "main (/home/me/app.py:3)"],
            "weight_ns": 500_000_000,
            "activity": "running",
        },
    ]
    assert "load" in kymo("report", "run").stdout
    assert kymo.value("run", "SELECT duration_ns FROM kymo.runs") == 500_000_000


def test_profiles_without_python_become_native_samples(kymo):
    frames = [{"name": "main", "file": "/home/me/main.c", "line": 9}, {"name": "spin"}]
    speedscope(kymo.home / "p.json", [sampled([[0], [0, 1]], [3, 4], unit="none", name="all")], frames)
    kymo("import", "p.json", "-o", "run")
    assert kymo.rows("run", FOLDED.format(table="native.samples")) == [
        {"stack": ["main (/home/me/main.c:9)"], "n": 3, "ns": 0},
        {"stack": ["spin", "main (/home/me/main.c:9)"], "n": 4, "ns": 0},
    ]
    assert kymo.value("run", "SELECT count(*) FROM python.samples") == 0


def test_what_is_no_time_or_has_no_name_is_counted(kymo):
    speedscope(
        kymo.home / "p.json",
        [
            sampled([[0], [1]], [100, 200], unit="bytes"),
            evented(("O", 0, 1), ("C", 0, 2), unit="bytes"),
            sampled([[7]], [1]),
            evented(("O", 9, 1), ("C", 9, 2)),
            evented(("O", 0, 1)),
            evented(("?", 0, 1)),
            sampled([[0], [0]], [1e300, -1]),
            {"type": "evented", "unit": "seconds", "events": [7, None]},
            12,
        ],
    )
    kymo("import", "p.json", "-o", "run")
    assert kymo.rows("run", "SELECT phase, became, events FROM kymo.imports ORDER BY ALL") == [
        {"phase": "?", "became": "skipped: a time out of range", "events": 2},
        {"phase": "?", "became": "skipped: an unknown phase", "events": 1},
        {"phase": "B", "became": "skipped: a begin without an end", "events": 1},
        {"phase": "B", "became": "skipped: a frame that the file does not name", "events": 1},
        {"phase": "B", "became": "skipped: no time", "events": 1},
        {"phase": "E", "became": "skipped: a frame that the file does not name", "events": 1},
        {"phase": "E", "became": "skipped: no time", "events": 1},
        {"phase": "P", "became": "skipped: a frame that the file does not name", "events": 1},
        {"phase": "P", "became": "skipped: a time out of range", "events": 2},
        {"phase": "P", "became": "skipped: no time", "events": 2},
    ]


def test_a_cut_speedscope_file_keeps_what_came_before(kymo):
    speedscope(kymo.home / "whole.json", [evented(*(one for i in range(300) for one in (("O", 0, 2 * i), ("C", 0, 2 * i + 1))))])
    text = (kymo.home / "whole.json").read_text()
    for cut in range(400, len(text) - 4, len(text) // 7):
        (kymo.home / "cut.json").write_text(text[:cut])
        assert "is truncated at byte" in kymo("import", "cut.json", "-o", "cut", "--force").stderr
        assert abs(kymo.value("cut", "SELECT count(*) FROM trace.zones") - text[:cut].count('"C"')) <= 1


# ---- pprof ------------------------------------------------------------------------------------------------------------------


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


class Profile:
    """A profile of pprof, in the order in which Go writes it: stacks first, texts last."""

    def __init__(self, types, time_ns=1_700_000_000_000_000_000, duration_ns=0, period=None):
        self.strings, self.stacks, self.parts, self.ids = [""], b"", b"", {}
        self.head = b"".join(field(1, self.type(*one)) for one in types)
        self.tail = field(9, time_ns) + field(10, duration_ns)
        if period:
            self.tail += field(11, self.type("cpu", "nanoseconds")) + field(12, period)

    def text(self, text):
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def type(self, name, unit):
        return field(1, self.text(name)) + field(2, self.text(unit))

    def function(self, name, file):
        key = (name, file)
        if key not in self.ids:
            self.ids[key] = len(self.ids) + 1
            self.parts += field(5, field(1, self.ids[key]) + field(2, self.text(name)) + field(4, self.text(file)))
        return self.ids[key]

    def location(self, *lines, address=0, mapping=0):
        """Functions with file and line, the innermost first."""
        key = (lines, address)
        if key not in self.ids:
            made = b"".join(field(4, field(1, self.function(name, file)) + field(2, line)) for name, file, line in lines)
            self.ids[key] = len(self.ids) + 1
            self.parts += field(4, field(1, self.ids[key]) + field(2, mapping) + field(3, address) + made)
        return self.ids[key]

    def mapping(self, number, file):
        self.parts += field(3, field(1, number) + field(5, self.text(file)))

    def sample(self, locations, values, packed=True, **labels):
        """Locations, the innermost first."""
        if packed:
            made = field(1, b"".join(map(varint, locations))) + field(2, b"".join(map(varint, values)))
        else:
            made = b"".join(field(1, one) for one in locations) + b"".join(field(2, one) for one in values)
        for key, value in labels.items():
            number = isinstance(value, int)
            made += field(
                3, field(1, self.text(key.replace("_", " "))) + field(3 if number else 2, value if number else self.text(value))
            )
        self.stacks += field(2, made)

    def bytes(self):
        return self.head + self.stacks + self.parts + b"".join(field(6, one) for one in self.strings) + self.tail


CPU = [("samples", "count"), ("cpu", "nanoseconds")]


def go_profile():
    made = Profile(CPU, duration_ns=2_000_000_000)
    made.mapping(1, "/home/me/server")
    main = made.location(("main.main", "/home/me/main.go", 12), mapping=1)
    inner = made.location(("crypto.mix", "/home/me/mix.go", 7), ("main.hash", "/home/me/main.go", 40), mapping=1)
    made.sample([inner, main], [3, 30_000_001])
    made.sample([main], [1, 10_000_000], packed=False, thread_id=77, thread_name="gc")
    made.sample([made.location(address=0x1234, mapping=1), main], [1, 10_000_000])
    return made


@pytest.mark.parametrize("packed", [True, False])
def test_a_profile_of_pprof_becomes_native_samples(kymo, packed):
    data = go_profile().bytes()
    (kymo.home / "cpu.pb.gz").write_bytes(gzip.compress(data) if packed else data)
    kymo("import", "cpu.pb.gz", "-o", "run")
    assert kymo.rows("run", FOLDED.format(table="native.samples")) == [
        {
            "stack": ["crypto.mix (/home/me/mix.go:7)", "main.hash (/home/me/main.go:40)", "main.main (/home/me/main.go:12)"],
            "n": 3,
            "ns": 30_000_001,
        },
        {"stack": ["main.main (/home/me/main.go:12)"], "n": 1, "ns": 10_000_000},
        {"stack": ["server+0x1234 (server)", "main.main (/home/me/main.go:12)"], "n": 1, "ns": 10_000_000},
    ]
    assert kymo.rows("run", "SELECT DISTINCT tid, thread FROM native.samples ORDER BY 1") == [
        {"tid": 1, "thread": "thread 1"},
        {"tid": 77, "thread": "gc"},
    ]
    assert kymo.rows("run", "SELECT started_unix_ns, duration_ns FROM kymo.runs") == [
        {"started_unix_ns": 1_700_000_000_000_000_000, "duration_ns": 2_000_000_000}
    ]
    assert kymo.rows("run", "SELECT became, events FROM kymo.imports") == [{"became": "native.samples", "events": 5}]
    assert "crypto.mix" in kymo("report", "run").stdout


def test_a_profile_of_counts_has_the_time_of_its_period(kymo):
    made = Profile([("samples", "count")], period=10_000_000)
    made.sample([made.location(("f", "/home/me/a.py", 3))], [5])
    (kymo.home / "p.pb").write_bytes(made.bytes())
    kymo("import", "p.pb", "-o", "run")
    assert kymo.rows("run", FOLDED.format(table="python.samples")) == [{"stack": ["f (/home/me/a.py:3)"], "n": 5, "ns": 50_000_000}]


def test_a_profile_of_a_heap_is_refused(kymo):
    made = Profile([("inuse_objects", "count"), ("inuse_space", "bytes")])
    made.sample([made.location(("f", "a.go", 3))], [5, 4096])
    (kymo.home / "heap.pb.gz").write_bytes(gzip.compress(made.bytes()))
    done = kymo("import", "heap.pb.gz", "-o", "run", status=1)
    assert "its values are inuse_objects in count: profiles of time or of counts are imported" in done.stderr
    assert done.stderr.count("\n") == 1 and not (kymo.home / "run").exists()


def test_counts_that_are_too_large_are_one_row(kymo):
    made = Profile(CPU)
    for count in (1 << 62, 2, 1 << 40, -1):
        made.sample([made.location(("f", "a.go", count & 7))], [count, 1000])
    made.sample([99], [1, 1000])
    made.sample([made.location(("g", "a.go", 1))], [1, 1 << 62])
    (kymo.home / "p.pb").write_bytes(made.bytes())
    kymo("import", "p.pb", "-o", "run")
    assert kymo.rows("run", "SELECT became, events FROM kymo.imports ORDER BY 1") == [
        {"became": "native.samples", "events": 4},
        {"became": "skipped: a frame that the file does not name", "events": 1},
        {"became": "skipped: a time out of range", "events": 2},
    ]


def test_a_cut_profile_keeps_its_samples_as_far_as_their_names_are_known(kymo):
    data = go_profile().bytes()
    for cut in range(1, len(data), 9):
        (kymo.home / "cut.pb").write_bytes(data[:cut])
        done = kymo("import", "cut.pb", "-o", "cut", "--force", status=None)
        assert done.returncode in (0, 1) and done.stderr.count("\n") == (1 if done.returncode else done.stderr.count("\n"))


# ---- round trips ------------------------------------------------------------------------------------------------------------

ZONES = "SELECT name, file, line, start_ns, duration_ns, depth, pid, tid, thread FROM trace.zones ORDER BY ALL"
REGIONS = ("SELECT name, sum(count)::BIGINT AS n, sum(total_ns)::BIGINT AS total, "
           "sum(self_ns)::BIGINT AS self FROM trace.regions GROUP BY 1 ORDER BY 1")


def test_zones_of_a_speedscope_export_are_the_same_to_the_ns(kymo):
    make_trace.write(kymo.home / "trace.json", 3)
    kymo("import", "trace.json", "-o", "run")
    kymo("export", "run", "-f", "speedscope", "-o", "out.speedscope.json")
    kymo("import", "out.speedscope.json", "-o", "again")
    before = kymo.rows("run", ZONES)
    assert len(before) > 100 and kymo.rows("again", ZONES) == before
    assert kymo.rows("again", REGIONS) == kymo.rows("run", REGIONS)
    assert kymo.rows("again", "FROM kymo.imports WHERE became LIKE 'skipped%'") == []


def test_zones_of_a_pprof_export_have_the_same_counts_and_times(kymo):
    make_trace.write(kymo.home / "trace.json", 3)
    kymo("import", "trace.json", "-o", "run")
    kymo("export", "run", "-f", "pprof", "-o", "out.pb.gz")
    kymo("import", "out.pb.gz", "-o", "again")
    before = kymo.rows("run", REGIONS)
    assert before and kymo.rows("again", REGIONS) == before
    kymo("export", "run", "-f", "folded", "-o", "run.folded")
    kymo("export", "again", "-f", "folded", "-o", "again.folded")
    assert sorted((kymo.home / "again.folded").read_text().splitlines()) == sorted((kymo.home / "run.folded").read_text().splitlines())


@pytest.mark.parametrize("form, name", [("speedscope", "out.speedscope.json"), ("pprof", "out.pb.gz")])
@pytest.mark.parametrize("native", [False, True])
def test_samples_of_an_export_have_the_same_stacks_and_times(kymo, form, name, native):
    made = go_profile()
    if not native:
        made.sample([made.location(("step", "/home/me/a.py", 9)), made.location(("<module>", "/home/me/a.py", 20))], [2, 15])
    (kymo.home / "p.pb").write_bytes(made.bytes())
    kymo("import", "p.pb", "-o", "run")
    kymo("export", "run", "-f", form, "-o", name, *(["--samples"] if form == "speedscope" else []), *(["--native"] if native else []))
    kymo("import", name, "-o", "again")
    table = "native.samples" if native else "python.samples"
    sums = f"SELECT stack, sum(weight_ns)::BIGINT AS ns FROM {table} GROUP BY 1 ORDER BY ALL"
    before = kymo.rows("run", sums)
    assert len(before) == (3 if native else 4) and kymo.rows("again", sums) == before
