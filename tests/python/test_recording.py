"""kymo.recording() and kymo.start(): parts of a program in files of their own, without `kymo run`."""
import json
import subprocess
import sys
import textwrap

import pytest

from conftest import KYMO, run

HEAD = """
import json, os, sys, threading, time
import kymo

def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))

def names(r):
    return {row["name"]: row["count"] for row in r.query("SELECT name, count FROM trace.regions")}

def say(value):
    print(json.dumps(value))
"""


@pytest.fixture
def told(home, tmp_path):
    """Runs a program that says one value as JSON."""

    def tell(code, *before):
        path = tmp_path / "program.py"
        path.write_text(HEAD + textwrap.dedent(code))
        env = {**home, "KYMO_BIN": str(KYMO)}
        return json.loads(run([*before, sys.executable, path], env, tmp_path).stdout.splitlines()[-1])

    return tell


def test_the_file_has_the_zones_of_the_block_from_time_zero(told):
    begin, count, before = told("""
        kymo.enable()
        with kymo.region("before"):
            pass
        with kymo.recording("r.kymosnap") as r:
            for _ in range(3):
                with kymo.region("inside"):
                    time.sleep(0.01)
        with kymo.region("after"):
            pass
        (first,) = r.query("SELECT min(start_ns) AS at FROM trace.zones")
        say([first["at"], names(r), os.path.exists(r.path)])
    """)
    assert 0 <= begin < 1e9
    assert count == {"inside": 3}
    assert before is True


def test_totals_of_the_file_are_those_of_its_rows(told):
    totals, rows = told("""
        for number in range(2):
            with kymo.recording(f"{number}.kymosnap") as r:
                for _ in range(500):
                    with kymo.region("outer"):
                        with kymo.region("inner"):
                            pass
        total = "SELECT count, total_ns, self_ns, min_ns, max_ns FROM trace.regions WHERE name = 'outer'"
        rows = '''SELECT count(*) AS count, sum(z.duration_ns)::BIGINT AS total_ns,
            (sum(z.duration_ns) - (SELECT sum(duration_ns) FROM trace.zones WHERE name = 'inner'))::BIGINT AS self_ns,
            min(z.duration_ns) AS min_ns, max(z.duration_ns) AS max_ns FROM trace.zones z WHERE z.name = 'outer' '''
        say([r.query(total).rows()[0], r.query(rows).rows()[0]])
    """)
    assert totals["count"] == rows["count"] == 500
    for name in ("total_ns", "self_ns"):
        assert totals[name] == pytest.approx(rows[name], abs=1000)  # each duration is rounded to ns
    for name in ("min_ns", "max_ns"):
        assert totals[name] == pytest.approx(rows[name], abs=2)


def test_recordings_in_turn_have_only_their_own(told):
    assert told("""
        found = []
        for number in range(3):
            with kymo.recording() as r:
                with kymo.region(f"part {number}"):
                    pass
            found.append(names(r))
        say(found)
    """) == [{"part 0": 1}, {"part 1": 1}, {"part 2": 1}]


def test_a_recording_inside_another_is_in_both(told):
    outer, inner = told("""
        with kymo.recording("outer.kymosnap") as outer:
            with kymo.region("first"):
                pass
            with kymo.recording("inner.kymosnap") as inner:
                with kymo.region("second"):
                    pass
            with kymo.region("third"):
                pass
        say([names(outer), names(inner)])
    """)
    assert outer == {"first": 1, "second": 1, "third": 1}
    assert inner == {"second": 1}


def test_the_report_names_the_function_that_took_the_time(told):
    finding, report = told("""
        with kymo.recording() as r:
            spin(0.6)
        say([r.findings()[0], r.report()])
    """)
    assert "spin" in json.dumps(finding)
    assert "spin (program.py:" in report
    assert "process_memory" not in report  # a function of the collector


def test_calls_of_python_are_recorded_on_request_only(told):
    without, with_calls, after = told("""
        def work():
            return 1
        with kymo.recording("1.kymosnap") as a:
            work()
        with kymo.recording("2.kymosnap", python=True) as b:
            work()
        with kymo.recording("3.kymosnap") as c:
            work()
        say([names(a).get("work", 0), names(b).get("work", 0), names(c).get("work", 0)])
    """)
    assert (without, with_calls, after) == (0, 1, 0)


def test_memory_is_recorded_on_request(told):
    assert told("""
        with kymo.recording(memory=True) as r:
            kept = []
            for _ in range(20):
                with kymo.region("allocate"):
                    kept.append(bytearray(4 << 20))
        say(r.query("SELECT sum(allocated_bytes)::BIGINT AS bytes FROM alloc.sites")[0]["bytes"])
    """) >= 40 << 20


