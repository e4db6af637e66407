"""Hostile lakes: links where kymo writes and removes, names that are patterns, damaged Parquet files, another user's lake."""
import os
import random
import shutil

import pytest

from conftest import PROGS


@pytest.fixture
def lake(kymo):
    """The directory of a lake with one job, `job`, made of the recording `rec`."""
    assert kymo("run", "-q", "-o", "rec", "--", PROGS / "cli_fixture", "plain").returncode == 0
    done = kymo("lake", "add", "rec", "lake", "--run", "job")
    assert done.returncode == 0, done.stderr
    return kymo.path / "lake"


def tree(path):
    return {str(one.relative_to(path)): one.stat().st_mtime_ns for one in sorted(path.rglob("*"))}


def zones(kymo, job="lake/job"):
    done = kymo("query", "-f", "csv", job, "SELECT count(*) FROM trace.zones")
    return done.stdout.split()[-1] if done.returncode == 0 else done.stderr


def outside(kymo):
    """A table of another lake, with a job of the same name."""
    path = kymo.path / "outside"
    (path / "run=job").mkdir(parents=True)
    (path / "run=job/keep.parquet").write_text("mine")
    return path


# ---- links -----------------------------------------------------------------------------------------------------------

def test_removing_a_job_follows_no_link(kymo, lake):
    other = outside(kymo)
    before = tree(other)
    (lake / "app.link").symlink_to(other)
    (lake / "app.deep").mkdir()
    (lake / "app.deep/run=job").symlink_to(other / "run=job")
    assert kymo("lake", "rm", "lake/job").returncode == 0
    assert tree(other) == before


@pytest.mark.parametrize("place", ["trace.zones", "trace.zones/run=job"])
def test_adding_writes_through_no_link(kymo, lake, place):
    other = kymo.path / "other"
    (other / place).parent.mkdir(parents=True)
    target = outside(kymo)
    before = tree(target)
    (other / place).symlink_to(target)
    done = kymo("lake", "add", "rec", "other", "--run", "job")
    assert done.returncode == 1 and "a symbolic link is not followed" in done.stderr
    assert tree(target) == before


def test_compacting_writes_and_removes_through_no_link(kymo, lake):
    target = kymo.path / "elsewhere"
    shutil.move(lake / "trace.zones", target)
    for number in range(3):
        file = next((target / "run=job").iterdir())
        shutil.copy(file, target / f"run=job/vm-copy{number}.parquet")
    before = tree(target)
    (lake / "trace.zones").symlink_to(target)
    assert kymo("lake", "compact", "lake/job").returncode == 0
    assert tree(target) == before
    assert "trace.zones is left out: it is a symbolic link" in kymo("query", "lake/job", "FROM kymo.problems").stdout


def test_a_link_at_the_name_of_a_part_is_not_written_to(kymo, lake):
    """The name has a process id, so that links at all of them wait for the next processes."""
    writer = next((lake / "kymo.runs/run=job").iterdir()).name.removesuffix(".parquet")
    target = kymo.path / "target"
    target.write_text("mine")
    new = kymo.path / "new"
    new.mkdir()
    now = os.getpid()
    for pid in range(now, now + 400):
        for name in (writer, f"{writer}-r0"):
            (new / f".{name}.{pid}.part").symlink_to(target)
    assert kymo("lake", "add", "rec", "new", "--run", "job").returncode == 0
    assert target.read_text() == "mine" and zones(kymo, "new/job") == zones(kymo)


# ---- names -----------------------------------------------------------------------------------------------------------

def test_a_file_named_like_a_pattern_brings_in_no_other_file(kymo, lake):
    count = zones(kymo)
    folder = lake / "trace.zones/run=job"
    file = next(folder.iterdir())
    shutil.copy(file, kymo.path / "secret.parquet")
    (folder / "z.parquet").symlink_to(kymo.path / "secret.parquet")
    for name in ("*.parquet", "?.parquet", "[z].parquet", "z';SELECT 1.parquet", "z`;\nDROP TABLE x\033[31m.parquet"):
        shutil.copy(file, folder / name)
    assert zones(kymo) == count
    problems = kymo("query", "-f", "csv", "lake/job", "FROM kymo.problems").stdout
    assert problems.count("is not a file of a lake") == 5 and "z.parquet is left out: it is a symbolic link" in problems
    text = kymo("lake", "spark-sql", "lake/job").stdout
    assert "SELECT 'DROP TABLE x?[31m.parquet is left out" in text and "\nDROP TABLE x" not in text and "\033" not in text


