"""kymo trigger, kymo run --trigger: conditions in SQL over a running program, and what is done when they hold."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import KYMO, PROGS, ROOT

sys.path.insert(0, str(ROOT / "tests/crash"))
from mounts import CAN_MOUNT, UNSHARE  # noqa: E402

LOOP = PROGS / "trigger_loop"
SLOW = "slow=SELECT step, duration_ns FROM trace.steps WHERE duration_ns > 1.2e9"


def rows(kymo, target, sql):
    return json.loads(kymo("query", "-f", "json", target, sql).out)


def run(kymo, *words, steps=("60", "20", "20", "1500")):
    """Records the loop, whose twentieth step is slow by default."""
    result = kymo("run", "-q", "-o", kymo.cwd / "run", *words, "--", LOOP, *steps)
    assert result.status == 0, result.err
    return kymo.cwd / "run"


def fired(kymo, target):
    return rows(kymo, target, "SELECT trigger, action, result, rows, row, saved, bytes FROM kymo.triggers ORDER BY ts_ns")


def test_a_slow_step_saves_the_seconds_around_it(kymo):
    path = run(kymo, "--trigger", SLOW)
    found = fired(kymo, path)
    assert {row["trigger"] for row in found} == {"slow"}
    assert [row["result"] for row in found] == ["ok"] * len(found) and len(found) == 2
    assert json.loads(found[0]["row"])["step"] == 19 and found[0]["rows"] == 1
    saved = path / "triggers" / found[0]["saved"]
    assert saved.stat().st_size == found[-1]["bytes"] and saved.stat().st_mode & 0o777 == 0o600
    assert rows(kymo, saved, "SELECT max(duration_ns) > 1.2e9 AS slow FROM trace.steps")[0]["slow"] is True


def test_a_condition_that_never_holds_does_nothing(kymo):
    path = run(kymo, "--trigger", "slow=SELECT step FROM trace.steps WHERE duration_ns > 3600e9")
    assert fired(kymo, path) == [] and list((path / "triggers").glob("slow*")) == []


def test_each_ready_made_condition_is_valid_and_two_of_them_hold(kymo):
    names = [line.split()[0] for line in kymo("trigger", "ls", "--ready").out.splitlines()]
    words = [word for name in names for word in ("--trigger", name)]
    path = run(kymo, *words, "--action", "mark")
    assert names == ["slow_step", "stall", "memory_growth", "loss_nan", "device_idle", "late_rank"]
    assert {row["trigger"] for row in fired(kymo, path) if row["action"] == "mark"} == {"slow_step", "loss_nan"}
    assert [row["result"] for row in fired(kymo, path) if row["action"] == "look"] == []
    marks = {row["name"] for row in rows(kymo, path, "SELECT name FROM trace.marks")}
    assert {"slow_step", "loss_nan"} <= marks


def test_a_command_gets_the_rows_on_its_standard_input_and_no_shell_sees_them(kymo):
    script = kymo.cwd / "notify"
    script.write_text("#!/bin/sh\necho \"$#:$1\" > got; cat >> got\n")
    script.chmod(0o700)
    evil = "evil=SELECT step, '$(touch pwned); `touch pwned`' AS text FROM trace.steps WHERE step = 5"
    run(kymo, "--trigger", evil, "--action", f"run {script} 'two words'")
    lines = (kymo.cwd / "got").read_text().splitlines()
    assert lines[0] == "1:two words" and json.loads(lines[1])["text"].startswith("$(touch")
    assert not (kymo.cwd / "pwned").exists()


def test_a_command_that_hangs_delays_neither_the_program_nor_the_end(kymo):
    began = time.monotonic()
    path = run(kymo, "--trigger", SLOW, "--action", "run sleep 600", "--action", "mark")
    assert time.monotonic() - began < 60
    assert [row["result"] for row in fired(kymo, path) if row["action"] == "mark"] == ["ok"]


def test_why_saves_stacks_and_causes(kymo):
    path = run(kymo, "--trigger", SLOW, "--action", "why", steps=("120", "20", "20", "1500"))
    row, = fired(kymo, path)
    assert row["result"] == "ok"
    assert "trigger_loop" in (path / "triggers" / row["saved"]).read_text()


def test_detail_is_raised_and_put_back_and_each_change_is_a_row(kymo):
    path = run(kymo, "--trigger", "now=SELECT step FROM trace.steps WHERE step = 10",
               "--action", "detail system_rate=0.05 for 1 second", steps=("150", "20"))
    changes = rows(kymo, path, "SELECT old, new FROM kymo.config WHERE key = 'system_rate' ORDER BY ts_ns")
    assert [row["new"] for row in changes][0] == "0.05"
    assert changes[-1]["old"] == "0.05" and changes[-1]["new"] == changes[0]["old"]


def test_a_storm_fires_once_within_its_cool_down_and_its_rows_are_counted(kymo):
    path = run(kymo, "--trigger", "storm=SELECT ts_ns, row_number() OVER () AS n FROM trace.marks WHERE name = 'storm'",
               steps=("60", "20", "-1", "0", "10"))
    found = fired(kymo, path)
    assert [row["action"] for row in found if row["action"].startswith("snapshot")][0] == "snapshot"
    assert sum(row["rows"] for row in found if row["action"] == "snapshot") >= 10000
    assert len(list((path / "triggers").glob("storm-*"))) == 1


def test_the_limit_in_number_holds_and_what_it_kept_back_is_a_row(kymo):
    file = kymo.cwd / "rules"
    file.write_text("# each step is a new row\n[each]\nwhen = SELECT step\n    FROM trace.steps\n"
                    "action = mark\nevery = 0.1\ncooldown = 0\nlimit = 2\n")
    path = run(kymo, "--triggers", file, steps=("100", "40"))
    found = fired(kymo, path)
    assert [row["action"] for row in found].count("mark") == 2
    assert {row["result"] for row in found if row["action"] == "suppressed"} == {"beyond the limit in number"}


def test_wrong_conditions_names_actions_and_files_are_refused_before_the_program_starts(kymo):
    (kymo.cwd / "bad").write_text("[slow]\nwen = SELECT 1\n")
    for words, message in [
            (["--trigger", "x=SELECT nothing FROM trace.steps"], 'Referenced column "nothing" not found'),
            (["--trigger", "x=DROP TABLE y"], "syntax error"),
            (["--trigger", "x=SELEC 1"], "syntax error"),
            (["--trigger", "a/b=SELECT 1"], "is no name of a trigger"),
            (["--trigger", "no_such"], "no ready-made trigger is named no_such"),
            (["--trigger", "slow_step", "--action", "explode"], "is no action"),
            (["--trigger", "slow_step", "--action", "detail nothing=1 for 3 steps"], "is no setting"),
            (["--action", "mark"], "--action belongs to --trigger"),
            (["--triggers", "bad"], "bad:2: wen is no key of a trigger"),
            (["--triggers", "absent"], "cannot read absent")]:
        result = kymo("run", "-o", "refused", *words, "--", "touch", "started")
        assert result.status == 2 and message in result.err, (words, result.err)
    assert not (kymo.cwd / "started").exists() and not (kymo.cwd / "refused").exists()


def test_a_condition_over_a_table_of_the_program_waits_until_it_is_there(kymo):
    path = run(kymo, "--trigger", "later=SELECT * FROM app.requests")
    assert [row["action"] for row in fired(kymo, path)] == ["look"]


def start(kymo, *words):
    child = subprocess.Popen([KYMO, "run", "-q", "-o", "run", *words, "--", LOOP, "2000", "20"], env=kymo.env, cwd=kymo.cwd,
                             stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    return child


def wait_for(claim, seconds=60):
    until = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < until
        time.sleep(0.2)


def end(child):
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)


def test_triggers_are_added_listed_and_removed_while_the_program_runs(kymo):
    child = start(kymo)
    try:
        wrong = kymo("trigger", "add", "latest", "x=SELECT nothing FROM trace.steps")
        assert wrong.status == 1 and 'Referenced column "nothing" not found' in wrong.err
        added = kymo("trigger", "add", "--action", "mark", "latest", "seen=SELECT 1 AS one FROM trace.steps LIMIT 1")
        assert (added.status, added.err) == (0, "kymo: trigger seen watches trigger_loop\n")
        assert "seen: every 1 s" in kymo("trigger", "ls", "latest").out
        wait_for(lambda: [row["action"] for row in fired(kymo, "latest")] == ["mark"])
        assert kymo("trigger", "rm", "latest", "seen").status == 0
        assert "seen: every" not in kymo("trigger", "ls", "latest").out
        assert kymo("trigger", "rm", "latest", "seen").err.startswith("kymo trigger: there is no trigger seen")
    finally:
        end(child)


def test_a_killed_query_process_is_replaced_and_nothing_fires_twice(kymo):
    child = start(kymo, "--trigger", "ten=SELECT step FROM trace.steps WHERE step IN (10, 400)", "--action", "mark")

    def helpers():
        found = subprocess.run(["ps", "-eo", "pid,ppid,comm"], capture_output=True, text=True).stdout.splitlines()[1:]
        named = [line.split(None, 2) for line in found if line.endswith("kymo triggers")]
        watchers = {pid for pid, parent, _ in named if parent == str(child.pid)}
        return [int(pid) for pid, parent, _ in named if parent in watchers]
    try:
        wait_for(lambda: len(fired(kymo, "latest")) == 1)
        for pid in helpers():
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: [row["action"] for row in fired(kymo, "latest")].count("mark") == 1 and helpers())
        time.sleep(1)
        assert [row["action"] for row in fired(kymo, "latest")].count("mark") == 1
    finally:
        end(child)


def test_a_snapshot_of_the_last_seconds_has_these_alone(kymo):
    child = start(kymo)
    try:
        wait_for(lambda: rows(kymo, "latest", "SELECT max(start_ns) AS n FROM trace.steps")[0]["n"] > 3e9)
        assert kymo("snapshot", "--last", "1", "latest", "last.kymosnap").status == 0
        found = rows(kymo, kymo.cwd / "last.kymosnap", 
                     "SELECT max(start_ns) - min(start_ns) AS span, count(*) AS n FROM trace.steps")[0]
        assert found["n"] > 1 and found["span"] < 1.5e9
    finally:
        end(child)


def test_the_limit_in_bytes_holds_and_what_it_kept_back_is_a_row(kymo):
    file = kymo.cwd / "rules"
    file.write_text("[each]\nwhen = SELECT step FROM trace.steps\naction = snapshot\n"
                    "every = 0.1\ncooldown = 0\nlimit = 1000\nbytes = 1K\n")
    found = fired(kymo, run(kymo, "--triggers", file, steps=("150", "40")))
    assert "beyond the limit in bytes" in {row["result"] for row in found if row["action"] == "suppressed"}
    assert len([row for row in found if row["action"] == "snapshot"]) < 10


def test_bytes_count_for_the_trigger_that_saved_them(kymo):
    file = kymo.cwd / "rules"
    file.write_text("[saves]\nwhen = SELECT step FROM trace.steps LIMIT 1\naction = snapshot\nevery = 0.1\n"
                    "[marks]\nwhen = SELECT step FROM trace.steps\naction = mark\n"
                    "every = 0.1\ncooldown = 0\nlimit = 1000\nbytes = 1K\n")
    found = fired(kymo, run(kymo, "--triggers", file, steps=("150", "40")))
    saved = [row for row in found if row["trigger"] == "saves" and row["saved"]]
    assert saved and saved[0]["bytes"] > 1024
    assert [row["result"] for row in found if row["action"] == "suppressed"] == []


def test_a_file_of_an_earlier_watcher_stays(kymo):
    child = start(kymo)
    try:
        (kymo.cwd / "run/triggers").mkdir(exist_ok=True)
        (kymo.cwd / "run/triggers/hang-1.why.txt").write_text("kept")
        kymo("trigger", "add", "--action", "why", "latest", "hang=SELECT 1 AS one FROM trace.steps LIMIT 1")
        wait_for(lambda: [row for row in fired(kymo, "latest") if row["saved"]])
    finally:
        end(child)
    files = {path.name: path.read_text() for path in (kymo.cwd / "run/triggers").glob("hang-*")}
    assert files["hang-1.why.txt"] == "kept" and set(files) == {"hang-1.why.txt", "hang-2.why.txt"}


def test_the_watcher_may_be_killed_and_the_recording_is_whole(kymo):
    child = start(kymo, "--trigger", "never=SELECT step FROM trace.steps WHERE step < 0")
    try:
        def watchers():
            found = subprocess.run(["ps", "--ppid", str(child.pid), "-o", "pid,comm"], capture_output=True, text=True).stdout
            return [int(line.split()[0]) for line in found.splitlines() if line.endswith("kymo triggers")]
        wait_for(watchers)
        for pid in watchers():
            os.kill(pid, signal.SIGKILL)
        before = rows(kymo, "latest", "SELECT count(*) AS n FROM trace.steps")[0]["n"]
        wait_for(lambda: rows(kymo, "latest", "SELECT count(*) AS n FROM trace.steps")[0]["n"] > before)
    finally:
        end(child)
    assert child.returncode == -signal.SIGTERM
    assert rows(kymo, kymo.cwd / "run", "FROM kymo.problems") == []


def test_all_ranks_of_a_job_save_what_one_of_them_has_seen(kymo):
    file = kymo.cwd / "rules"
    file.write_text("[slow]\nwhen = SELECT step FROM trace.steps WHERE duration_ns > 1.2e9\naction = mark\nranks = all\n")
    children = [subprocess.Popen([KYMO, "run", "-q", "-o", "jobs/", "--triggers", file, "--", LOOP, "300", "20", step, "1500"],
                                 env={**kymo.env, "RANK": str(rank), "WORLD_SIZE": "2", "KYMO_JOB": "two"}, cwd=kymo.cwd,
                                 stdout=subprocess.DEVNULL)
                for rank, step in enumerate(("50", "-1"))]
    assert [child.wait(timeout=120) for child in children] == [0, 0]
    found = rows(kymo, "jobs/two", "SELECT rank, count(*) AS n FROM trace.marks WHERE name = 'slow' GROUP BY rank ORDER BY rank")
    assert found == [{"rank": 0, "n": 1}, {"rank": 1, "n": 1}]


@pytest.mark.skipif(not CAN_MOUNT, reason="mounting a small tmpfs needs root (unshare -m, mount)")
def test_a_full_disk_is_a_row_and_the_program_goes_on(kymo):
    script = (f"{KYMO} run -q -o run --trigger '{SLOW}' -- {LOOP} 200 20 150 1500 > /dev/null & "
              "until [ -d run/triggers ]; do sleep 0.05; done; mount -t tmpfs -o size=4k,mode=700 none run/triggers; "
              "wait $!; echo status $?; ls -A run/triggers")
    done = subprocess.run([*UNSHARE, "sh", "-c", script], env=kymo.env, cwd=kymo.cwd, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[0] == "status 0", done.stdout + done.stderr
    found = fired(kymo, kymo.cwd / "run")
    assert found and all(row["result"] == "ended with 1" for row in found), found
    assert rows(kymo, kymo.cwd / "run", "SELECT count(*) AS n FROM trace.steps") == [{"n": 200}]


def test_a_stall_is_seen_while_it_lasts(kymo):
    path = run(kymo, "--trigger", "stall", "--action", "mark", steps=("40", "20", "30", "14000"))
    row, = [row for row in fired(kymo, path) if row["action"] == "mark"]
    assert json.loads(row["row"])["last_step"] == 28
    at, = rows(kymo, path,
               "SELECT ts_ns < (SELECT max(start_ns + duration_ns) FROM trace.steps) AS early FROM trace.marks WHERE name = 'stall'")
    assert at["early"] is True


def test_growth_of_memory_is_seen_and_a_program_that_is_large_from_the_start_is_none(kymo):
    grows = ("import time\nheld = []\ntime.sleep(12)\n"
             "for _ in range(8):\n    held.append(b'x' * (64 << 20))\n    time.sleep(0.5)\n")
    large = "import time\nheld = b'x' * (512 << 20)\ntime.sleep(16)\n"
    found = []
    for name, text in (("grows", grows), ("large", large)):
        (kymo.cwd / f"{name}.py").write_text(text)
        done = kymo("run", "-q", "-o", kymo.cwd / name, "--trigger", "memory_growth", "--action", "mark", "--",
                    sys.executable, kymo.cwd / f"{name}.py")
        assert done.status == 0, done.err
        found.append({row["result"] for row in fired(kymo, kymo.cwd / name) if row["action"] == "mark"})
    assert found == [{"ok"}, set()]


def test_an_idle_device_meets_its_condition_and_a_busy_one_does_not(kymo):
    """150 kernels in 1.5 s or over the whole time, beside 20 s of the host; and too few of them to count."""
    condition = (ROOT / "src/trigger/sql/ready_device_idle.sql").read_text()

    def found(name, count, apart_us):
        kernels = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1000 + i * apart_us, "dur": 5000,
                    "args": {"device": 0, "stream": 7, "correlation": i + 1}} for i in range(count)]
        host = {"ph": "X", "cat": "cpu_op", "name": "train", "pid": 1, "tid": 1, "ts": 0, "dur": 20000000}
        (kymo.cwd / f"{name}.json").write_text(json.dumps({"traceEvents": [host, *kernels]}))
        done = kymo("import", "-o", f"{name}.kymo", f"{name}.json")
        assert done.status == 0, done.err
        return rows(kymo, kymo.cwd / f"{name}.kymo", condition)
    assert [row["operations"] for row in found("idle", 150, 10000)] == [150]
    assert found("busy", 150, 130000) == []
    assert found("few", 50, 10000) == []