def test_an_exception_of_the_block_goes_on_and_the_file_is_written(told):
    assert told("""
        try:
            with kymo.recording("r.kymosnap") as r:
                with kymo.region("raises"):
                    raise KeyError("mine")
        except KeyError as error:
            say([str(error), names(r)])
    """) == ["'mine'", {"raises": 1}]


def test_threads_may_record_at_the_same_time(told):
    assert told("""
        found = {}
        def record(number):
            with kymo.recording(f"{number}.kymosnap") as r:
                with kymo.region(f"thread {number}"):
                    time.sleep(0.05)
            found[number] = f"thread {number}" in names(r)
        threads = [threading.Thread(target=record, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        say([sorted(found.values()), kymo.enabled()])
    """) == [[True] * 4, False]


def test_a_fork_inside_is_recorded_and_ends_nothing(told):
    assert told("""
        with kymo.recording("r.kymosnap") as r:
            child = os.fork()
            if not child:
                with kymo.region("in the child"):
                    pass
                r.stop()
                os._exit(0)
            os.waitpid(child, 0)
            with kymo.region("in the parent"):
                pass
        say(names(r))
    """) == {"in the child": 1, "in the parent": 1}


def test_no_process_is_left_behind(told):
    assert told("""
        with kymo.recording() as r:
            pass
        try:
            os.waitpid(-1, os.WNOHANG)
            say("a child")
        except ChildProcessError:
            say("none")
    """) == "none"


def test_under_kymo_run_the_run_goes_on(told, tmp_path):
    assert told("""
        with kymo.recording("part.kymosnap") as r:
            with kymo.region("part"):
                pass
        with kymo.region("rest"):
            pass
        say([names(r).get("part"), kymo.enabled()])
    """, KYMO, "run", "-q", "-o", "whole", "--") == [1, True]
    sql = "SELECT name FROM trace.regions WHERE name IN ('part', 'rest') ORDER BY 1"
    found = subprocess.run([KYMO, "query", "-f", "csv", tmp_path / "whole", sql], capture_output=True, text=True, check=True)
    assert found.stdout == "name\npart\nrest\n"


def test_wrong_use_is_a_sentence(told, tmp_path):
    assert told("""
        said = []
        for act in (lambda: kymo.start(python="on"), lambda: kymo.start("missing/folder/r.kymosnap").stop(),
                    lambda: kymo.start("r").query("FROM x")):
            try:
                act()
            except (TypeError, kymo.Error) as error:
                said.append(type(error).__name__ + ": " + str(error))
        say(said)
    """) == ["TypeError: kymo.start: python takes a bool, not str",
             f"Error: kymo snapshot: cannot write the snapshot {tmp_path}/missing/folder/r.kymosnap: No such file or directory; "
             "choose a file in a writable directory",
             "Error: the recording has no file yet: call stop() first"]


def test_the_page_and_a_comparison(told):
    page, text = told("""
        recordings = []
        for number in range(2):
            with kymo.recording(f"{number}.kymosnap") as r:
                for step in range(20):
                    kymo.step("step")
                    time.sleep(0.001 * (1 + 4 * number))
                kymo.step_end()
            recordings.append(r)
        say([open(recordings[0].html()).read()[:15].lower(), recordings[0].compare(recordings[1])])
    """)
    assert page == "<!doctype html>"
    assert "slower" in text


def test_collections_are_in_each_recording(told, home):
    del home["KYMO_GC"]
    assert told("""
        import gc
        found = []
        for number in range(2):
            kept = []
            with kymo.recording() as r:
                for _ in range(200):
                    kept.append([[] for _ in range(2000)])
                    gc.collect()
            found.append(any(name.startswith("gc ") for name in names(r)))
        say(found)
    """) == [True, True]


def test_a_program_goes_on_where_nothing_can_be_recorded(told, home):
    home["KYMO"] = "off"
    assert told("""
        with kymo.recording("r.kymosnap") as r:
            done = True
        try:
            r.report()
        except kymo.Error as error:
            say([done, "KYMO=off" in str(error), sorted(os.listdir("."))])
    """) == [True, True, ["live", "program.py"]]


def test_a_program_goes_on_where_the_file_cannot_be_written(told):
    assert told("""
        with kymo.recording("missing/folder/r.kymosnap") as r:
            done = True
        try:
            r.report()
        except kymo.Error as error:
            say([done, "cannot write the snapshot" in str(error)])
    """) == [True, True]
