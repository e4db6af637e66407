"""kymo lake add: the layout, and that each row is in the lake once, whatever is repeated or killed."""
import os
import pathlib
import random
import re
import signal
import time

import pytest

from conftest import NATIVE


def files(place, table, job="a"):
    return sorted(p.name for p in (place.path / "lake" / table / f"run={job}").glob("*"))


def counts(place, job="a"):
    tables = ("trace.steps", "dist.collectives", "python.samples", "kymo.threads", "dist.ranks", "python.folded")
    return [place.value(f"lake/{job}", f"SELECT count(*) FROM {t}") for t in tables]


def test_rows_are_named_by_the_rows_before_them(shared):
    assert len(files(shared, "trace.steps")) == 4
    assert all(re.fullmatch(r"host\d-[0-9a-f]{12}-r0\.parquet", name) for name in files(shared, "trace.steps"))
    assert all(re.fullmatch(r"host\d-[0-9a-f]{12}\.parquet", name) for name in files(shared, "kymo.streams"))
    # A table without rows has no directory.
    assert not (shared.path / "lake/device.ops").exists()


def test_a_job_of_a_lake_answers_as_its_recordings(shared):
    # Durations of a job's directory are on aligned clocks, those of a lake on the clocks of their hosts.
    sql = "SELECT sum(duration_ns) FROM trace.steps"
    assert abs(shared.value("lake/a", sql) / shared.value("job", sql) - 1) < 1e-3
    for sql in ("SELECT rank, step, name, host, pid FROM trace.steps ORDER BY ALL",
                "SELECT rank, host, pid, state, collectives, last_seq, ranks FROM dist.ranks ORDER BY ALL",
                "SELECT rank, group_name, seq, op, bytes, step, state, host FROM dist.collectives ORDER BY ALL",
                "SELECT rank, times_last, collectives, place FROM dist.late ORDER BY ALL",
                "SELECT stack, cause, place, rank, host, pid FROM python.samples ORDER BY ALL",
                "SELECT pid, host, rank, state FROM kymo.processes ORDER BY ALL",
                "SELECT table_name, pid, emitted, kept, overwritten, dropped, rank, host FROM kymo.streams ORDER BY ALL"):
        assert shared.ask("lake/a", sql) == shared.ask("job", sql), sql


def test_every_table_is_there_with_its_columns(shared):
    sql = """SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns
        WHERE table_catalog = 'rec' AND table_name NOT IN ('now', 'flushes') ORDER BY ALL"""
    assert shared.ask("lake/a", sql) == shared.ask("job", sql)


def test_times_of_all_hosts_count_from_one_moment(place):
    place.made("job", ranks=4, per_host=1, steps=20)
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    sql = "SELECT rank, step, start_ns FROM trace.steps ORDER BY ALL"
    ours, theirs = place.ask("lake/a", sql), place.ask("job", sql)
    # The job's directory is aligned by collectives, the lake by wall clocks.
    assert all(abs(o["start_ns"] - t["start_ns"]) < 5e6 for o, t in zip(ours, theirs, strict=True))


def test_adding_again_adds_no_row(place):
    place.made("job", ranks=4, per_host=2, steps=30, samples=1)
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    before, names = counts(place), files(place, "trace.steps")
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    assert counts(place) == before
    assert files(place, "trace.steps") == names


def test_a_job_without_an_id_is_named_after_its_recording(place):
    place.made("job", ranks=1, steps=5)
    recording = next(p for p in (place.path / "job").iterdir() if p.is_dir())
    place.kymo("lake", "add", recording, "lake")
    name = place.kymo("lake", "ls", "lake").stdout.split()[-1]
    assert re.fullmatch(r"lake/[\w.-]+", name)
    assert place.value("lake", "SELECT count(*) FROM trace.steps") == 5  # the only job needs no name


def test_jobs_are_told_apart(place):
    place.made("job", ranks=2, steps=5)
    place.made("other", ranks=2, steps=7)
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    place.kymo("lake", "add", "--run", "b", "other", "lake")
    assert place.value("lake/a", "SELECT count(*) FROM trace.steps") == 10
    assert place.value("lake/b", "SELECT count(*) FROM trace.steps") == 14
    refused = place.kymo("query", "lake", "SELECT 1", good=False)
    assert refused.returncode == 1
    assert "lake is a lake of 2 jobs; name one, as lake/JOB" in refused.stderr


def test_tiers_choose_tables_and_a_later_flush_adds_the_rest(place):
    place.made("job", ranks=2, per_host=2, steps=20, samples=1)
    place.kymo("lake", "add", "--run", "a", "--tier", "1", "job", "lake")
    assert place.value("lake/a", "SELECT count(*) FROM trace.steps") == 40
    assert place.value("lake/a", "SELECT count(*) FROM python.samples") == 0
    waiting = place.ask("lake/a", "SELECT emitted, in_lake, waiting FROM kymo.flushes WHERE table_name = 'python.samples'")
    assert waiting and all(w["waiting"] == w["emitted"] and w["in_lake"] == 0 for w in waiting)
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    assert place.value("lake/a", "SELECT count(*) FROM python.samples") == place.value("job", "SELECT count(*) FROM python.samples")
    assert place.value("lake/a", "SELECT count(*) FROM trace.steps") == 40


