"""Settings of a program that runs."""
import os
import re
import signal
import struct
import subprocess
import sys

from conftest import KYMO, PROGS, ROOT
from probe_tools import rows, running, until

DEFAULTS = {"sample_rate": "0.1", "system_rate": "1", "zones": "on", "python": "off", "gc": "off", "torch": "off",
            "torch_modules": '""', "torch_every": "1", "device": "off", "memory": "off", "memory_exact": "off",
            "watch": '""', "locals": "off", "ring_rows": "10000", "keep": "flight", "torch_ops": "off",
            "python_limit": "0"}


def test_all_settings_are_listed_with_their_values(kymo):
    with running(kymo, env={"KYMO": "on"}) as program:
        done = kymo("config", program.pid)
        assert done.status == 0
        assert [tuple(line.split()[:2]) for line in done.out.splitlines()] == list(DEFAULTS.items())


def test_the_environment_sets_every_key_before_the_start(kymo):
    values = {"sample_rate": "0.25", "system_rate": "2", "zones": "off", "python": "on", "gc": "on", "torch": "on",
              "torch_modules": "layers.*", "torch_every": "10", "device": "on", "memory": "on",
              "memory_exact": "on",
              "watch": "loss@train", "locals": "on", "ring_rows": "2000", "keep": "all", "torch_ops": "16",
              "python_limit": "5000"}
    env = {"KYMO": "on", **{f"KYMO_{key.upper()}": value for key, value in values.items()}}
    with running(kymo, env=env) as program:
        assert {key: kymo("config", program.pid, key).out for key in DEFAULTS} == \
            {key: value + "\n" for key, value in values.items()}


def test_garbage_in_the_environment_is_named_and_never_means_on(kymo):
    env = {"KYMO": "on", "KYMO_TORCH": "maybe", "KYMO_SAMPLE_RATE": "fast", "KYMO_RING_ROWS": "-3", "KYMO_KEEP": "some"}
    with running(kymo, env=env, stderr=subprocess.PIPE) as program:
        assert kymo("config", program.pid, "torch").out == "off\n"
        assert kymo("config", program.pid, "sample_rate").out == "0.1\n"
        program.stdin.close()
        assert program.stderr.read() == (
            "kymo: KYMO_SAMPLE_RATE=fast: expected a number of seconds from 0 (off) to 86400, for example 0.1; "
            "sample_rate stays 0.1\n"
            "kymo: KYMO_TORCH=maybe: expected on or off; torch stays off\n"
            "kymo: KYMO_RING_ROWS=-3: expected a whole number from 1 to 100000000; ring_rows stays 10000\n"
            "kymo: KYMO_KEEP=some: expected all or flight; keep stays flight\n")
        program.stderr.close()


def test_run_refuses_garbage_in_the_environment_before_it_starts_anything(kymo):
    done = kymo("run", "--", "true", env={"KYMO_SAMPLE_RATE": "1e9"})
    assert (done.status, done.out) == (2, "")
    assert done.err == ("kymo run: KYMO_SAMPLE_RATE=1e9: expected a number of seconds from 0 (off) to 86400, for example 0.1\n")


def test_a_program_on_standby_is_turned_on_later(kymo):
    with running(kymo, env={"KYMO": "standby"}) as program:
        assert rows(kymo, program.pid, "SELECT count(*) n FROM trace.zones") == [{"n": 0}]
        done = kymo("config", program.pid, "zones=on")
        assert (done.status, done.out, done.err) == (0, "zones=on (was off)\n", "")
        until(lambda: rows(kymo, program.pid, "FROM trace.zones LIMIT 1"))
        kymo("config", program.pid, "zones=off")
        count = rows(kymo, program.pid, "SELECT count(*) n FROM trace.zones")
        assert rows(kymo, program.pid, "SELECT count(*) n FROM trace.zones") == count


def test_standby_means_nothing_is_on_whatever_else_the_environment_says(kymo):
    with running(kymo, env={"KYMO": "standby", "KYMO_TORCH": "on"}) as program:
        assert kymo("config", program.pid, "torch").out == "off\n"


