"""kymo export: every format is opened by a reader that is not ours."""
import csv
import gzip
import io
import json
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pyarrow.ipc
import pyarrow.parquet
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from conftest import KYMO, ROOT, Kymo
from made import Made
from test_query import on_a_terminal

sys.path.insert(0, str(ROOT / "tests/crash"))
from mounts import CAN_MOUNT, UNSHARE  # noqa: E402

needs_mount = pytest.mark.skipif(not CAN_MOUNT, reason="mounting a small tmpfs needs root (unshare -m, mount)")
FORMATS = ["perfetto", "chrome", "speedscope", "pprof", "folded", "svg", "otlp", "otlp_metrics", "parquet", "arrow", "csv"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """a [0, 100) holds b [10, 40) and b [40, 60); then c [100, 100), of no time; a step of each; Python samples."""
    kymo = Kymo(tmp_path_factory.mktemp("made"))
    template = kymo.home / "template.kymo"
    assert kymo("pack", kymo.record("plain"), template).status == 0
    kymo.path = kymo.home / "made.kymo"
    with Made(template, kymo.path) as rows:
        rows.zone("b", 10, 30, depth=1)
        rows.zone("b", 40, 20, depth=1, step=7)
        rows.zone("a", 0, 100)
        rows.zone("c", 100, 0)
        rows.sample(["inner (x.py:3)", "outer (x.py:1)"], 3)
        rows.db.execute("INSERT INTO trace.marks VALUES (50, 'half', 'way', 7, ?, ?, 'main', NULL, 'box')", [rows.pid] * 2)
        rows.db.execute("INSERT INTO trace.counters VALUES (5, 'queue', 1.5, NULL, 0, ?, ?, 'main', NULL, 'box'), "
                        "(6, 'queue', 2.5, NULL, 0, ?, ?, 'main', NULL, 'box')", [rows.pid] * 4)
        kymo.pid = rows.pid
    return kymo


def another(home, path):
    (home / "home").mkdir()
    kymo = Kymo(home / "home")
    kymo.path = path
    return kymo


def export(kymo, form, *more):
    done = kymo("export", kymo.path, "-f", form, "-o", "-", *more)
    assert done.status == 0, done.err
    return done.raw


# --- by foreign readers -------------------------------------------------------------------------------------------

def perfetto(data):
    module = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="no perfetto package")
    trace = module.Trace()
    trace.ParseFromString(data)
    return trace


def slices(trace):
    """What a viewer would draw: (name, start, end or None, depth), by track, from interned names."""
    names, stacks, out = {}, {}, []
    packets = [p for p in trace.packet if p.HasField("track_event") and p.track_event.type in (1, 2)
               and p.track_event.track_uuid >> 61 != 1]  # not steps and operations of devices, which have tracks of their own
    for packet in trace.packet:
        for entry in packet.interned_data.event_names:
            names[entry.iid] = entry.name
    for packet in sorted(packets, key=lambda p: p.timestamp):
        stack = stacks.setdefault(packet.track_event.track_uuid, [])
        if packet.track_event.type == 1:
            stack.append([names[packet.track_event.name_iid], packet.timestamp, None, len(stack)])
            out.append(stack[-1])
        else:
            stack.pop()[2] = packet.timestamp
    return [tuple(s) for s in out]


def test_perfetto_reads_as_perfettos_own_messages(made):
    trace = perfetto(export(made, "perfetto"))
    assert slices(trace) == [("a", 0, 100, 0), ("b", 10, 40, 1), ("b", 40, 60, 1), ("c", 100, 100, 0)]
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    assert [t.process.process_name for t in tracks.values() if t.HasField("process")] == ["cli_fixture"]
    assert [t.name for t in tracks.values() if t.HasField("counter")] == ["queue"]
    events = [(p.timestamp, p.track_event) for p in trace.packet if p.HasField("track_event")]
    assert [(at, e.double_counter_value) for at, e in events if e.type == 4] == [(5, 1.5), (6, 2.5)]
    assert [(at, e.name, e.debug_annotations[0].string_value) for at, e in events if e.type == 3] == [(50, "half", "way")]
    assert [(e.debug_annotations[0].name, e.debug_annotations[0].int_value)
            for at, e in events if e.type == 1 and e.debug_annotations] == [("step", 7)]
    assert all(e.track_uuid in tracks for _, e in events)
    assert trace.packet[0].sequence_flags == 1 and {p.trusted_packet_sequence_id for p in trace.packet} == {1}


