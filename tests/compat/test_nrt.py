"""nrt_profile.h: files that hold what they should, options and the environment, every wrong use, and every end."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from programs import BUILD, HERE, KYMO, ROOT, Home, said

sys.path.insert(0, str(ROOT / "tests/crash"))
from mounts import CAN_MOUNT, UNSHARE  # noqa: E402

SEEDS = ROOT.parent / "shared/seeds"
EXAMPLE = ROOT / "examples/models"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
EXECUTIONS = "SELECT model, queue, count(*) AS n FROM device.ops WHERE kind = 'execution' GROUP BY ALL ORDER BY ALL"
FOUR = {"m0": 1, "m1": 2, "m2": 3, "m3": 4}  # run_four() of nrt_checks.c


def flags(package="kymo-nrt"):
    env = {**os.environ, "PKG_CONFIG_PATH": str(BUILD / "packaging")}
    return said(["pkg-config", "--cflags", "--libs", package], env=env).split()


def compiled(source, out, *options, compiler="cc"):
    said([compiler, "-O1", "-g", *options, source, "-o", out, *flags(), f"-Wl,-rpath,{BUILD}", "-pthread"])
    return out


class Place(Home):
    """A folder to run in, with recordings of its own."""

    def __init__(self, path):
        super().__init__(path)
        self.path = path
        self.env = {key: value for key, value in self.env.items() if not key.startswith(("NEURON", "OPENCL_LAYERS"))}
        self.env["HOME"] = str(path)

    def do(self, *words, status=0, **env):
        done = subprocess.run([str(word) for word in words], cwd=self.path, env={**self.env, **env}, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def ask(self, file, sql):
        return json.loads(self.do(KYMO, "query", "-f", "json", file, sql).stdout)

    def executions(self, file):
        return {row["model"]: row["n"] for row in self.ask(file, EXECUTIONS)}

    def files(self, folder="output"):
        return sorted(path.name for path in (self.path / folder).iterdir()) if (self.path / folder).is_dir() else []

    def only(self, folder="output"):
        (name,) = self.files(folder)
        return f"{folder}/{name}"


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture(scope="module")
def checks(tmp_path_factory):
    return compiled(HERE / "nrt_checks.c", tmp_path_factory.mktemp("checks") / "nrt_checks", *STRICT)


# ---- arguments and life ------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["null_everywhere", "bad_arguments", "life"])
def test_wrong_use_has_a_status_and_no_consequence(place, checks, name):
    place.do(checks, name)
    assert [path.name for path in place.path.iterdir() if path.is_file()] == []


def test_statuses_have_their_numbers_and_names(place, checks):
    known = {0: "SUCCESS", 1: "FAILURE", 2: "INVALID", 3: "INVALID_HANDLE", 4: "RESOURCE", 5: "TIMEOUT", 6: "HW_ERROR",
             7: "QUEUE_FULL", 13: "UNINITIALIZED", 14: "CLOSED"}
    wanted = [f"{i} NRT_{known.get(i, 'UNKNOWN')}" for i in range(16)]
    assert place.do(checks, "statuses").stdout.splitlines() == wanted


def test_without_a_capture_nothing_is_recorded(place, checks):
    assert place.do(checks, "life").stderr == ""
    assert place.recordings() == []


def test_what_is_no_model_is_said(place, checks):
    said_so = place.do(checks, "bad_arguments").stderr
    assert "kymo: cannot load the model: it is neither OpenCL C with a kernel nor a text that begins with kymo-fake-model\n" in said_so
    assert "kymo: cannot load the model: it has no name\n" in said_so
    assert "kymo: cannot load the model: a line of it is not OPERATION MICROSECONDS\n" in said_so


# ---- one model -----------------------------------------------------------------------------------------------

def test_a_profile_has_its_models_executions_and_no_others(place, checks):
    done = place.do(checks, "one_model")
    assert place.executions("one.ntff") == {"one": 10}
    assert place.executions("again.ntff") == {"one": 2}
    assert place.executions("third.ntff") == {"one_2": 4}
    assert place.ask("one.ntff", "SELECT kind, name, count(*) AS n FROM device.ops GROUP BY ALL ORDER BY ALL") == [
        {"kind": "execution", "name": "one", "n": 10}, {"kind": "kernel", "name": "first", "n": 10},
        {"kind": "kernel", "name": "second", "n": 10}]
    assert done.stderr.splitlines() == [
        "kymo: cannot stop the profile into one.ntff: no profile with that name was started",
        "kymo: cannot profile one into one.ntff: it is already being profiled",
        "kymo: cannot profile one into another.ntff: it is already being profiled",
        "kymo: cannot profile other into one.ntff: another model is being profiled into that file",
        "kymo: cannot stop the profile into another.ntff: no profile with that name was started",
        "kymo: cannot stop the profile into one.ntff: no profile with that name was started"]


def test_a_profile_has_nothing_but_the_device(place, checks):
    place.do(checks, "one_model")
    assert place.ask("one.ntff", "SELECT count(*) AS n FROM trace.zones") == [{"n": 0}]
    assert place.ask("one.ntff", "SELECT table_name, emitted, kept, overwritten, dropped FROM kymo.streams "
                                 "WHERE table_name = 'device.ops'") == [
        {"table_name": "device.ops", "emitted": 30, "kept": 30, "overwritten": 0, "dropped": 0}]


def test_the_operations_lie_inside_of_their_execution(place, checks):
    place.do(checks, "one_model")
    outside = """SELECT count(*) AS n FROM device.ops k JOIN device.ops e USING (execution)
        WHERE k.kind = 'kernel' AND e.kind = 'execution' AND (k.start_ns < e.start_ns OR k.end_ns > e.end_ns)"""
    assert place.ask("one.ntff", outside) == [{"n": 0}]


def test_a_file_is_opened_by_its_content(place, checks):
    place.do(checks, "one_model")
    (place.path / "one.ntff").rename(place.path / "profile.anything")
    assert place.executions("profile.anything") == {"one": 10}
    said = [line.split() for line in place.do(KYMO, "report", "profile.anything").stdout.splitlines()]
    assert said[0] == ["model,", "latency", "core", "runs", "first", "p50", "warm", "p99", "total"]
    assert said[1][:3] == ["one", "0", "10"]
    assert said[3][:5] == ["nrt_checks", "captured", "while", "it", "ran"]


def test_a_file_that_was_packed_is_reported_with_its_models_first_too(place, checks):
    place.do(checks, "one_model")
    place.do(KYMO, "pack", "one.ntff", "one.kymo")
    first = place.do(KYMO, "report", "one.ntff").stdout.splitlines()[:2]
    assert first[0].startswith("  model, latency ") and first[1].startswith("  one ")
    assert place.do(KYMO, "report", "one.kymo").stdout.splitlines()[:2] == first


def test_threads_may_run_and_profile_at_once(place, checks):
    place.do(checks, "threads")
    assert place.executions("one.ntff") == {"one": 4 * 500}


def test_a_child_profiles_its_own(place, checks):
    place.do(checks, "fork_and_go_on")
    assert place.executions("parent.ntff") == {"forked": 4}
    assert place.executions("child.ntff") == {"forked": 3}


def test_what_is_recorded_anyway_has_every_execution(place, checks):
    place.do(checks, "no_calls", KYMO="on", KYMO_DEVICE="on")
    (recording,) = place.recordings()
    assert place.executions(recording) == FOUR and place.files() == []


def test_under_kymo_run_a_profile_is_the_same(place, checks):
    place.do(KYMO, "run", "-o", "run", "--", checks, "one_model")
    assert place.executions("one.ntff") == {"one": 10} and place.executions("third.ntff") == {"one_2": 4}
    assert place.executions("run") == {"one": 12, "one_2": 4}


def test_on_fail_alone_begins_at_init(place, checks):
    place.do(checks, "fails", NEURON_RT_INSPECT_ON_FAIL="1")
    assert place.executions(place.only()) == {"failing": 3}


def test_kymo_off_wins(place, checks):
    done = place.do(checks, "one_model", status=1, KYMO="off")
    assert 'nrt_profile_start(one, "one.ntff") is NRT_FAILURE' in done.stdout
    assert "kymo: cannot profile: recording is off: KYMO=off is set in the environment; unset it\n" in done.stderr
    assert place.recordings() == []


# ---- continuous ----------------------------------------------------------------------------------------------

def test_a_save_has_what_the_core_ran_last(place, checks):
    place.do(checks, "continuous", "new/folder")
    assert place.files("new/folder") == ["one_vnc0_1.kymo", "one_vnc0_2.kymo", "other_vnc0_1.kymo", "third_vnc5_1.kymo"]
    found = {name: place.ask(f"new/folder/{name}", EXECUTIONS) for name in place.files("new/folder")}
    assert found == {"one_vnc0_1.kymo": [{"model": "one", "queue": "vnc0", "n": 6}],
                     "one_vnc0_2.kymo": [{"model": "one", "queue": "vnc0", "n": 8}],
                     "other_vnc0_1.kymo": [{"model": "other", "queue": "vnc0", "n": 5}],
                     "third_vnc5_1.kymo": [{"model": "third", "queue": "vnc5", "n": 9}]}


def test_newest_last(place, checks):
    place.do(checks, "continuous", "output")
    found = place.ask("output/one_vnc0_2.kymo", "SELECT start_ns FROM device.ops WHERE kind = 'execution'")
    starts = [row["start_ns"] for row in found]
    assert len(starts) == 8 and starts == sorted(starts)


def test_files_that_are_there_are_not_overwritten(place, checks):
    for _ in range(2):
        place.do(checks, "many", "output", 10)
    assert place.files() == ["many_vnc0_1.kymo", "many_vnc0_2.kymo"]


def test_inspect_and_continuous_do_not_share_the_device(place, checks):
    said_so = place.do(checks, "one_at_a_time", "output").stderr
    assert ("kymo: an inspect session cannot profile the device while continuous profiling does; call "
            "nrt_profile_continuous_stop() first\n") in said_so
    assert ("kymo: continuous profiling cannot start while an inspect session profiles the device; call "
            "nrt_inspect_stop() first\n") in said_so


def test_a_long_flight_keeps_the_last_and_counts_the_rest(place, checks):
    place.do(checks, "many", "output", 200_000)
    (stream,) = place.ask(place.only(), "SELECT emitted, kept, overwritten FROM kymo.streams WHERE table_name = 'device.ops'")
    assert 131_072 <= stream["kept"] <= 132_096 and stream["kept"] + stream["overwritten"] == 400_000
    assert (place.path / place.only()).stat().st_size < 32 << 20


# ---- inspect -------------------------------------------------------------------------------------------------

def calls(place, file):
    rows = place.ask(file, "SELECT name, count(*) AS n FROM trace.zones GROUP BY ALL")
    return {row["name"]: row["n"] for row in rows}


def inspected(place, checks, how="by_environment", **env):
    env = {f"NEURON_RT_INSPECT_{key}": value for key, value in env.items()}
    return place.do(checks, how, **env).stderr


def test_a_session_by_the_environment_has_everything(place, checks):
    assert inspected(place, checks, ENABLE="1") == ""
    assert re.fullmatch(r"output/inspect_1_\d+_1\.kymo", place.only())
    said = place.do(KYMO, "report", place.only()).stdout
    assert "No zones recorded" not in said and re.search(r"\nRegions\n.*\n  .* nrt_execute +c +10 ", said)
    assert place.executions(place.only()) == FOUR
    assert calls(place, place.only()) == {"nrt_load": 4, "nrt_execute": 10, "nrt_unload": 4}


@pytest.mark.parametrize("env", [{}, {"ENABLE": "0"}], ids=str)
def test_without_enable_it_captures_nothing_succeeds_and_warns(place, checks, env):
    assert inspected(place, checks, **env) == "kymo: nothing is captured: NEURON_RT_INSPECT_ENABLE is not 1\n"
    assert place.files() == [] and place.recordings() == []


def test_without_a_call_it_begins_at_init_and_dumps_at_exit(place, checks):
    assert inspected(place, checks, "no_calls", ENABLE="1", OUTPUT_DIR="at/exit") == ""
    assert place.executions(place.only("at/exit")) == FOUR


def test_a_begin_of_the_programs_own_takes_the_place_of_that(place, checks):
    assert inspected(place, checks, "begin_after_init", ENABLE="1") == \
        "kymo: no inspect session is running; call nrt_inspect_begin() first\n"
    assert place.executions(place.only()) == FOUR


# The variables, and what is left of executions and of calls: None, all.
FILTERS = [
    ({"SYSTEM_PROFILE": "0"}, FOUR, {}),
    ({"DEVICE_PROFILE": "0"}, {}, None),
    ({"DEVICE_PROFILE": "session"}, FOUR, None),
    ({"DEVICE_PROFILE_NUM_WARMUP": "2"}, {"m2": 1, "m3": 2}, None),
    ({"EVENT_FILTER_NC": "0,2-3"}, {"m0": 1, "m2": 3, "m3": 4}, {"nrt_load": 3, "nrt_execute": 8, "nrt_unload": 3}),
    ({"EVENT_FILTER_TYPE": "hardware"}, FOUR, {}),
    ({"EVENT_FILTER_TYPE": "software"}, {}, None),
    ({"EVENT_FILTER_TYPE": "nrt_execute,execution"}, FOUR, {"nrt_execute": 10}),
    ({"EVENT_FILTER_TYPE": "^nrt_load,^hardware"}, {}, {"nrt_execute": 10, "nrt_unload": 4}),
    ({"EVENT_FILTER_TYPE": "execution", "SYS_TRACE_MAX_EVENTS_PER_NC": "2"}, {"m0": 1, "m1": 2, "m2": 2, "m3": 2}, {}),
]


@pytest.mark.parametrize("env, executions, zones", FILTERS, ids=[str(row[0]) for row in FILTERS])
def test_what_the_environment_filters(place, checks, env, executions, zones):
    assert inspected(place, checks, ENABLE="1", **env) == ""
    assert place.executions(place.only()) == executions
    assert calls(place, place.only()) == ({"nrt_load": 4, "nrt_execute": 10, "nrt_unload": 4} if zones is None else zones)


def test_a_file_for_each_model(place, checks):
    inspected(place, checks, ENABLE="1", DEVICE_PROFILE="model")
    found = {re.sub(r"_\d+_1\.kymo$", "", name): place.executions(f"output/{name}") for name in place.files()}
    assert found == {"inspect_1": FOUR, **{f"{name}_1": {name: count} for name, count in FOUR.items()}}


def test_of_the_process_as_counters(place, checks):
    inspected(place, checks, ENABLE="1", HOST_MEMORY="1", CPU_UTIL="1")
    (row,) = place.ask(place.only(), "SELECT name, min(value) AS least FROM trace.counters GROUP BY name HAVING name LIKE '%memory%'")
    assert row["name"] == "host_memory_bytes" and row["least"] > 100_000


# What is set, and what is said about it.
WRONG = [
    ({"SYSTEM_PROFILE": "perhaps"}, "NEURON_RT_INSPECT_SYSTEM_PROFILE=perhaps is ignored: expected 0 or 1"),
    ({"DEVICE_PROFILE": "2"}, "NEURON_RT_INSPECT_DEVICE_PROFILE=2 is ignored: expected 0, 1, model or session"),
    ({"EVENT_FILTER_NC": "0,64"}, "NEURON_RT_INSPECT_EVENT_FILTER_NC=0,64 is ignored: expected cores from 0 to 63, as 0,2,4-7"),
    ({"EVENT_FILTER_NC": "3-"}, "NEURON_RT_INSPECT_EVENT_FILTER_NC=3- is ignored: expected cores from 0 to 63, as 0,2,4-7"),
    ({"EVENT_FILTER_TYPE": "kernel,other"}, "NEURON_RT_INSPECT_EVENT_FILTER_TYPE=kernel,other is ignored: expected names of events, "
     "hardware or software, each with ^ before it to leave it out"),
    ({"SYS_TRACE_MAX_EVENTS_PER_NC": "0"}, "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC=0 is ignored: expected a number from 1"),
    ({"DEVICE_PROFILE_NUM_WARMUP": "-1"}, "NEURON_RT_INSPECT_DEVICE_PROFILE_NUM_WARMUP=-1 is ignored: expected a number"),
    ({"OUTPUT_DIRECTORY": "x"}, "NEURON_RT_INSPECT_OUTPUT_DIRECTORY is not known and changes nothing; did you mean "
     "NEURON_RT_INSPECT_OUTPUT_DIR?"),
    ({"ONFAIL": "1"}, "NEURON_RT_INSPECT_ONFAIL is not known and changes nothing; did you mean NEURON_RT_INSPECT_ON_FAIL?"),
]


@pytest.mark.parametrize("env, sentence", WRONG, ids=[str(row[0]) for row in WRONG])
def test_what_makes_no_sense_is_said_and_left_aside(place, checks, env, sentence):
    assert inspected(place, checks, ENABLE="1", **env) == f"kymo: {sentence}\n"
    assert place.executions(place.only()) == FOUR


def test_options_ignore_the_environment(place, checks):
    place.do(checks, "by_null", NEURON_RT_INSPECT_OUTPUT_DIR="elsewhere", NEURON_RT_INSPECT_DEVICE_PROFILE="0",
             NEURON_RT_INSPECT_UNHEARD_OF="1")
    assert place.files("elsewhere") == []
    assert place.executions(place.only()) == FOUR and calls(place, place.only())["nrt_execute"] == 10


def test_a_session_by_options(place, checks):
    place.do(checks, "by_options", "chosen")
    assert re.fullmatch(r"chosen/inspect_42_\d+_1\.kymo", place.only("chosen"))
    assert place.executions(place.only("chosen")) == {"m0": 1, "m1": 2, "m3": 3}  # without core 2, at most 3 of each
    assert place.ask(place.only("chosen"), "SELECT DISTINCT kind FROM device.ops") == [{"kind": "execution"}]


# enable, on_fail: the files, and how often the model ran by then.
@pytest.mark.parametrize("enable, on_fail, files", [(0, 0, {}), (1, 0, {"inspect": 5}), (0, 1, {"failing_fail": 3}),
                                                    (1, 1, {"inspect": 5, "failing_fail": 3})])
def test_what_the_enable_setters_say(place, checks, enable, on_fail, files):
    done = place.do(checks, "enables", enable, on_fail)
    found = {re.match(r"inspect|failing_fail", name)[0]: place.executions(f"output/{name}") for name in place.files()}
    assert found == {name: {"failing": count} for name, count in files.items()}
    assert done.stderr == ("" if files else "kymo: nothing is captured: both enable options are off\n")


def test_activities_are_listed(place, checks):
    assert place.do(checks, "activities").stdout.splitlines() == [
        "system_profile device_profile host_memory cpu_util", "system_profile device_profile", "device_profile cpu_util", "",
        "system_profile device_profile host_memory cpu_util"]


# ---- no room, no memory, no time ---------------------------------------------------------------------------------

def test_a_directory_that_cannot_be_made(place, checks):
    (place.path / "file").write_text("in the way")
    done = place.do(checks, "unwritable", "file/output", "file/x.ntff")
    assert "kymo: cannot create the directory file/output: Not a directory; set another output directory\n" in done.stderr
    assert "kymo: cannot write the snapshot file/x.ntff: Not a directory; choose a file in a writable directory\n" in done.stderr
    assert (place.path / "file").read_text() == "in the way"


def test_a_limit_on_files_leaves_the_old_one_whole(place, checks):
    (place.path / "old.ntff").write_text("whole")
    done = place.do(checks, "small_files", "old.ntff")
    assert "kymo: cannot write the snapshot old.ntff: File too large; an existing file is unchanged\n" in done.stderr
    assert (place.path / "old.ntff").read_text() == "whole"
    assert [path.name for path in place.path.glob(".*part")] == []


@pytest.mark.skipif(not CAN_MOUNT, reason="no file system can be mounted here, so none can be full")
def test_a_full_disk_leaves_the_old_file_whole_and_stop_may_be_tried_again(place, checks):
    disk = place.path / "disk"
    disk.mkdir()
    script = f"""mount -t tmpfs -o size=1m none {disk} && echo whole >{disk}/x.ntff &&
        head -c 1000000 /dev/zero >{disk}/filler && {checks} full {disk}/x.ntff {disk}/filler && ls -A {disk} &&
        {KYMO} query -f json {disk}/x.ntff "{EXECUTIONS}" """
    done = place.do(*UNSHARE, "sh", "-c", script)
    assert done.stderr == (f"kymo: cannot write the snapshot {disk}/x.ntff: No space left on device; an existing file is unchanged\n")
    listed, rows = done.stdout.split("\n", 1)
    assert listed == "x.ntff" and json.loads(rows) == [{"model": "full", "queue": "vnc0", "n": 500}]


@pytest.mark.parametrize("how, status", [("exit", 0), ("kill", -9)])
def test_what_was_recorded_outlives_a_program_that_ends_in_mid_capture(place, checks, how, status):
    done = place.do(checks, "ends", how, status=status)
    assert not (place.path / "cut.ntff").exists()
    (recording,) = place.recordings()
    assert place.executions(recording) == {"cut": 25}
    process = next(recording.glob("p*"))
    assert done.stderr == ("" if how == "kill" else "kymo: the profile into cut.ntff was not stopped, so the file was not written; "
                                                    f"the recorded rows are in {process}\n")


# Of an OpenCL model only what is its own: compiling it takes long. Where there is no OpenCL, the stand-in takes less memory.
@pytest.mark.parametrize("model, how, least", [("fake", "all", 16), ("opencl", "load", 1)])
def test_every_allocation_may_fail(place, tmp_path, model, how, least):
    text = "kymo-fake-model small\nop 0\n" if model == "fake" else (EXAMPLE / "blur.cl").read_text()
    (tmp_path / "model").write_text(text)
    program = compiled(HERE / "nrt_memory.c", tmp_path / "nrt_memory", "-D_GNU_SOURCE")
    done = place.do(program, "model", how)
    assert int(re.fullmatch(r"(\d+) allocations failed\n", done.stdout)[1]) >= least
    assert [path.name for path in place.path.rglob("*") if path.suffix in (".part", ".taken")] == []


# ---- the headers -------------------------------------------------------------------------------------------------

USE = """
#include <nrt/nrt_profile.h>
#include <nrt/nrt.h>
#include <nrt/nrt_status.h>
int main(void)
{
\treturn nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS || nrt_profile_stop("x") != NRT_INVALID;
}
"""


@pytest.mark.parametrize("standard", ["c99", "c++11", "c++20"])
def test_the_headers_are_clean(place, tmp_path, standard):
    source = tmp_path / ("use.cpp" if "++" in standard else "use.c")
    source.write_text(USE)
    for compiler in ("c++", "clang++") if "++" in standard else ("cc", "clang"):
        if shutil.which(compiler):
            compiled(source, tmp_path / "use", f"-std={standard}", *STRICT, compiler=compiler)
            place.do(tmp_path / "use")


@pytest.mark.parametrize("words", [["-lkymo_compat", "-lkymo"], [f"-L{BUILD}/kymo-nrt", "-lnrt", "-lkymo"]], ids=["compat", "alias"])
def test_both_ways_to_link(place, tmp_path, words):
    (tmp_path / "use.c").write_text(USE)
    said(["cc", tmp_path / "use.c", f"-I{ROOT}/compat/include", f"-L{BUILD}", *words, f"-Wl,-rpath,{BUILD}", "-o", tmp_path / "use"])
    place.do(tmp_path / "use")


# ---- the code of the documentation ---------------------------------------------------------------------------------

def seed_blocks():
    found = sorted(SEEDS.glob("002_*.txt"))
    if not found:
        pytest.skip(f"there is no {SEEDS}/002_*.txt: the documentation's code blocks are not in this tree")
    parts = re.split(r"^\.\. code-block:: c\n", found[0].read_text(), flags=re.MULTILINE)[1:]
    return [re.match(r"\n*((?:[ \t]+\S.*\n|\n)+)", part)[1].strip() for part in parts]


@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_the_documentations_declarations_are_the_headers_own(place, tmp_path, compiler):
    blocks = seed_blocks()
    names = [re.search(r"(nrt_\w+)\(", block)[1] for block in blocks]
    assert len(names) == len(set(names)) == 9
    taken = "".join(f"\t(void *)&{name},\n" for name in names)
    (tmp_path / f"seed.{'c' if compiler == 'cc' else 'cpp'}").write_text(
        "#include <nrt/nrt_profile.h>\n" + ('extern "C" {\n' if compiler == "c++" else "") + "\n".join(blocks) +
        ("\n}\n" if compiler == "c++" else "\n") +
        f"static void *all[] = {{\n{taken}}};\nint main(void)\n{{\n\treturn sizeof(all) / sizeof(all[0]) != {len(names)};\n}}\n")
    source = next(tmp_path.glob("seed.c*"))
    said([compiler, source, *flags(), f"-Wl,-rpath,{BUILD}", "-o", tmp_path / "seed"])
    place.do(tmp_path / "seed")


# What a program around the documentation's calls has to have: a model, and somewhere to write.
AROUND = """#include <nrt/nrt_profile.h>
#include <stdio.h>
#include <stdlib.h>
%s
#define DO(call) do { NRT_STATUS status = call; if (status) { puts(#call); return 1; } } while (0)
int main(void)
{
\tstatic const char text[] = "kymo-fake-model seed\\nop 0\\n";
\tnrt_profile_continuous_options_t *continuous;
\tnrt_inspect_config_t *options;
\tnrt_model_t *model;
\tDO(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
\tDO(nrt_load(text, sizeof(text) - 1, 0, 1, &model));
\tDO(nrt_profile_start(model, "seed.ntff"));
\tDO(nrt_execute(model, NULL, NULL));
\tDO(nrt_profile_stop("seed.ntff"));
\tDO(nrt_profile_continuous_options_allocate(&continuous));
\tDO(nrt_profile_continuous_start(continuous));
\tDO(nrt_execute(model, NULL, NULL));
\tDO(nrt_profile_continuous_save(0, continuous));
\tDO(nrt_profile_continuous_stop());
\tsetenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
\tDO(nrt_inspect_begin());
\tDO(nrt_execute(model, NULL, NULL));
\tDO(nrt_inspect_stop());
\tDO(nrt_inspect_config_allocate(&options));
\tDO(nrt_inspect_config_set_output_dir(options, "with_options"));
\tDO(nrt_inspect_begin_with_options(options));
\tDO(nrt_execute(model, NULL, NULL));
\tDO(nrt_inspect_stop());
\treturn 0;
}
"""


def test_the_documentations_functions_run(place, tmp_path):
    (tmp_path / "seed.c").write_text(AROUND % "\n".join(seed_blocks()))
    place.do(compiled(tmp_path / "seed.c", tmp_path / "seed"), NEURON_RT_INSPECT_OUTPUT_DIR="inspected")
    for file in ("seed.ntff", place.only(), place.only("inspected"), place.only("with_options")):
        assert place.executions(file) == {"seed": 1}


# ---- the example, on OpenCL -----------------------------------------------------------------------------------------

Ran = collections.namedtuple("Ran", "place files stderr")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("example"))
    program = compiled(EXAMPLE / "models.c", place.path / "models", *STRICT)
    done = place.do(program, EXAMPLE, "out")
    files = {re.sub(r"_\d+_1\.kymo", "", name): f"out/{name}" for name in place.files("out")}
    return Ran(place, files, done.stderr)


def has_opencl(ran):
    if ran.stderr:
        pytest.skip(f"no OpenCL device is here: {ran.stderr.strip()}")


EXPECTED = {"scale.ntff": {"scale": 50}, "scale_vnc0_1.kymo": {"scale": 50}, "blur_vnc1_1.kymo": {"blur": 50},
            "inspect_1": {"blur": 50, "scale": 50}, "inspect_2": {"scale": 50}}


def test_the_example_makes_every_file(ran):
    assert {name: ran.place.executions(file) for name, file in ran.files.items()} == EXPECTED


def test_the_example_runs_on_opencl(ran):
    has_opencl(ran)
    rows = ran.place.ask(ran.files["inspect_1"], "SELECT model, queue, name, count(*) AS n FROM device.ops WHERE kind = 'kernel' "
                                                 "GROUP BY ALL ORDER BY ALL")
    assert rows == [{"model": "blur", "queue": "vnc1", "name": "blur_rows", "n": 50},
                    {"model": "blur", "queue": "vnc1", "name": "sharpen", "n": 50},
                    {"model": "scale", "queue": "vnc0", "name": "scale_and_shift", "n": 50}]
    (device,) = ran.place.ask(ran.files["scale.ntff"], "SELECT DISTINCT device FROM device.ops")
    assert "stand-in" not in device["device"]


def test_times_of_opencl_are_within_the_call_that_ran_them(ran):
    has_opencl(ran)
    outside = """SELECT count(*) AS n FROM device.ops k JOIN device.ops e USING (execution) WHERE k.kind = 'kernel' AND
        e.kind = 'execution' AND (k.start_ns + k.error_ns < e.start_ns OR k.end_ns - k.error_ns > e.end_ns OR k.start_ns > k.end_ns)"""
    assert ran.place.ask(ran.files["inspect_1"], outside) == [{"n": 0}]


def test_duckdb_opens_each_packed_file(ran):
    duckdb = pytest.importorskip("duckdb", reason="no duckdb in this Python: tools/setup test installs it")
    for name, file in ran.files.items():
        packed = ran.place.path / f"{name}.packed"
        ran.place.do(KYMO, "pack", file, packed)
        with duckdb.connect(str(packed), read_only=True) as db:
            found = db.execute("SELECT model, count(*) FROM device.ops WHERE kind = 'execution' GROUP BY ALL ORDER BY ALL").fetchall()
        assert dict(found) == EXPECTED[name]


def test_report_begins_with_the_latency_of_each_model(ran):
    for file in ran.files.values():
        assert ran.place.do(KYMO, "report", file).stdout.startswith("  model, latency ")


def test_without_opencl_a_stand_in_says_so(place, checks, tmp_path):
    program = compiled(EXAMPLE / "models.c", tmp_path / "models")
    done = place.do(program, EXAMPLE, "out", OCL_ICD_VENDORS=str(tmp_path / "none"), OCL_ICD_FILENAMES="")
    assert re.fullmatch("kymo: (OpenCL has no platform|libOpenCL.so.1 was not found): scale runs on a stand-in on the host, which "
                        "computes nothing; install an OpenCL driver, for example pocl-opencl-icd\n", done.stderr)
    assert place.ask("out/scale.ntff", "SELECT DISTINCT device FROM device.ops") == [{"device": "host stand-in"}]


def test_a_kernel_that_does_not_compile_is_said(ran, tmp_path):
    has_opencl(ran)
    (tmp_path / "bad.c").write_text("""#include <nrt/nrt.h>
int main(void)
{
\tstatic const char text[] = "__kernel void broken(__global int *x) { x[0] = nowhere; }";
\tnrt_model_t *model = (nrt_model_t *)1;
\treturn nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") || nrt_load(text, sizeof(text), 0, 1, &model) != NRT_INVALID || model;
}
""")
    done = ran.place.do(compiled(tmp_path / "bad.c", tmp_path / "bad"))
    assert "kymo: cannot load broken: it does not compile as OpenCL C: " in done.stderr and "nowhere" in done.stderr