def test_every_change_is_one_row_with_its_author(kymo):
    with running(kymo, env={"KYMO": "on"}) as program:
        kymo("config", program.pid, "zones=off", "torch_every=10")
        kymo("config", program.pid, "zones=off")  # it is: no change
        kymo("config", program.pid, "kymo.zones=on", "probing.sample_rate=0.5", "watch=" + "x" * 255)
        kymo("config", program.pid, "sampel_rate=1", "zones=off")  # refused as a whole
        path = next((kymo.home / "live").iterdir())
        want = [{"key": "zones", "old": "on", "new": "off"}, {"key": "torch_every", "old": "1", "new": "10"},
                {"key": "zones", "old": "off", "new": "on"}, {"key": "sample_rate", "old": "0.1", "new": "0.5"},
                {"key": "watch", "old": None, "new": "x" * 127}]
        assert rows(kymo, program.pid, "SELECT key, nullif(old, '') AS old, new FROM kymo.config ORDER BY ts_ns") == want
        by = rows(kymo, program.pid, 'SELECT DISTINCT "by" FROM kymo.config')
        assert len(by) == 2 and all(re.fullmatch(r"kymo config, pid \d+, \S+( \d+)?", row["by"]) for row in by)
    assert rows(kymo, path, "SELECT key, nullif(old, '') AS old, new FROM kymo.config ORDER BY ts_ns") == want


def test_unknown_keys_and_bad_values_name_the_nearest_that_is_known(kymo):
    with running(kymo, env={"KYMO": "on"}) as program:
        def refused(word):
            done = kymo("config", program.pid, word)
            assert (done.status, done.out) == (2, "")
            return done.err
        assert refused("sampel_rate=1") == "kymo config: unknown key sampel_rate; did you mean sample_rate?\n"
        assert refused("probing.sample_rte=1") == \
            "kymo config: unknown key probing.sample_rte; did you mean sample_rate?\n"
        assert refused("xyzzy") == "kymo config: unknown key xyzzy; kymo help config lists the keys\n"
        assert refused("torch=onn") == \
            "kymo config: torch=onn: expected on or off (did you mean on?); no settings were changed\n"
        assert refused("keep=al") == \
            "kymo config: keep=al: expected all or flight (did you mean all?); no settings were changed\n"
        for bad in ["sample_rate=-1", "sample_rate=", "sample_rate=nan", "sample_rate=1e-3", "sample_rate=0,1",
                    "sample_rate=86401", "ring_rows=0", "ring_rows=1.5", "ring_rows=99999999999999", "torch=2",
                    "torch_modules=" + "x" * 128, "watch=a\nb", "locals="]:
            refused(bad)
        assert kymo("config", program.pid, "sample_rate").out == "0.1\n"


def test_what_nobody_samples_is_stored_and_the_answer_says_what_to_type(kymo):
    with running(kymo, env={"KYMO": "on"}) as program:
        done = kymo("config", program.pid, "sample_rate=0.01")
        assert (done.status, done.out) == (0, "sample_rate=0.01 (was 0.1)\n")
        assert done.err == (f"kymo: sample_rate is stored but has no effect yet: no collector samples pid {program.pid}; "
                            f"kymo attach {program.pid} starts one\n")
        assert kymo("config", program.pid, "sample_rate").out == "0.01\n"


def test_metrics_follow_a_change_while_the_program_runs(kymo):
    """Under kymo run, which began with none."""
    with running(kymo, command=[ROOT / "build/kymo", "run", "-q", "-o", "run", "--", PROGS / "probe_loop"],
                 env={"KYMO_SYSTEM_RATE": "0"}):
        assert rows(kymo, "run", "SELECT count(*) n FROM host.process") == [{"n": 0}]
        done = kymo("config", "run", "system_rate=0.05")
        assert (done.status, done.out, done.err) == (0, "system_rate=0.05 (was 0)\n", "")
        until(lambda: rows(kymo, "run", "SELECT count(*) n FROM host.process")[0]["n"] > 5)
    assert rows(kymo, "run", "SELECT key, old, new FROM kymo.config") == \
        [{"key": "system_rate", "old": "0", "new": "0.05"}]
    assert rows(kymo, "run", "SELECT count(*) n FROM kymo.processes WHERE role = 'target'") == [{"n": 1}]


def test_ring_rows_and_keep_hold_for_threads_that_begin_later(kymo):
    with running(kymo, "thread", env={"KYMO": "on"}) as program:
        until(lambda: rows(kymo, program.pid, "FROM trace.zones LIMIT 1"))
        done = kymo("config", program.pid, "keep=all")
        assert done.err == "kymo: keep applies to new threads and tables\n"
        program.stdin.write("go\n")
        program.stdin.flush()
        until(lambda: rows(kymo, program.pid, "FROM trace.zones WHERE name = 'thread'"))
        run = next((kymo.home / "live").iterdir())
        heads = [path.read_bytes() for path in run.glob(f"p{program.pid}-*/s*.head")]
        zones = [head for head in heads if head[16:80].split(b"\0")[0] == b"trace.zones"]
        assert sorted(struct.unpack_from("<I", head, 92)[0] for head in zones) == [0, 1]  # keep: flight, all