def test_chrome_json_has_microseconds_with_a_fraction(made):
    events = json.loads(export(made, "chrome"))["traceEvents"]
    assert [(e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"] == [
        ("a", 0.0, 0.1), ("b", 0.01, 0.03), ("b", 0.04, 0.02), ("c", 0.1, 0.0)]
    assert [(e["name"], e["ts"], e["args"]) for e in events if e["ph"] == "i"] == [("half", 0.05, {"text": "way"})]
    assert [(e["name"], e["args"]["value"]) for e in events if e["ph"] == "C"] == [("queue", 1.5), ("queue", 2.5)]
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} == {"cli_fixture", "main"}


@pytest.fixture(scope="module")
def unmarked(made):
    """No zone but a garbage collection across a sample; stacks every 100 ns, an empty one among them."""
    kymo = another(made.home, made.home / "unmarked.kymo")
    with Made(made.home / "template.kymo", kymo.path) as rows:
        rows.zone("gc (generation 0)", 190, 20, source="python")
        for i, stack in enumerate((["inner (x.py:3)", "outer (/a/x.py:1)"], ["inner (x.py:4)", "outer (/a/x.py:1)"],
                                   ["other (x.py:9)", "outer (/a/x.py:2)"], [], ["inner (x.py:3)", "outer (/a/x.py:1)"])):
            rows.db.execute("INSERT INTO python.samples (ts_ns, pid, tid, thread, stack, host) VALUES (?, ?, ?, 'loop', ?, 'box')",
                            [100 * i, rows.pid, rows.pid, stack])
        kymo.pid = rows.pid
    return kymo


SAMPLED = [("outer", 0, 300), ("inner", 0, 200), ("other", 200, 300), ("outer", 400, 500), ("inner", 400, 500)]


def test_perfetto_has_the_samples_of_an_unmarked_program_as_slices(unmarked):
    trace = perfetto(export(unmarked, "perfetto"))
    assert sorted(one[:3] for one in slices(trace)) == sorted([*SAMPLED, ("gc (generation 0)", 190, 210)])
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    assert [t.name for t in tracks.values() if t.name] == ["loop (stack samples)"]
    assert all(p.track_event.track_uuid in tracks for p in trace.packet if p.HasField("track_event"))


def test_chrome_json_has_the_samples_of_an_unmarked_program_as_slices(unmarked):
    events = json.loads(export(unmarked, "chrome"))["traceEvents"]
    shown = [(e["name"], round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e["cat"]) for e in events if e["ph"] == "X"]
    assert shown == [("gc (generation 0)", 190, 210, "python"), *((*one, "sample") for one in SAMPLED)]
    assert {e["args"].get("file") for e in events if e["name"] == "outer"} == {"/a/x.py"}
    names = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    assert names == {"main": unmarked.pid, "loop (stack samples)": unmarked.pid + 2**30}
    assert {e["tid"] for e in events if e["ph"] == "X" and e["cat"] == "sample"} == {unmarked.pid + 2**30}


def test_samples_are_no_slices_of_a_program_that_marked_zones(made):
    assert "sample" not in {e.get("cat") for e in json.loads(export(made, "chrome"))["traceEvents"]}


def valid_speedscope(data):
    """Against the schema that speedscope ships, and by the rule of its importer: what closes is what is open."""
    jsonschema = pytest.importorskip("jsonschema", reason="no jsonschema package")
    schema = ROOT / "deps/speedscope/file-format-schema.json"
    if not schema.exists():
        pytest.skip("no deps/speedscope: tools/setup test fetches it from npm")
    profile = json.loads(data)
    jsonschema.validate(profile, json.loads(schema.read_text()))
    for one in profile["profiles"]:
        stack, last = [], one["startValue"]
        for event in one.get("events", []):
            assert last <= event["at"] <= one["endValue"]
            last = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
        assert not stack
    return profile


def test_speedscope_satisfies_speedscopes_own_schema(made):
    profile = valid_speedscope(export(made, "speedscope"))
    assert [f["name"] for f in profile["shared"]["frames"]] == ["a", "b", "c"]
    assert [(e["type"], e["frame"], e["at"]) for e in profile["profiles"][0]["events"]] == [
        ("O", 0, 0), ("O", 1, 10), ("C", 1, 40), ("O", 1, 40), ("C", 1, 60), ("C", 0, 100), ("O", 2, 100), ("C", 2, 100)]


