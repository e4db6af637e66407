"""Imported traces of real GPUs answer as the references do, to the ns.

The traces are not a part of this tree: KYMO_TRACES names their folder, else ../shared/traces is tried.
"""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = ROOT / "build" / "kymo"
TRACES = pathlib.Path(os.environ.get("KYMO_TRACES", ROOT.parent / "shared" / "traces"))
SETS = ["alexnet_cp", "b200_eager", "cupti", "gpu_annot", "megatron8", "mi300_resnet", "nccl_args", "ns_res", "resnet50_w0",
        "sampled2", "sglang_decode"]
NAME_MOST = 4096  # bytes of a name that a recording keeps
# The calls that the references know, for launches and for queues.
LAUNCHES = ["cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"]
QUEUED = [*LAUNCHES, "cuLaunchKernel", "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemcpyAsync", "hipMemcpyWithStream",
          "hipMemsetAsync"]
SHORT_GAP_NS = 30000  # a gap below it waits for the kernel, in the references

pytestmark = pytest.mark.skipif(not (TRACES / "ref").is_dir(), reason=f"no traces of real GPUs in {TRACES}; set KYMO_TRACES")


def query(run, sql):
    made = subprocess.run([KYMO, "query", run, "-f", "json", sql], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def trace_files(reference):
    for name in reference["files"].values():
        path = TRACES / name
        yield path if path.exists() else path.with_name(path.name + ".gz")


@pytest.fixture(scope="module", params=SETS)
def imported(request, tmp_path_factory):
    """(recording, block every_operation) of a set."""
    path = TRACES / "ref" / f"sql.{request.param}.json"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    reference = json.loads(path.read_text())
    run = tmp_path_factory.mktemp("import") / request.param
    files = [str(path) for path in trace_files(reference)]
    subprocess.run([KYMO, "import", "-q", "-o", run, *files], check=True, timeout=120)
    return run, reference["every_operation"]


def by_rank(rows):
    return sorted(rows, key=lambda row: [str(value) for value in (row["rank"], row.get("stream"), row.get("cause"))])


def words(names):
    return ", ".join(f"'{name}'" for name in names)


def test_breakdown_equals_the_reference(imported):
    run, reference = imported
    rows = query(run, """
        SELECT coalesce(rank, 0) AS rank, idle_ns, computation_ns AS compute_ns,
            communication_ns + memory_ns AS non_compute_ns, total_ns
        FROM device.breakdown""")
    assert by_rank(rows) == by_rank(reference["temporal"])


def test_overlap_equals_the_reference(imported):
    run, reference = imported
    rows = query(run, "SELECT coalesce(rank, 0) AS rank, hidden_ns AS overlap_ns, communication_ns AS comm_ns FROM device.overlap")
    assert by_rank(rows) == by_rank([{key: row[key] for key in ("rank", "overlap_ns", "comm_ns")} for row in reference["overlap"]])


def test_kernels_equal_the_reference(imported):
    run, reference = imported
    rows = query(run, "SELECT coalesce(rank, 0) AS rank, upper(class) AS type, * EXCLUDE (rank) FROM device.kernels")
    ours = {(row["rank"], row["type"], row["name"]):
            (row["total_ns"], row["max_ns"], row["min_ns"], row["count"], round(row["stddev_ns"] or 0, 3)) for row in rows}
    theirs = {(row["rank"], row["type"], row["name"].encode()[:NAME_MOST].decode(errors="ignore")):
              (row["sum_ns"], row["max_ns"], row["min_ns"], row["count"], round(row["stddev_ns"] or 0, 3))
              for row in reference["kernels"]}
    assert ours == theirs


def test_idle_time_of_streams_equals_the_reference(imported):
    """The references count kernels that overlap on one stream as negative gaps; in device.gaps they have none."""
    run, reference = imported
    rows = query(run, f"""
        WITH together AS (
            SELECT pid, core, lag(end_ns) OVER (PARTITION BY pid, core ORDER BY start_ns, end_ns) AS start_ns,
                queued_ns, start_ns AS end_ns
            FROM device.ops WHERE kind NOT IN ('execution', 'module', 'barrier', 'marker')),
        gaps AS (
            SELECT pid, core, start_ns, duration_ns, queued_ns FROM device.gaps
            UNION ALL
            SELECT pid, core, start_ns, end_ns - start_ns, queued_ns FROM together WHERE end_ns < start_ns)
        SELECT coalesce(p.rank, 0) AS rank, g.core AS stream,
            CASE WHEN g.queued_ns > g.start_ns THEN 'host_wait' WHEN g.duration_ns < {SHORT_GAP_NS} THEN 'kernel_wait' ELSE 'other'
            END AS cause, sum(g.duration_ns)::BIGINT AS idle_ns
        FROM gaps g JOIN kymo.processes p USING (pid) GROUP BY ALL""")
    theirs = [{key: row[key] for key in ("rank", "stream", "cause", "idle_ns")} for row in reference["idle"] if row["idle_ns"]]
    assert by_rank(rows) == by_rank(theirs)


def test_launches_equal_the_reference(imported):
    run, reference = imported
    rows = query(run, f"""
        SELECT coalesce(rank, 0) AS rank, sum(launches)::BIGINT AS n, sum(call_ns)::BIGINT AS sum_cpu_ns,
            sum(device_ns)::BIGINT AS sum_gpu_ns, sum(delay_ns)::BIGINT AS sum_delay_ns, sum(short)::BIGINT AS short,
            sum(slow_calls)::BIGINT AS runtime_gt_50us, sum(late)::BIGINT AS delay_gt_100us, max(max_delay_ns) AS max_delay_ns
        FROM device.launch_stats WHERE call IN ({words(LAUNCHES)}) GROUP BY rank""")
    assert by_rank(rows) == by_rank(reference["launch"])


def test_queue_depths_equal_the_reference(imported):
    run, reference = imported
    rows = query(run, f"""
        WITH d AS (
            SELECT coalesce(rank, 0) AS rank, core AS stream,
                sum(change) OVER (PARTITION BY pid, core ORDER BY ts_ns, change DESC ROWS UNBOUNDED PRECEDING) AS depth
            FROM device.queue_depth WHERE call IN ({words(QUEUED)}))
        SELECT rank, stream, count(*) AS n, avg(depth) AS mean, min(depth)::BIGINT AS min, max(depth)::BIGINT AS max,
            stddev_samp(depth) AS stddev, median(depth) AS p50
        FROM d GROUP BY rank, stream""")
    ours, theirs = by_rank(rows), by_rank(reference["queue"])
    assert [{key: pytest.approx(value) for key, value in row.items()} for row in ours] == theirs


def test_no_event_is_skipped(imported):
    run, _ = imported
    assert query(run, "SELECT became, events FROM kymo.imports WHERE became LIKE 'skipped%'") == []


def test_every_trace_imports_without_a_skipped_event(tmp_path):
    files = [path for path in sorted(TRACES.rglob("*.json*")) if "ref" not in path.parts and not path.name.startswith("fr_rank")]
    assert len(files) > 30
    for number, path in enumerate(files):
        made = subprocess.run([KYMO, "import", "-q", "-o", tmp_path / str(number), path], capture_output=True, text=True, timeout=120)
        assert made.returncode == 0 and not made.stderr, f"{path}: {made.stderr}"
        rows = query(tmp_path / str(number), "SELECT became, sum(events)::BIGINT AS events FROM kymo.imports GROUP BY 1")
        assert not [row for row in rows if row["became"].startswith("skipped")], path


def test_backward_kernels_have_the_module_of_their_forward_operator(tmp_path):
    trace = TRACES / "tracelens/traces/mi300/resnet_act_checkpoint.json.gz"
    subprocess.run([KYMO, "import", "-q", "-o", tmp_path / "run", trace], check=True, timeout=120)
    rows = query(tmp_path / "run", """
        SELECT count(*) AS launched, count(module) AS with_module FROM device.launches
        WHERE queued_ns IS NOT NULL AND kind NOT IN ('module', 'execution')""")
    assert rows == [{"launched": 2685, "with_module": 2289}]