def test_a_killed_flush_neither_doubles_nor_loses_a_row(place):
    place.made("job", ranks=4, per_host=2, steps=50, samples=1)
    chance = random.Random(7)
    for _ in range(12):
        child = place.start("lake", "add", "--run", "a", "job", "lake", start_new_session=True)
        time.sleep(chance.uniform(0.02, 1.2))
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stderr.close()
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    for table in ("trace.steps", "dist.collectives", "python.samples", "dist.ranks"):
        sql = f"SELECT count(*) FROM {table}"
        assert place.value("lake/a", sql) == place.value("job", sql), table
    assert place.kymo("lake", "check", "lake/a").returncode == 0


def test_what_a_killed_flush_has_begun_is_removed_by_the_next(place):
    place.made("job", ranks=1, steps=5)
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    writer = files(place, "trace.steps")[0].removesuffix("-r0.parquet")
    others = ".host9-000000000000-r0.1.part"
    for name in (f".{writer}-r5.99.part", f".{writer}.99.part", others):
        (place.path / "lake" / name).write_bytes(b"PAR1")
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    assert [name for name in os.listdir(place.path / "lake") if name.endswith(".part")] == [others]


def test_tables_that_are_written_as_a_whole_are_counted(place):
    place.kymo("run", "-q", "-o", "rec", "--", NATIVE / "cli_fixture", "plain")
    asked = ("SELECT table_name, sum(emitted)::INT AS emitted, sum(in_lake)::INT AS in_lake, sum(waiting)::INT AS waiting "
             "FROM kymo.flushes WHERE table_name IN ('trace.marks', 'trace.zones') GROUP BY 1 ORDER BY 1")
    place.kymo("lake", "add", "--run", "a", "--tier", "0", "rec", "lake")
    assert [tuple(row.values()) for row in place.ask("lake/a", asked)] == [("trace.marks", 3, 0, 3), ("trace.zones", 120, 0, 120)]
    for _ in range(2):
        place.kymo("lake", "add", "--run", "a", "rec", "lake")
        assert [tuple(row.values()) for row in place.ask("lake/a", asked)] == [("trace.marks", 3, 3, 0), ("trace.zones", 120, 120, 0)]
        assert place.value("lake/a", "SELECT sum(waiting)::INT FROM kymo.flushes") == 0
    for file in (place.path / "lake/trace.counters/run=a").glob("*.parquet"):
        file.unlink()
    checked = place.kymo("lake", "check", "lake/a", good=False)
    assert checked.returncode == 1
    assert "trace.counters has 0 rows, its flushes wrote 4: files were removed" in checked.stdout


def test_a_removed_file_is_named_by_check(place):
    place.made("job", ranks=4, per_host=1, steps=10)
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    assert place.kymo("lake", "check", "lake/a").returncode == 0
    (place.path / "lake/trace.steps/run=a" / files(place, "trace.steps")[1]).unlink()
    checked = place.kymo("lake", "check", "lake/a", good=False)
    assert checked.returncode == 1
    assert "trace.steps has 30 rows, its flushes wrote 40: files were removed or cannot be read" in checked.stdout


def test_a_flush_that_did_not_count_its_files_continues_after_them(place):
    """What SIGKILL between the rows and kymo.flushes leaves."""
    place.made("job", ranks=2, per_host=1, steps=30)
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    for count in (place.path / "lake/kymo.flushes/run=a").iterdir():
        count.unlink()
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    assert place.value("lake/a", "SELECT count(*) FROM trace.steps") == 60
    assert place.value("lake/a", "SELECT sum(in_lake)::INT FROM kymo.flushes WHERE table_name = 'trace.steps'") == 60


def test_a_hundred_writers_at_once_make_one_job(place):
    place.made("job", ranks=100, per_host=1, steps=10)
    hosts = sorted(p for p in (place.path / "job").iterdir() if p.is_dir())
    writers = [place.start("lake", "add", "--run", "a", "--tier", "1", host, "lake") for host in hosts]
    for writer in writers:
        assert writer.wait(timeout=600) == 0, writer.stderr.read()
        writer.stderr.close()
    assert place.value("lake/a", "SELECT count(*) FROM trace.steps") == 1000
    assert place.value("lake/a", "SELECT count(*) FROM dist.ranks WHERE state = 'ended'") == 100
    assert [name for name in os.listdir(place.path / "lake") if name.startswith(".")] == []


def test_an_absent_rank_is_a_row_and_unknown(place):
    job = place.made("job", ranks=4, per_host=1, steps=10)
    hosts = sorted(p for p in job.iterdir() if p.is_dir())
    place.kymo("lake", "add", "--run", "a", hosts[0], hosts[1], hosts[3], "lake")
    assert place.ask("lake/a", "SELECT rank, state FROM dist.ranks WHERE pid IS NULL") == [{"rank": 2, "state": "wrote nothing"}]
    checked = place.kymo("lake", "check", "lake/a", good=False)
    assert checked.returncode == 1
    assert "rank 2 wrote nothing: what it did is not known" in checked.stdout


@pytest.mark.parametrize("words, said", [
    (("lake",), "missing word"),
    (("lake", "freeze", "x"), "unknown word freeze"),
    (("lake", "add", "lake"), "usage: kymo lake add"),
    (("lake", "add", "--tier", "3", "job", "lake"), "--tier"),
    (("lake", "add", "--ranks", "x", "job", "lake"), "--ranks needs a list such as 0,3,8-15, not x"),
])
def test_wrong_words_are_named(place, words, said):
    done = place.kymo(*words, good=False)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_lake_in_a_missing_directory_is_made(place):
    place.made("job", ranks=1, steps=3)
    place.kymo("lake", "add", "--run", "a", "job", "deep/in/lake")
    assert place.value("deep/in/lake/a", "SELECT count(*) FROM trace.steps") == 3
    assert pathlib.Path(place.path, "deep/in/lake/a").is_file()