def test_speedscope_of_samples_is_a_sampled_profile(made):
    profile = valid_speedscope(export(made, "speedscope", "--samples"))
    (one,) = profile["profiles"]
    assert (one["type"], one["samples"], one["weights"]) == ("sampled", [[0, 1]], [3])
    assert [f["name"] for f in profile["shared"]["frames"]] == ["outer (x.py:1)", "inner (x.py:3)"]


@pytest.fixture(scope="module")
def opened(made, tmp_path_factory):
    """What speedscope's own importers make of each, in its own page: {(name, total, self)}, and all text that is shown."""
    node, chromium = shutil.which("node"), shutil.which("chromium") or shutil.which("chromium-browser")
    page, playwright = ROOT / "deps/speedscope/index.html", ROOT / "deps/playwright-core"
    for what, there in (("node", node), ("chromium", chromium), ("speedscope", page.exists()),
                        ("playwright-core", (playwright / "index.js").exists())):
        if not there:
            pytest.skip(f"{what} is not here (make setup fetches it)")
    folder, files = tmp_path_factory.mktemp("speedscope"), {}
    for name, words in {"zones.json": ["speedscope"], "samples.json": ["speedscope", "--samples"], "folded.txt": ["folded"],
                        "chrome.json": ["chrome"]}.items():
        files[name] = folder / name
        files[name].write_bytes(export(made, *words))
    done = subprocess.run([node, ROOT / "tests/web/speedscope.mjs", playwright, chromium, page, *files.values()],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout, done.stderr[-2000:]
    return dict(zip(files, json.loads(done.stdout)))


def frames(seen):
    assert seen["errors"] == [], seen
    head, *rows = seen["rows"]
    assert head == ["Total", "Self", "Symbol Name"]
    return {(name, total, own) for total, own, name in rows}


def test_speedscope_itself_opens_zones(made, opened):
    assert frames(opened["zones.json"]) == {("a", "100.00ns (100%)", "50.00ns (50%)"), ("b", "50.00ns (50%)", "50.00ns (50%)"),
                                            ("c", "0.00ns (<0.01%)", "0.00ns (<0.01%)")}
    assert f"main, thread {made.pid} of process {made.pid}" in opened["zones.json"]["text"]


def test_speedscope_itself_opens_samples(opened):
    assert frames(opened["samples.json"]) == {("outer (x.py:1)", "3 (100%)", "0 (<0.01%)"), ("inner (x.py:3)", "3 (100%)", "3 (100%)")}


def test_speedscope_reads_folded_stacks(opened):
    assert frames(opened["folded.txt"]) == {("a", "100 (100%)", "50 (50%)"), ("b", "50 (50%)", "50 (50%)")}


def test_speedscope_reads_chromes_json(opened):
    assert frames(opened["chrome.json"]) == {  # a frame for each of its arguments
        ('a {"step":0}', "100.00ns (100%)", "50.00ns (50%)"), ('b {"step":0}', "30.00ns (30%)", "30.00ns (30%)"),
        ('b {"step":7}', "20.00ns (20%)", "20.00ns (20%)"), ('c {"step":0}', "0.00ns (<0.01%)", "0.00ns (<0.01%)")}


PPROF = {  # what of profile.proto is looked at: message, field, number, type, repeated
    "Profile": [("sample_type", 1, "ValueType"), ("sample", 2, "Sample"), ("location", 4, "Location"),
                ("function", 5, "Function"), ("string_table", 6, "string")],
    "ValueType": [("type", 1, None), ("unit", 2, None)],
    "Sample": [("location_id", 1, "ids"), ("value", 2, "ids")],
    "Location": [("id", 1, None), ("line", 4, "Line")],
    "Line": [("function_id", 1, None), ("line", 2, None)],
    "Function": [("id", 1, None), ("name", 2, None), ("filename", 4, None)],
}


def pprof(data):
    """Decoded by Google's protobuf, with the public field numbers of profile.proto."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2", reason="no protobuf package")
    from google.protobuf import descriptor_pool, message_factory
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="pprof", syntax="proto3")
    for name, fields in PPROF.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            one = message.field.add(name=field, number=number, label=3 if kind else 1, type=3)
            if kind == "string":
                one.type = 9
            elif kind not in (None, "ids"):
                one.type, one.type_name = 11, f".pprof.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    profile = message_factory.GetMessageClass(pool.FindMessageTypeByName("pprof.Profile"))()
    profile.ParseFromString(gzip.decompress(data))
    return profile


def test_pprof_has_self_time_by_stack_and_samples(made):
    profile = pprof(export(made, "pprof"))
    text = profile.string_table
    assert text[0] == ""
    assert [(text[t.type], text[t.unit]) for t in profile.sample_type] == [
        ("zones", "count"), ("time", "nanoseconds"), ("samples", "count")]
    functions = {f.id: text[f.name] for f in profile.function}
    locations = {p.id: functions[p.line[0].function_id] for p in profile.location}
    found = {tuple(locations[i] for i in s.location_id): tuple(s.value) for s in profile.sample}
    assert found == {("a",): (1, 50, 0), ("b", "a"): (2, 50, 0), ("c",): (1, 0, 0),
                     ("inner (x.py:3)", "outer (x.py:1)"): (0, 0, 3)}


SVG = "{http://www.w3.org/2000/svg}"


def boxes(data):
    """The boxes of a flame graph: what is shown under the pointer, left, top and width."""
    found = {}
    for group in ElementTree.fromstring(data).iter(SVG + "g"):
        rect = group.find(SVG + "rect")
        found[group.find(SVG + "title").text] = tuple(float(rect.get(key)) for key in ("x", "y", "width"))
    return found


def test_a_flame_graph_has_callers_above_what_they_call(made):
    drawn = boxes(export(made, "svg"))
    outer, inner = drawn["a, 100.0 %, 100 ns"], drawn["b, 50.0 %, 50 ns"]
    assert len(drawn) == 2 and outer[0] == inner[0] and outer[1] < inner[1]
    assert abs(outer[2] / inner[2] - 2) < 0.01
    assert list(boxes(export(made, "svg", "--samples"))) == \
        ["outer (x.py:1), 100.0 %, 3 samples", "inner (x.py:3), 100.0 %, 3 samples"]


def test_names_in_a_flame_graph_are_text(hostile):
    data = export(hostile, "svg")
    assert b"<script" not in data and not any(byte < 32 and byte != 10 for byte in data)
    assert any("</script>" in title for title in boxes(data))


def test_flame_prints_a_tree_and_writes_a_picture(made, tmp_path):
    done = made("flame", made.path)
    assert done.status == 0 and [line.split() for line in done.out.splitlines()] == [
        ["100", "ns", "in", "zones"], ["100.0", "%", "█" * 12, "a"], ["50.0", "%", "█" * 6, "b"]]
    assert made("flame", made.path, "-o", tmp_path / "flame.svg").status == 0
    assert (tmp_path / "flame.svg").read_bytes() == export(made, "svg")
    again = made("flame", made.path, "-o", tmp_path / "flame.svg")
    assert again.status == 1 and "exists; --force overwrites it" in again.err


def test_folded_stacks_have_self_time(made):
    assert export(made, "folded") == b"a 50\na;b 50\n"
    assert export(made, "folded", "--samples") == b"outer (x.py:1);inner (x.py:3) 3\n"


def test_parquet_arrow_and_csv_of_one_table_have_the_same_rows(made):
    table = "--table", "trace.zones"
    parquet = pyarrow.parquet.read_table(io.BytesIO(export(made, "parquet", *table))).to_pylist()
    arrow = pyarrow.ipc.open_stream(export(made, "arrow", *table)).read_all().to_pylist()
    text = list(csv.DictReader(io.StringIO(export(made, "csv", *table).decode())))
    assert sorted((r["name"], r["start_ns"], r["duration_ns"]) for r in parquet) == [
        ("a", 0, 100), ("b", 10, 30), ("b", 40, 20), ("c", 100, 0)]
    assert arrow == parquet
    assert [r["name"] for r in text] == [r["name"] for r in parquet]


@pytest.mark.parametrize("form,extension", [("parquet", ".parquet"), ("arrow", ".arrows"), ("csv", ".csv")])
def test_without_a_table_all_that_have_rows_go_into_a_directory(shared, tmp_path, form, extension):
    where = tmp_path / "tables"
    done = shared("export", shared.path, "-f", form, "-o", where)
    assert (done.status, done.out, done.err) == (0, "", f"kymo: {where}/\n")
    names = sorted(p.name for p in where.iterdir())
    assert {"trace.zones" + extension, "app.requests" + extension, "kymo.runs" + extension} <= set(names)
    assert "device.ops" + extension not in names
    assert [p.name for p in tmp_path.iterdir()] == ["tables"]


# --- OpenTelemetry ------------------------------------------------------------------------------------------------


def spans(data):
    """By OpenTelemetry's own classes."""
    request = ExportTraceServiceRequest.FromString(data)
    return [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


def attributes(message):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in message.attributes}


def test_opentelemetry_has_zones_as_spans_with_their_parents(made):
    data = export(made, "otlp")
    resource = attributes(ExportTraceServiceRequest.FromString(data).resource_spans[0].resource)
    assert resource["service.name"] == "cli_fixture" and resource["process.pid"] == made.pid
    root, *others = spans(data)
    assert root.name == "cli_fixture" and not root.parent_span_id and len({span.span_id for span in [root, *others]}) == len(others) + 1
    assert {span.trace_id for span in others} == {root.trace_id} and len(root.trace_id) == 16 and len(root.span_id) == 8
    by_id = {span.span_id: span for span in [root, *others]}
    zones = [span for span in others if "kymo.source" in attributes(span)]
    epoch = root.start_time_unix_nano
    assert sorted((span.name, span.start_time_unix_nano - epoch, span.end_time_unix_nano - epoch, by_id[span.parent_span_id].name)
                  for span in zones) == [
        ("a", 0, 100, "cli_fixture"), ("b", 10, 40, "a"), ("b", 40, 60, "a"), ("c", 100, 100, "cli_fixture")]
    assert [attributes(span).get("kymo.step") for span in zones if span.name == "b"] == [None, 7]


def test_opentelemetry_has_counters_as_gauges(made):
    request = ExportMetricsServiceRequest.FromString(export(made, "otlp_metrics"))
    points = [(metric.name, point.as_double) for resource in request.resource_metrics for scope in resource.scope_metrics
              for metric in scope.metrics for point in metric.gauge.data_points]
    assert points == [("queue", 1.5), ("queue", 2.5)]


TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("given, taken", [
    (f"00-{TRACE}-{PARENT}-01", True),
    (f"00-{TRACE.upper()}-{PARENT}-01", False),
    (f"00-{'0' * 32}-{PARENT}-01", False),
    (f"00-{TRACE}-{PARENT}-01-more", False),
    ("../../etc/passwd", False),
])
def test_a_run_that_was_started_in_a_trace_is_found_by_it(kymo, given, taken):
    kymo.path = kymo.home / "traced"
    done = kymo("run", "-q", "-o", kymo.path, "--", KYMO.parent / "tests/progs/probe_loop", env={"TRACEPARENT": given})
    assert done.status == 0, done.err
    root, *others = spans(export(kymo, "otlp"))
    assert ((root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, PARENT)) is taken
    assert {span.trace_id for span in others} <= {root.trace_id}
    sql = f"SELECT count(*) AS n FROM trace.marks WHERE name = 'traceparent' AND text LIKE '%{TRACE}%'"
    found = kymo("query", kymo.path, sql, "-f", "csv")
    assert found.out.split() == ["n", str(int(taken))]


# --- every recording, every name ----------------------------------------------------------------------------------

SHAPES = {  # all but times, which a snapshot may give to another nanosecond
    "perfetto": lambda data: [(name, depth) for name, _, _, depth in slices(perfetto(data))],
    "chrome": lambda data: [(e["ph"], e["name"]) for e in json.loads(data)["traceEvents"]],
    "speedscope": lambda data: [(e["type"], e["frame"]) for e in json.loads(data)["profiles"][0]["events"]],
    "pprof": lambda data: [(list(s.location_id), s.value[0]) for s in pprof(data).sample],
    "folded": lambda data: [line.rsplit(b" ", 1)[0] for line in data.splitlines()],
    "otlp": lambda data: [span.name for span in spans(data)],
    "svg": lambda data: [box.text for box in ElementTree.fromstring(data).iter(SVG + "title")],
}


@pytest.mark.parametrize("form", SHAPES)
def test_dead_snapshot_and_packed_recordings_give_the_same(shared, tmp_path, form):
    shared("snapshot", shared.path, tmp_path / "s.kymosnap")
    shared("pack", shared.path, tmp_path / "p.kymo")
    one, *others = (SHAPES[form](shared("export", target, "-f", form, "-o", "-").raw)
                    for target in (shared.path, tmp_path / "s.kymosnap", tmp_path / "p.kymo"))
    assert one and others == [one, one]


def test_a_live_program_has_open_zones(kymo):
    with subprocess.Popen([KYMO.parent / "tests/progs/cli_fixture", "open"], env={**kymo.env, "KYMO": "on"},
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        pid = child.stdout.readline().decode().strip()
        kymo.path = pid
        events = json.loads(export(kymo, "chrome"))["traceEvents"]
        trace = export(kymo, "perfetto")
        valid_speedscope(export(kymo, "speedscope"))
        child.stdin.close()
    assert [(e["name"], "dur" in e) for e in events if e["ph"] == "B"] == [("outer", False), ("inner", False)]
    assert [(name, end) for name, _, end, _ in slices(perfetto(trace))] == [("outer", None), ("inner", None)]


def test_hostile_names_stay_names(hostile):
    events = json.loads(export(hostile, "chrome"))["traceEvents"]
    names = {e["name"] for e in events if e["ph"] == "X"}
    assert {"</script><script>alert(1)", "=cmd()", "escape\x1b[31mred", "new\nline", "bad\ufffd\ufffdutf8"} <= names
    assert {name for name, *_ in slices(perfetto(export(hostile, "perfetto")))} == names
    valid_speedscope(export(hostile, "speedscope"))
    assert names - {""} <= set(pprof(export(hostile, "pprof")).string_table)
    folded = export(hostile, "folded").decode()
    assert all(line.rsplit(" ", 1)[1].isdigit() for line in folded.splitlines())
    assert "\x1b" not in folded and "new\\nline" in folded
    cells = {row["name"] for row in csv.DictReader(io.StringIO(export(hostile, "csv", "--table", "trace.zones").decode(),
                                                               newline=""))}
    assert {"'=cmd()", "'+1", "'-1", "'@x", "'\ttab"} <= cells and not {"=cmd()", "+1", "-1", "@x"} & cells


def test_a_nul_in_a_name_is_kept_or_made_visible(made, tmp_path):
    path = tmp_path / "nul.kymo"
    with Made(made.home / "template.kymo", path) as rows:
        rows.zone("a\0b;c", 0, 10)
    made_nul = another(tmp_path, path)
    assert [e["name"] for e in json.loads(export(made_nul, "chrome"))["traceEvents"] if e["ph"] == "X"] == ["a\0b;c"]
    assert slices(perfetto(export(made_nul, "perfetto")))[0][0] == "a\u2400b;c"
    assert export(made_nul, "folded") == b"a\\x00b:c 10\n"


def test_zones_that_do_not_nest_are_cut(made, tmp_path):
    made_odd = another(tmp_path, tmp_path / "odd.kymo")
    with Made(made.home / "template.kymo", made_odd.path) as rows:
        rows.zone("a", 0, 100)
        rows.zone("b", 50, 100, depth=1)
        rows.zone("c", 2**62, 2**62, depth=0)
    assert [s[:3] for s in slices(perfetto(export(made_odd, "perfetto")))] == [
        ("a", 0, 100), ("b", 50, 100), ("c", 2**62, 2**63 - 1)]
    valid_speedscope(export(made_odd, "speedscope"))


def test_many_zones_are_read_in_windows_and_stay_in_order(made, tmp_path):
    """2.2 million zones of one thread: three windows, one stack across them."""
    kymo = another(tmp_path, tmp_path / "many.kymo")
    with Made(made.home / "template.kymo", kymo.path) as rows:
        outer, inner = rows.name("outer"), rows.name("inner")
        rows.db.execute(f"INSERT INTO trace.zone_rows VALUES (0, 22000000, {outer}, 0, 1, 0)")
        rows.db.execute(f"INSERT INTO trace.zone_rows SELECT 10 * i, 4, {inner}, 1, 1, 0 FROM range(2200000) t(i)")
    assert export(kymo, "folded") == b"outer 13200000\nouter;inner 8800000\n"


# --- files --------------------------------------------------------------------------------------------------------

def test_the_file_is_named_after_the_program_and_nothing_is_overwritten(made):
    done = made("export", made.path)
    assert (done.status, done.out) == (0, "") and done.err.startswith("kymo: cli_fixture.perfetto-trace, ")
    again = made("export", made.path)
    assert (again.status, again.err) == (
        1, "kymo export: cli_fixture.perfetto-trace exists; --force overwrites it\n")
    assert made("export", made.path, "--force").status == 0
    assert made("export", made.path, "-o", "x.speedscope.json").status == 0
    valid_speedscope((made.cwd / "x.speedscope.json").read_bytes())


def test_a_directory_of_other_things_is_never_replaced(made, tmp_path):
    where = tmp_path / "d"
    assert made("export", made.path, "-f", "csv", "-o", where).status == 0
    assert "exists; --force" in made("export", made.path, "-f", "csv", "-o", where).err
    assert made("export", made.path, "-f", "parquet", "-o", where, "--force").status == 0
    assert {p.suffix for p in where.iterdir()} == {".parquet"}
    (where / "thesis.txt").write_text("years")
    done = made("export", made.path, "-f", "csv", "-o", where, "--force")
    assert done.status == 1 and "contains files that are not exported tables" in done.err
    assert (where / "thesis.txt").read_text() == "years" and len(list(tmp_path.iterdir())) == 1


@needs_mount
@pytest.mark.parametrize("form", [form for form in FORMATS if form not in ("svg", "otlp_metrics")])  # no counters here
def test_a_full_disk_is_a_clear_error_and_the_old_file_stays(made, tmp_path, form):
    """Half a million zones to a tmpfs of 64 kB; names are random, so that nothing compresses to less."""
    path, small = tmp_path / "many.kymo", tmp_path / "small"
    small.mkdir()
    with Made(made.home / "template.kymo", path) as rows:
        rows.db.execute("ALTER TABLE trace.zone_rows ALTER name_id TYPE INTEGER")
        rows.db.execute("INSERT INTO trace.names SELECT i + 1, 'c', md5(i::VARCHAR), NULL, NULL, NULL FROM range(20000) t(i)")
        rows.db.execute("INSERT INTO trace.zone_rows SELECT 100 * i, 50, i % 20000 + 1, 0, 1, 0 FROM range(40000) t(i)")
    more = "--table trace.zones" if form in ("parquet", "arrow", "csv") else ""
    script = (f"mount -t tmpfs -o size=64k,mode=700 none {small} && printf old > {small}/file && "
              f"{KYMO} export {path} -f {form} {more} -o {small}/file --force; echo status $?; "
              f"cat {small}/file; echo; ls -A {small}")
    done = subprocess.run([*UNSHARE, "sh", "-c", script], env=made.env, capture_output=True, text=True, timeout=120)
    assert done.stdout == "status 1\nold\nfile\n", done.stdout + done.stderr
    assert done.stderr.startswith("kymo export: ") and "o space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1


WRONG = [
    (["-f", "perfeto"], "unknown format perfeto; did you mean perfetto?"),
    (["-f", "xml"], f"unknown format xml; use {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"),
    (["-f", "chrome", "--table", "trace.zones"], "--table works with parquet, arrow, csv; not with chrome"),
    (["-f", "chrome", "--samples"], "--samples works with speedscope, folded, svg; not with chrome"),
    (["-f", "csv", "-o", "-"], "standard output takes one table; name it with --table"),
    (["a", "b"], "expected one TARGET, got 2"),
]


@pytest.mark.parametrize("arguments,sentence", WRONG, ids=[s for _, s in WRONG])
def test_wrong_use(kymo, arguments, sentence):
    done = kymo("export", *arguments)
    assert (done.status, done.out, done.err) == (2, "", f"kymo export: {sentence}\n")


def test_the_page_of_the_api_names_every_format_that_is_served():
    line = next(line for line in (ROOT / "docs/api.md").read_text().splitlines() if line.startswith("| `GET /api/export"))
    assert re.findall(r"`(\w+)`", line) == [form for form in FORMATS if form not in ("parquet", "arrow", "csv")]


def test_a_table_that_is_not_there_is_named(made):
    assert "Did you mean \"zones\"?" in made("export", made.path, "-f", "csv", "--table", "trace.zonse", "-o", "-").err
    assert made("export", made.path, "-f", "csv", "--table", "zones").err == (
        "kymo export: zones is not a table; name the table as schema.table, for example trace.zones\n")


def test_what_is_binary_is_not_for_a_terminal(made):
    status, out = on_a_terminal(made, "export", str(made.path), "-o", "-")
    assert status == 2 and "cannot write perfetto to a terminal" in out
