"""One `kymo run` for each rank or host, below one directory; and what happens to a recording never stops the program."""
import importlib.util
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from conftest import KYMO, NATIVE, namespaces

HAS_TORCH = importlib.util.find_spec("torch") is not None
RANK_AT = 56  # of struct kymo_control
RANKS_AT = 60


def hello(*words):
    return (sys.executable, "-c", "print('started')", *words)


# --- the program starts -----------------------------------------------------------------------------------------

def test_ranks_with_one_directory_all_start_and_record(place):
    begun = [place.start("run", "-o", "rec", "--", "sleep", "1",
                         env={"RANK": str(rank), "WORLD_SIZE": "4"}) for rank in range(4)]
    said = [one.communicate(timeout=60)[1] for one in begun]
    assert [one.returncode for one in begun] == [0] * 4, said
    recordings = [path.name for path in place.path.iterdir()]
    assert "rec" in recordings and len(recordings) == 4, recordings
    assert sum("rec is not empty; the recording is rec-" in text for text in said) == 3, said


def test_default_names_that_collide_differ_by_a_number(place):
    """Containers have pid 1 each, and start in the same second."""
    if subprocess.run(["unshare", "-Ur", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode:
        pytest.skip("this machine does not allow PID namespaces")
    begun = [subprocess.Popen(["unshare", "-Ur", "--pid", "--fork", "--mount-proc", KYMO, "run", "-q", "--", "sleep", "1"],
                              cwd=place.path, env=place.env, stderr=subprocess.PIPE) for _ in range(4)]
    said = [one.communicate(timeout=60)[1] for one in begun]
    assert [one.returncode for one in begun] == [0] * 4, said
    assert len(list(place.path.iterdir())) == 4


@pytest.mark.parametrize("where, why", [("no/such/rec", "No such file or directory"), ("file/rec", "Not a directory")])
def test_a_directory_that_cannot_be_made_gives_another_one(place, where, why):
    (place.path / "file").write_text("")
    done = place.kymo("run", "--no-summary", "-o", where, "--", *hello())
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
    assert done.stderr.splitlines()[0].startswith(f"kymo: cannot create the recording {where}: {why}; the recording is /"), done.stderr
    assert list((pathlib.Path(place.env["XDG_STATE_HOME"]) / "kymo").glob("kymo-*/run"))


def test_without_any_directory_the_program_runs_unrecorded(place):
    limits = {"HOME": "/proc/nowhere", "XDG_STATE_HOME": "/proc/nowhere", "KYMO_DIR": "/proc/nowhere"}
    done = place.kymo("run", "-o", "/proc/nowhere/rec", "--", *hello(), env=limits)
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
    assert done.stderr.startswith("kymo: nothing is recorded: ") and done.stderr.count("\n") == 1, done.stderr


# --- without the host ---------------------------------------------------------------------------------------------

def test_what_is_on_disk_reads_without_the_live_directory(place):
    """Lost with its host: the collector, the program and the memory."""
    kymo = place.start("run", "-q", "-o", "rec", "--", NATIVE / "run_rows", "1000000", "100", env={"RANK": "3", "WORLD_SIZE": "8"},
                       start_new_session=True)
    deadline = time.monotonic() + 60
    while not list((place.path / "rec").glob("p*/control")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(0.5)
    os.killpg(kymo.pid, signal.SIGKILL)
    kymo.wait()
    for run in place.live.iterdir():
        shutil.rmtree(run)
    rows = place.ask("rec", "SELECT rank, ranks, role, state FROM kymo.processes WHERE role = 'target'")
    assert rows == [{"rank": 3, "ranks": 8, "role": "target", "state": "lost"}]
    zones = place.ask("rec", "SELECT count(*)::INT AS n, count(name)::INT AS named FROM trace.zones")[0]
    total = place.ask("rec", "SELECT sum(count)::INT AS n FROM trace.regions")[0]["n"]
    assert zones["n"] > 0 and zones["named"] == zones["n"], zones
    assert total == zones["n"]  # totals and rows are of one moment


def test_a_run_of_another_host_that_has_not_ended_is_in_an_unknown_state(place):
    assert place.kymo("run", "-q", "-o", "rec", "--", *hello()).returncode == 0
    run = bytearray((place.path / "rec/run").read_bytes())
    host = socket.gethostname().encode()[:63]
    at = run.index(host + b"\0")
    run[at:at + 64] = b"elsewhere".ljust(64, b"\0")
    run[at + 64:at + 104] = b"11111111-2222-3333-4444-555555555555".ljust(40, b"\0")
    ended = struct.calcsize("<8sIIIIQQQQiiQQ")
    run[ended:ended + 4] = bytes(4)
    (place.path / "rec/run").write_bytes(run)
    for control in (place.path / "rec").glob("p*/control"):
        page = bytearray(control.read_bytes())
        page[72:84] = bytes(12)  # ended, wstatus, wstatus_known
        control.write_bytes(page)
    row = place.ask("rec", "SELECT host, state FROM kymo.runs")[0]
    assert row == {"host": "elsewhere", "state": "unknown"}
    problem = place.ask("rec", "FROM kymo.problems")[0]["text"]
    assert "was recorded on elsewhere: whether it still runs is not known here" in problem


# --- a job is a target ----------------------------------------------------------------------------------------------

@pytest.fixture
def job(place):
    """Three recordings of small programs, as of ranks 0 to 2."""
    for rank in range(3):
        done = place.kymo("run", "-q", "-o", "jobs/", "--", NATIVE / "run_rows", "1000", env={
            "SLURM_PROCID": str(rank), "SLURM_NTASKS": "4", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "2"})
        assert done.returncode == 0, done.stderr
    return place


def test_recordings_of_a_job_are_below_its_id(job):
    names = sorted(path.name for path in (job.path / "jobs/77.2").iterdir())
    assert names[0].endswith("job") or "job" in names
    assert [name.split("-rank")[1].split("-")[0] for name in names if "-rank" in name] == ["0", "1", "2"], names
    again = job.kymo("run", "-q", "-o", "jobs/77.2", "--", "true", env={"RANK": "3"})
    assert again.returncode == 0 and len(list((job.path / "jobs/77.2").glob("*-rank3-*"))) == 1


def test_a_job_is_one_line_of_ls_and_one_recording_for_all_others(job):
    lines = json.loads(job.kymo("ls", "-f", "json").stdout)
    assert [(line["kind"], line["runs"], line["live_runs"]) for line in lines] == [("job", 3, 0)], lines
    rows = job.ask("jobs/77.2", "SELECT rank, count(*)::INT AS n FROM trace.zones GROUP BY 1 ORDER BY 1")
    assert rows == [{"rank": rank, "n": 1000} for rank in range(3)]
    assert job.ask("77.2", "SELECT count(*)::INT AS n, count(DISTINCT job)::INT AS jobs FROM kymo.runs") == [{"n": 3, "jobs": 1}]
    for words in (("report", "jobs/77.2"), ("compare", "--anyway", "jobs/77.2", "jobs/77.2"), ("pack", "jobs/77.2", "-o", "all.kymo"),
                  ("export", "jobs/77.2", "-o", "all.json")):
        done = job.kymo(*words)
        assert done.returncode == 0, (words, done.stderr)
    assert job.ask("all.kymo", "SELECT rank, host IS NOT NULL AS known, count(*)::INT AS n FROM trace.zones GROUP BY ALL ORDER BY 1") \
        == [{"rank": rank, "known": True, "n": 1000} for rank in range(3)]


def test_a_recording_of_several_ranks_has_their_number_and_the_steps_of_one(place):
    ranks = "; ".join(f"RANK={rank} WORLD_SIZE=3 {NATIVE}/compare_loop 40 0 &" for rank in range(3)).replace("&;", "&")
    assert place.kymo("run", "-q", "-o", "rec", "--", "sh", "-c", f"{ranks} wait").returncode == 0
    (line,) = json.loads(place.kymo("ls", "-f", "json").stdout)
    assert (line.get("rank"), line["ranks"], line["steps"]) == (None, 3, 40), line
    assert " exit 0, 3 ranks " in place.kymo("ls").stdout


@pytest.mark.parametrize("name, env, expected", [
    ("mpich", {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "PMI_JOBID": "kvs_77"}, (3, 8, 1)),
    ("pmix", {"PMIX_RANK": "5", "PMIX_SIZE": "6", "PMIX_LOCAL_RANK": "0", "PMIX_NAMESPACE": "prterun-a@1"}, (5, 6, 0)),
    ("open mpi", {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "2",
                  "PMIX_RANK": "2", "PMIX_NAMESPACE": "9"}, (2, 4, 2)),
    ("srun --mpi=pmi2", {"SLURM_PROCID": "6", "SLURM_NTASKS": "16", "SLURM_LOCALID": "3", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0",
                         "PMI_RANK": "1", "PMI_SIZE": "2"}, (6, 16, 3)),
    ("torchrun in mpirun", {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "PMI_RANK": "0", "PMI_SIZE": "1", "KYMO_JOB": "mine"},
     (1, 2, 1)),
])
def test_the_rank_comes_from_the_variables_of_one_launcher(place, name, env, expected):
    """Numbers of two launchers are not mixed: the one that is nearest to the program counts."""
    done = place.kymo("run", "-q", "-o", "jobs/", "--", NATIVE / "run_rows", "10", env=env)
    assert done.returncode == 0, done.stderr
    (folder,) = (place.path / "jobs").iterdir()
    ids = {"mpich": "kvs_77", "pmix": "prterun-a@1", "open mpi": "9", "srun --mpi=pmi2": "77.0", "torchrun in mpirun": "mine"}
    assert folder.name == ids[name]
    rows = place.ask(folder, "SELECT rank, ranks, local_rank FROM dist.ranks WHERE state <> 'wrote nothing'")
    assert [(row["rank"], row["ranks"], row["local_rank"]) for row in rows] == [expected], rows
    assert place.ask(folder, "SELECT DISTINCT rank FROM trace.zones") == [{"rank": expected[0]}]


def test_a_rank_that_wrote_nothing_is_a_row(job):
    rows = job.ask("jobs/77.2", "SELECT rank, state FROM dist.ranks")
    assert rows == [{"rank": 0, "state": "ended"}, {"rank": 1, "state": "ended"}, {"rank": 2, "state": "ended"},
                    {"rank": 3, "state": "wrote nothing"}]


def test_a_job_is_removed_as_a_whole_and_not_while_it_runs(job):
    kymo = job.start("run", "-q", "-o", "jobs/77.2", "--", "sleep", "60", env={"RANK": "3"}, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while not list((job.path / "jobs/77.2").glob("*-rank3-*/run")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        # Its recording in KYMO_DIR is one of the job's, from any working directory.
        for folder in (job.path, job.path.parent):
            done = subprocess.run([KYMO, "ls", "-f", "json"], cwd=folder, env=job.env, capture_output=True, text=True, timeout=60)
            assert [(line["kind"], line["runs"], line["live_runs"]) for line in json.loads(done.stdout)] == [("job", 4, 1)], done.stdout
        done = job.kymo("rm", "jobs/77.2")
        assert done.returncode == 1 and "of its recordings run" in done.stderr, done.stderr
        assert len(list((job.path / "jobs/77.2").glob("*-rank*"))) == 4
    finally:
        os.killpg(kymo.pid, signal.SIGKILL)
        kymo.wait()
    done = job.kymo("rm", "jobs/77.2")
    assert done.returncode == 0 and "removed the job " in done.stderr and "4 recordings" in done.stderr, done.stderr
    assert not (job.path / "jobs/77.2").exists() and json.loads(job.kymo("ls", "-f", "json").stdout) == []


def test_a_damaged_recording_is_named_and_the_rest_answers(job):
    victim = next((job.path / "jobs/77.2").glob("*-rank1-*"))
    for path in victim.rglob("*"):
        if path.is_file():
            path.write_bytes(b"nonsense")
    assert job.ask("jobs/77.2", "SELECT count(DISTINCT rank)::INT AS n FROM trace.zones") == [{"n": 2}]
    problems = [row["text"] for row in job.ask("jobs/77.2", "FROM kymo.problems")]
    assert any(victim.name in text or "control" in text for text in problems), problems


def test_equal_pids_of_two_hosts_stay_apart(place):
    prefix = namespaces()
    for rank in range(2):
        words = [*prefix(rank), KYMO, "run", "-q", "-o", "jobs/", "--", NATIVE / "run_rows", "1000"]
        done = subprocess.run([str(word) for word in words], cwd=place.path, capture_output=True, text=True, timeout=60,
                              env={**place.env, "RANK": str(rank), "WORLD_SIZE": "2", "KYMO_JOB": "two"})
        assert done.returncode == 0, done.stderr
    rows = place.ask("jobs/two", "SELECT host, rank, count(DISTINCT pid)::INT AS pids, sum(count)::INT AS n FROM trace.regions "
                                 "GROUP BY ALL ORDER BY 1")
    assert rows == [{"host": f"host{rank}", "rank": rank, "pids": 1, "n": 1000} for rank in range(2)]
    assert place.ask("jobs/two", "SELECT count(DISTINCT pid)::INT AS n FROM kymo.processes WHERE role = 'target'") == [{"n": 1}]


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed: make setup")
def test_a_late_rank_on_another_host_is_named_with_its_host(place):
    prefix = namespaces()
    for number in range(3):  # what a busy machine does to one run, it does not do to three
        said = place.ranks(2, "data", f"jobs{number}/", prefix=prefix)
        assert [status for _, status in said] == [0, 0], said
        verdicts = place.verdicts(f"jobs{number}/job7")
        if "rank" in verdicts:
            break
    late = place.ask(f"jobs{number}/job7", "FROM dist.late")
    assert "rank" in verdicts, late
    assert verdicts["rank"]["sentence"].startswith("Rank 1 on host host1 is late: "), verdicts["rank"]["sentence"]


# --- many -------------------------------------------------------------------------------------------------------

def test_a_thousand_recordings_open_within_a_gigabyte(place):
    assert place.kymo("run", "-q", "-o", "jobs/", "--", NATIVE / "run_rows", "1000",
                      env={"RANK": "0", "WORLD_SIZE": "1000", "KYMO_JOB": "big"}).returncode == 0
    job = place.path / "jobs/big"
    first = next(job.glob("*-rank0-*"))
    host = socket.gethostname().encode()[:63]
    for rank in range(1, 1000):
        copy = job / f"host{rank}-rank{rank}-1"
        shutil.copytree(first, copy)
        run = bytearray((copy / "run").read_bytes())
        at = run.index(host + b"\0")
        run[at:at + 64] = f"host{rank}".encode().ljust(64, b"\0")
        (copy / "run").write_bytes(run)
        for control in copy.glob("p*/control"):
            page = bytearray(control.read_bytes())
            page[RANK_AT:RANK_AT + 4] = struct.pack("<i", rank)
            control.write_bytes(page)
    before = time.monotonic()
    rows = place.ask("jobs/big", "SELECT count(*)::INT AS n, count(DISTINCT rank)::INT AS ranks FROM trace.zones")
    took = time.monotonic() - before
    assert rows == [{"n": 1_000_000, "ranks": 1000}]
    assert place.ask("jobs/big", "SELECT count(*)::INT AS n FROM dist.ranks WHERE state = 'ended'") == [{"n": 1000}]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # kB
    print(f"a query of 1,000 recordings: {took:.2f} s, {peak / 1024:.0f} MB")
    assert peak < 1 << 20