def test_the_child_of_a_fork_inherits_what_was_set(kymo):
    with running(kymo, "fork", env={"KYMO": "on", "KYMO_TORCH_EVERY": "7"}) as program:
        child = int(program.first_line)
        until(lambda: kymo("config", child).status == 0)
        assert kymo("config", child, "torch_every").out == "7\n"


def children(kymo, recording):
    sql = "SELECT pid, started_ns FROM kymo.processes WHERE role = 'target' ORDER BY started_ns"
    return rows(kymo, recording, sql)


def test_what_is_started_later_goes_on_with_what_was_changed(kymo):
    # A shell lies between; what nobody changed is as the environment says.
    command = [KYMO, "run", "-q", "-o", "rec", "--", PROGS / "probe_loop", "start"]
    with running(kymo, command=command, env={"KYMO_TORCH_EVERY": "7", "KYMO_WATCH": "a@b"}) as program:
        (first,) = until(lambda: children(kymo, "rec"))
        for word in ("torch_every=9", "zones=off", "torch_modules=layers.*"):
            assert kymo("config", "rec", word).status == 0
        program.stdin.write("\n")
        program.stdin.flush()
        child = until(lambda: [p["pid"] for p in children(kymo, "rec") if p["pid"] != first["pid"]])[0]
        assert {key: kymo("config", child, key).out for key in ("torch_every", "zones", "torch_modules", "watch")} == {
            "torch_every": "9\n", "zones": "off\n", "torch_modules": "layers.*\n", "watch": "a@b\n"}


def test_a_program_that_begins_anew_goes_on_with_what_was_changed(kymo):
    command = [KYMO, "run", "-q", "-o", "rec", "--", PROGS / "probe_loop", "again"]
    with running(kymo, command=command, env={"KYMO_TORCH_EVERY": "7"}) as program:
        until(lambda: children(kymo, "rec"))
        kymo("config", "rec", "torch_every=9")
        program.stdin.write("\n")
        program.stdin.flush()
        until(lambda: len(children(kymo, "rec")) == 2)
        assert kymo("config", "rec", "torch_every").out == "9\n"


def test_a_childs_pid_means_the_child_and_the_programs_the_run(kymo):
    with running(kymo, "fork", env={"KYMO": "on"}) as program:
        child = int(program.first_line)
        until(lambda: kymo("config", child).status == 0)
        kymo("config", child, "zones=off")
        assert (kymo("config", child, "zones").out, kymo("config", program.pid, "python").out) == ("off\n", "off\n")
        assert "(differs between processes)" in kymo("config", program.pid).out
        kymo("config", program.pid, "torch_every=3")
        assert kymo("config", child, "torch_every").out == "3\n"


def test_a_stopped_program_is_configured_too(kymo):
    with running(kymo, env={"KYMO": "on"}) as program:
        os.kill(program.pid, signal.SIGSTOP)
        try:
            assert kymo("config", program.pid, "zones=off", timeout=20).out == "zones=off (was on)\n"
        finally:
            os.kill(program.pid, signal.SIGCONT)


def test_what_only_an_extension_or_a_layer_applies_is_refused_without_it(kymo):
    with running(kymo, env={"KYMO": "on"}) as program:
        for word, end in [("torch=on", "start it with kymo run --torch"), ("gc=on", "start it with kymo run"),
                          ("python=on", f"or let kymo attach {program.pid} sample its stacks"),
                          ("device=on", "start an OpenCL program with kymo run --device, or call <kymo/device.h>")]:
            done = kymo("config", program.pid, "torch_every=5", word)
            key = word.split("=")[0]
            assert (done.status, done.out) == (1, "")
            assert done.err.startswith(f"kymo config: {key} of pid {program.pid} cannot be ") and done.err.endswith(end + "\n")
        assert kymo("config", program.pid, "torch_every").out == "1\n"  # nothing was changed
        assert kymo("config", program.pid, "python=off", "torch=off", "device=off").status == 0


COLLECTS = """
import gc, sys
gc.collect()
while not any("libkymo.so" in line for line in open("/proc/self/maps")):
    kept = [[] for _ in range(100000)]
    gc.collect()
print("begun", flush=True)
for line in sys.stdin:
    print("heard", flush=True)
"""