def test_a_table_named_like_sql_or_a_pattern_is_none(kymo, lake):
    for name in ('app.x"; DROP', "app.*", "app.x'y", "app.x\ny"):
        shutil.copytree(lake / "trace.zones", lake / name)
    before = kymo("query", "-f", "csv", "lake/job", "SELECT count(*) FROM duckdb_views() WHERE schema_name = 'app'").stdout
    assert before.split()[-1] == "1"  # app.requests


@pytest.mark.parametrize("name", ["a*", "a?b", "a[1]", "a{b}", "a\\b", "a\nb"])
def test_a_path_that_duckdb_or_spark_would_expand_is_refused(kymo, lake, name):
    (kymo.path / name).mkdir()
    shutil.copytree(lake, kymo.path / name / "lake")
    for words in (["query", f"{name}/lake/job", "SELECT 1"], ["lake", "add", "rec", f"{name}/new"],
                  ["lake", "spark-sql", f"{name}/lake/job"]):
        done = kymo(*words)
        assert done.returncode == 1 and "cannot be a lake: its path has one of" in done.stderr, done


def test_a_job_whose_name_is_not_plain_is_none(kymo, lake):
    for name in ("jo*", "job';--", "job\nb"):
        shutil.copy(lake / "job", lake / name)
        assert kymo("query", f"lake/{name}", "SELECT 1").returncode == 1
    assert len(kymo("lake", "ls", "lake").stdout.splitlines()) == 1


# ---- content ---------------------------------------------------------------------------------------------------------

def test_a_program_named_with_escapes_does_not_reach_the_terminal(kymo, lake):
    text = (lake / "job").read_text()
    (lake / "job").write_text(text.replace("program cli_fixture", "program \x1b[31mred\x9b\u202e"))
    for words in (["lake", "ls", "lake"], ["report", "lake/job"], ["query", "lake/job", "FROM kymo.runs"]):
        done = kymo(*words)
        assert done.returncode == 0 and not {"\x1b", "\x9b", "\u202e"} & set(done.stdout + done.stderr)


def test_damaged_files_are_sentences_not_crashes(kymo, lake):
    """Bytes of footers and of pages are changed; each command ends with an answer or with one line."""
    chance = random.Random(7)
    for _ in range(12):
        file = chance.choice(sorted(lake.glob("*/run=job/*.parquet")))
        kept = file.read_bytes()
        damaged = bytearray(kept)
        footer = len(kept) - 8 - int.from_bytes(kept[-8:-4], "little")
        for _ in range(chance.choice((1, 2, 8))):
            damaged[chance.randrange(footer if chance.random() < 0.7 else 4, len(kept) - 8)] = chance.choice((0, 1, 0x7f, 0x80, 0xff))
        file.write_bytes(damaged)
        table = file.parent.parent.name
        for words in (["query", "lake/job", f"SELECT count(*) FROM (FROM {table})"], ["lake", "check", "lake/job"]):
            done = kymo(*words)
            assert done.returncode in (0, 1), (file, words, done.stderr)
            assert done.returncode == 0 or done.stderr or words[0] == "lake", (file, words)
        file.write_bytes(kept)


# ---- another user's lake ---------------------------------------------------------------------------------------------

def test_root_changes_nothing_in_the_lake_of_another_user(kymo, lake, other_user):
    his = other_user.directory(kymo.path / "his")
    shutil.copytree(lake, his / "lake")
    for one in [his / "lake", *(his / "lake").rglob("*")]:
        os.chown(one, other_user.uid, other_user.uid)
    before = tree(his / "lake")
    for words in (["lake", "rm", "his/lake/job"], ["lake", "compact", "his/lake/job"], ["lake", "add", "rec", "his/lake"]):
        done = kymo(*words)
        assert done.returncode == 1 and f"belongs to user {other_user.uid}" in done.stderr, done
    assert tree(his / "lake") == before
    assert zones(kymo, "his/lake/job") == zones(kymo)  # it can be read


def test_another_users_link_in_a_shared_lake_is_not_followed(kymo, lake, other_user):
    """A lake that everyone may write to, with the sticky bit: he puts a link where the first table will be."""
    shared = kymo.path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for parent in shared.parents:
        if parent.stat().st_uid == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    target = outside(kymo)
    before = tree(target)
    assert other_user("ln", "-s", target, shared / "trace.zones").returncode == 0
    done = kymo("lake", "add", "rec", "shared", "--run", "job")
    assert done.returncode == 1 and "a symbolic link is not followed" in done.stderr
    assert tree(target) == before
