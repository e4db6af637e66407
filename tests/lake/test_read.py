"""Reading a lake: reports, locks, damaged and foreign files, compaction, removal, other readers."""

import json
import os
import shutil
import signal
import socket
import time
import urllib.error
import urllib.request

import pytest


def a_file(place, table, job="a"):
    return sorted((place.path / "lake" / table / f"run={job}").glob("*.parquet"))[0]


@pytest.fixture
def own(shared, place):
    """A copy of the shared lake that a test may change."""
    shutil.copytree(shared.path / "lake", place.path / "lake")
    return place


def test_a_report_names_the_late_rank(shared):
    report = json.loads(shared.kymo("report", "-f", "json", "lake/a").stdout)
    assert report["problems"] == []
    late = [v for v in report["verdicts"] if "Rank 3" in v["sentence"]]
    assert late and "host1" in late[0]["sentence"]


def test_the_report_of_a_lake_finds_what_that_of_the_recordings_does(shared):
    found = [
        {v["name"] for v in json.loads(shared.kymo("report", "-f", "json", target).stdout)["verdicts"]} for target in ("lake/a", "job")
    ]
    assert found[0] == found[1]


def test_a_page_and_a_comparison_are_made(shared, tmp_path):
    shared.kymo("report", "lake/a", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 100_000
    shared.kymo("compare", "lake/a", "job")


def test_the_viewer_shows_a_job(shared):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = shared.start("serve", "--port", port, "lake/a")
    try:
        wanted = urllib.request.Request(f"http://127.0.0.1:{port}/api/query", b'{"sql":"SELECT count(*) FROM trace.steps"}',
                                        {"Content-Type": "application/json"})
        end = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(wanted, timeout=60) as answer:
                    assert json.load(answer)["rows"] == [[480]]
                break
            except urllib.error.URLError as e:
                assert isinstance(e.reason, ConnectionRefusedError) and time.monotonic() < end and server.poll() is None, e
            time.sleep(0.1)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/report?format=json", timeout=60) as answer:
            assert any("Rank 3" in verdict["sentence"] for verdict in json.load(answer)["verdicts"])
    finally:
        server.kill()
        server.wait()
        server.stderr.close()


def test_sql_reaches_no_file_outside_of_the_lake(shared):
    for sql in ("FROM read_text('/etc/hostname')", "FROM '/etc/hostname'", "FROM read_parquet('/etc/hostname')"):
        done = shared.kymo("query", "lake/a", sql, good=False)
        assert done.returncode != 0 and "Traceback" not in done.stderr, sql
    changed = shared.kymo("query", "lake/a", "SET enable_external_access = true", good=False)
    assert changed.returncode != 0


def test_a_foreign_file_is_named_and_the_rest_answers(own):
    where = own.path / "lake/trace.steps/run=a"
    before = own.value("lake/a", "SELECT count(*) FROM trace.steps")
    (where / "notes.txt").write_text("mine")
    own.kymo("query", "--unsafe", "lake/a", f"COPY (SELECT 1 AS step) TO '{where}/other.parquet' (FORMAT parquet)")
    (where / "link.parquet").symlink_to("/etc/hostname")
    os.mkfifo(where / "pipe.parquet")
    assert own.value("lake/a", "SELECT count(*) FROM trace.steps") == before
    problems = " ".join(row["text"] for row in own.ask("lake/a", "FROM kymo.problems"))
    assert "notes.txt is left out: it is not a file of a lake" in problems
    assert "other.parquet is left out: it was not written by kymo" in problems
    assert "link.parquet is left out: it is a symbolic link" in problems
    assert "pipe.parquet is left out: it is not a regular file" in problems
    assert own.kymo("lake", "check", "lake/a", good=False).returncode == 1


@pytest.mark.parametrize("cut", [0, 3, 100, -1, -9])
def test_a_truncated_file_is_named_and_the_rest_answers(own, cut):
    file = a_file(own, "trace.steps")
    whole = file.read_bytes()
    file.write_bytes(whole[:cut])
    assert own.value("lake/a", "SELECT count(DISTINCT host) FROM trace.steps") == 3
    assert f"{file.name} is left out: it is not a whole Parquet file" in own.ask("lake/a", "FROM kymo.problems")[0]["text"]


def test_a_file_whose_footer_is_damaged_is_named(own):
    file = a_file(own, "trace.steps")
    whole = bytearray(file.read_bytes())
    at = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    whole[at : at + 40] = b"\xff" * 40
    file.write_bytes(bytes(whole))
    assert own.value("lake/a", "SELECT count(DISTINCT host) FROM trace.steps") == 3
    assert file.name in own.kymo("report", "lake/a").stdout.replace("\n", "").replace(" ", "")


def test_a_file_of_another_version_is_named(own):
    file = a_file(own, "trace.steps")
    file.write_bytes(file.read_bytes().replace(b"kymo lake 1 ", b"kymo lake 2 "))
    assert own.value("lake/a", "SELECT count(DISTINCT host) FROM trace.steps") == 3
    assert "written by another version of kymo" in own.ask("lake/a", "FROM kymo.problems")[0]["text"]


def test_a_job_of_another_version_is_refused(own):
    (own.path / "lake/a").write_text((own.path / "lake/a").read_text().replace("KYMOLAKE 1", "KYMOLAKE 2"))
    done = own.kymo("query", "lake/a", "SELECT 1", good=False)
    assert done.returncode == 1 and "another version of kymo" in done.stderr


def make_older(own, count):
    """The first files of trace.steps are as an earlier version has written them, without most columns."""
    for file in sorted((own.path / "lake/trace.steps/run=a").glob("*.parquet"))[:count]:
        own.kymo(
            "query",
            "--unsafe",
            "lake/a",
            f"COPY (SELECT step, rank, host FROM read_parquet('{file}')) TO '{file}.new' "
            "(FORMAT parquet, KV_METADATA {kymo: 'kymo lake 1 columns 0000000000000001'})",
        )
        os.rename(f"{file}.new", file)


def test_a_file_with_fewer_columns_has_null_for_the_others(own):
    make_older(own, 1)
    assert own.value("lake/a", "SELECT count(*) FROM trace.steps") == 480
    assert own.value("lake/a", "SELECT count(*) FROM trace.steps WHERE duration_ns IS NULL") == 120


@pytest.mark.parametrize("count", [1, 3, 4])
def test_compaction_merges_files_of_an_earlier_version(own, count):
    make_older(own, count)
    asked = "SELECT count(*), count(duration_ns), count(DISTINCT rank), sum(step) FROM trace.steps"
    before = own.ask("lake/a", asked)
    own.kymo("lake", "compact", "lake/a")
    assert len(list((own.path / "lake/trace.steps/run=a").glob("*.parquet"))) == 1
    assert own.ask("lake/a", asked) == before
    assert list(before[0].values())[1] == 480 - count * 120
    own.kymo("lake", "check", "lake/a")


def test_compaction_keeps_the_columns_of_a_later_version(own):
    where = own.path / "lake/trace.steps/run=a"
    file = sorted(where.glob("*.parquet"))[2]
    own.kymo(
        "query",
        "--unsafe",
        "lake/a",
        f"COPY (SELECT 7 AS added, * FROM read_parquet('{file}')) TO '{file}.new' "
        "(FORMAT parquet, KV_METADATA {kymo: 'kymo lake 1 columns 0000000000000001'})",
    )
    os.rename(f"{file}.new", file)
    own.kymo("lake", "compact", "lake/a")
    (merged,) = where.glob("*.parquet")
    assert own.value("lake/a", "SELECT sum(duration_ns)::BIGINT FROM trace.steps") > 0
    said = own.kymo("query", "--unsafe", "-f", "csv", "lake/a", f"SELECT sum(added)::BIGINT FROM read_parquet('{merged}')").stdout
    assert said.split()[-1] == str(7 * 120)


def test_a_half_written_batch_is_not_read(own):
    where = own.path / "lake/trace.steps/run=a"
    (where / ".host9-000000000000-r0.1.part").write_bytes(b"PAR1 half")
    assert own.value("lake/a", "SELECT count(*) FROM trace.steps") == 480
    assert own.ask("lake/a", "FROM kymo.problems") == []


def test_two_jobs_with_one_id_are_named(own):
    # The same ranks on hosts of other names.
    where = own.path / "lake/dist.ranks/run=a"
    file = sorted(where.glob("*.parquet"))[0]
    own.kymo(
        "query",
        "--unsafe",
        "lake/a",
        f"COPY (SELECT * REPLACE ('elsewhere' AS host) FROM read_parquet('{file}')) "
        f"TO '{where}/elsewhere-000000000001.parquet' (FORMAT parquet, KV_METADATA {{kymo: '{kymo_text(file)}'}})",
    )
    problems = [row["text"] for row in own.ask("lake/a", "FROM kymo.problems")]
    assert any("several jobs have this id" in text and "rank 0" in text for text in problems)
    assert own.value("lake/a", "SELECT count(*) FROM dist.ranks") == 8


def kymo_text(file):
    data = file.read_bytes()
    at = data.rindex(b"kymo lake 1 columns ")
    return data[at : at + 36].decode()


def test_compaction_keeps_every_row_in_fewer_files(own):
    asked = (
        "SELECT count(*), sum(duration_ns) FROM trace.steps",
        "SELECT * FROM dist.ranks ORDER BY ALL",
        "SELECT count(*), sum(arrival_ns) FROM dist.collectives",
        "SELECT * FROM kymo.streams ORDER BY ALL",
    )
    before = [own.ask("lake/a", sql) for sql in asked]
    own.kymo("lake", "compact", "lake/a")
    assert [own.ask("lake/a", sql) for sql in asked] == before
    assert len(list((own.path / "lake/trace.steps/run=a").glob("*.parquet"))) == 1
    own.kymo("lake", "check", "lake/a")


def test_a_recording_that_is_added_after_compaction_adds_no_row(shared, own):
    own.kymo("lake", "compact", "lake/a")
    own.kymo("lake", "add", "--run", "a", shared.path / "job", "lake")
    assert own.value("lake/a", "SELECT count(*) FROM trace.steps") == 480
    assert own.value("lake/a", "SELECT count(*) FROM kymo.threads") == shared.value("job", "SELECT count(*) FROM kymo.threads")


def test_a_killed_compaction_doubles_no_row(own):
    for delay in (0.15, 0.25, 0.35, 0.5, 0.7):
        child = own.start("lake", "compact", "lake/a", start_new_session=True)
        time.sleep(delay)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stderr.close()
        assert own.value("lake/a", "SELECT count(*) FROM trace.steps") == 480
        assert own.value("lake/a", "SELECT count(*) FROM python.samples") == own.value(
            "lake/a", "SELECT sum(in_lake)::INT FROM kymo.flushes WHERE table_name = 'python.samples'"
        )


def test_files_that_a_merged_one_stands_for_do_not_count(own):
    """What SIGKILL between the merged file and the removal of the others leaves."""
    where = own.path / "lake/trace.steps/run=a"
    kept = {file.name: file.read_bytes() for file in where.glob("*.parquet")}
    own.kymo("lake", "compact", "lake/a")
    for name, data in kept.items():
        (where / name).write_bytes(data)
    assert own.value("lake/a", "SELECT count(*) FROM trace.steps") == 480
    # Other readers do not know that: the next compaction removes them.
    own.kymo("lake", "compact", "lake/a")
    assert [file.name for file in where.glob("*.parquet")] == [file.name for file in where.glob("compact-*")]
    assert own.value("lake/a", "SELECT count(*) FROM trace.steps") == 480


def test_removal_takes_one_job_and_leaves_what_is_not_ours(own):
    own.made("other", ranks=1, steps=3)
    own.kymo("lake", "add", "--run", "b", "other", "lake")
    (own.path / "lake/trace.steps/run=a/mine.txt").write_text("mine")
    refused = own.kymo("rm", "lake/a", good=False)
    assert "kymo lake rm" in refused.stderr
    own.kymo("lake", "rm", "lake/a")
    assert not (own.path / "lake/a").exists()
    assert (own.path / "lake/trace.steps/run=a/mine.txt").exists()
    assert own.value("lake", "SELECT count(*) FROM trace.steps") == 3


def test_ls_lists_jobs(shared):
    listed = json.loads(shared.kymo("lake", "ls", "-f", "json", "lake").stdout)
    assert [(job["path"], job["program"]) for job in listed] == [("lake/a", "made")]
    assert listed[0]["files"] > 20


@pytest.mark.parametrize("reader", ["pyarrow", "pandas", "polars", "duckdb"])
def test_other_readers_read_a_table_as_it_is(shared, reader):
    module = pytest.importorskip(reader)
    path = shared.path / "lake/trace.steps"
    if reader == "pyarrow":
        rows = pytest.importorskip("pyarrow.dataset").dataset(path, partitioning="hive").to_table().num_rows
    elif reader == "pandas":
        rows = len(module.read_parquet(path))
    elif reader == "polars":
        rows = module.scan_parquet(path / "**/*.parquet", hive_partitioning=True).select(module.len()).collect().item()
    else:
        rows = module.sql(
            f"SELECT count(*) FROM read_parquet('{path}/*/*.parquet', hive_partitioning = true) WHERE run = 'a'"
        ).fetchall()[0][0]
    assert rows == 480


def spoil(file):
    """Overwrites the data of a Parquet file and leaves its footer: an answer has not read it."""
    data = bytearray(file.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    data[4 : len(data) - 8 - footer] = b"\xff" * (len(data) - 12 - footer)
    file.write_bytes(bytes(data))


@pytest.mark.parametrize("where", ["rank IN (0, 1)", "host = 'host0'"])
def test_rows_of_other_ranks_are_not_read(own, where):
    for file in (own.path / "lake/trace.steps/run=a").glob("host[123]-*.parquet"):
        spoil(file)
    assert own.value("lake/a", f"SELECT count(*) FROM trace.steps WHERE {where} AND duration_ns > 0") == 120
    assert own.kymo("query", "lake/a", "SELECT sum(duration_ns) FROM trace.steps", good=False).returncode == 1


@pytest.mark.parametrize("where", ["step BETWEEN 10 AND 20", "start_ns < 1000000000"])
def test_rows_of_other_steps_and_times_are_not_read(own, where):
    """A later flush, whose steps and times are greater."""
    file = a_file(own, "trace.steps")
    later = file.with_name(file.name.replace("-r0.", "-r120."))
    own.kymo(
        "query",
        "--unsafe",
        "lake/a",
        f"COPY (SELECT * REPLACE (step + 1000 AS step, start_ns + 900000000000 AS start_ns) FROM read_parquet('{file}')) "
        f"TO '{later}' (FORMAT parquet, KV_METADATA {{kymo: '{kymo_text(file)}'}})",
    )
    sql = f"SELECT sum(duration_ns) FROM trace.steps WHERE {where}"
    before = own.value("lake/a", sql)
    spoil(later)
    assert own.value("lake/a", sql) == before > 0


def test_files_of_other_jobs_are_not_opened(own):
    shutil.copytree(own.path / "lake/trace.steps/run=a", own.path / "lake/trace.steps/run=b")
    shutil.copy(own.path / "lake/a", own.path / "lake/b")
    for file in (own.path / "lake/trace.steps/run=b").glob("*.parquet"):
        file.write_bytes(b"no")
    assert own.value("lake/a", "SELECT count(*) FROM trace.steps") == 480
    assert own.ask("lake/a", "FROM kymo.problems") == []


def test_files_carry_no_schema_of_arrow(shared):
    parquet = pytest.importorskip("pyarrow.parquet")
    metadata = parquet.read_metadata(a_file(shared, "trace.steps")).metadata
    assert b"ARROW:schema" not in metadata and metadata[b"kymo"].startswith(b"kymo lake 1 columns ")