def test_a_python_of_kymo_run_takes_torch_and_gc_and_refuses_python(kymo):
    command = [KYMO, "run", "-q", "-o", "rec", "--", sys.executable, "-c", COLLECTS]
    with running(kymo, command=command) as program:
        assert program.first_line == "begun"
        done = kymo("config", "rec", "python=on")
        assert done.status == 1 and "start it with kymo run --python, or let kymo attach" in done.err
        assert kymo("config", "rec", "gc=off", "torch=off").status == 0
        done = kymo("config", "rec", "gc=on", "torch=on")
        assert (done.status, done.out) == (0, "gc=on (was off)\ntorch=on (was off)\n"), done.err


def test_ended_and_foreign_programs_are_refused_with_what_to_do(kymo):
    with running(kymo, env={"KYMO": "on"}) as program:
        path = next((kymo.home / "live").iterdir())
    ended = kymo("config", program.pid, "torch=on")
    assert (ended.status, ended.err) == \
        (1, f"kymo config: there is no process {program.pid}; `kymo ls` lists recordings\n")
    done = kymo("config", path, "torch=on")
    assert done.status == 1 and "its program has ended" in done.err
    with running(kymo) as program:
        done = kymo("config", program.pid, "torch=on")
        assert done.status == 1
        assert done.err == (f"kymo config: process {program.pid} does not record; use `kymo attach {program.pid}` "
                            "to watch it, or start it with `kymo run -- …` or KYMO=on\n")


def test_a_pid_that_is_used_again_is_not_taken_for_the_recorded_one(kymo):
    """The recording of a dead program gets the number of one that runs."""
    path = kymo.record("plain")
    with running(kymo) as other:
        process = next(path.glob("p*"))
        control = bytearray((process / "control").read_bytes())
        struct.pack_into("<i", control, 32, other.pid)
        (process / "control").write_bytes(control)
        run = bytearray((path / "run").read_bytes())
        struct.pack_into("<i", run, 60, other.pid)
        (path / "run").write_bytes(run)
        process.rename(path / f"p{other.pid}-{process.name.split('-')[1]}")
        done = kymo("config", other.pid, "torch=on")
        assert done.status == 1 and f"process {other.pid} does not record" in done.err


def test_an_address_and_a_missing_target_are_said(kymo):
    done = kymo("config", "localhost:1", "torch=on")
    assert done.status == 1 and "cannot connect to kymo serve at " in done.err
    assert kymo("config").status == 2
    assert kymo("config", "torch=on").err.startswith("kymo config: no target given before torch=on; ")


def test_a_damaged_control_page_is_an_error_not_a_crash(kymo):
    with running(kymo, env={"KYMO": "on"}) as program:
        control = next((kymo.home / "live").glob("*/p*/control"))
        data = control.read_bytes()
        copy = kymo.cwd / "copy" / control.parent.parent.name
        (copy / control.parent.name).mkdir(parents=True)
        (copy / "run").write_bytes((control.parent.parent / "run").read_bytes())
        for cut in [0, 15, 100, 4000]:
            (copy / control.parent.name / "control").write_bytes(data[:cut])
            done = kymo("config", copy, "torch=on")
            assert done.status == 1 and done.err.count("\n") == 1
        assert program.poll() is None


def test_the_help_and_the_man_page_explain_every_key(kymo):
    page = (ROOT / "man/kymo-config.1").read_text().replace("\\-", "-")
    helped = kymo("config", "--help").out.split("Keys (")[1]
    lines = [line.split(None, 1) for line in helped.splitlines()[1:]]
    assert [key for key, _ in lines] == list(DEFAULTS)
    for key, about in lines:
        assert f".B {key}\n{about}\n" in page


def test_a_change_leaves_little_behind_and_reads_as_before(kymo):
    """Room that the row did not need is given back; what is there is still a whole recording."""
    with running(kymo, env={"KYMO": "on"}) as program:
        run, = (kymo.home / "live").iterdir()
        before = set(run.iterdir())
        assert kymo("config", program.pid, "torch_every=5").status == 0
        left, = set(run.iterdir()) - before
        kept = sum(file.stat().st_blocks * 512 for file in left.iterdir())
        assert kept <= 100 * 1024 < sum(file.stat().st_size for file in left.iterdir())
        changes = rows(kymo, program.pid, "SELECT key, old, new FROM kymo.config")
        assert changes == [{"key": "torch_every", "old": "1", "new": "5"}]
        assert rows(kymo, program.pid, "FROM kymo.problems") == []
