"""What turns recording on, and what stays undone without it."""
import pytest

EVERYTHING = """
    with kymo.region("x"), kymo.phase("data"):
        pass
    kymo.region("y")(lambda: 1)()
    kymo.step(); kymo.step_end(); kymo.mark("m", "t"); kymo.record("c", 1)
    kymo.table("app.t", n=int).append(1)
    kymo.thread_name("t")
    print(kymo.enabled(), kymo.directory(), kymo.current_step())
"""


def test_off_nothing_is_done_and_no_file_is_made(plain, tmp_path):
    assert plain(EVERYTHING).stdout == "False None 0\n"
    assert list((tmp_path / "live").iterdir()) == []


def test_off_a_number_is_not_even_asked_for_its_value(plain):
    plain("""
        class Tensor:
            def __float__(self):
                raise RuntimeError("waited for the device")
        kymo.record("loss", Tensor())
    """)


def test_off_a_region_costs_less_than_an_empty_one_in_python(plain):
    done = plain("""
        import time
        class Empty:
            def __enter__(self):
                return self
            def __exit__(self, *exception):
                return None
        def cost(region):
            began = time.perf_counter_ns()
            for _ in range(50_000):
                with region:
                    pass
            return time.perf_counter_ns() - began
        pairs = [(cost(kymo.region("x")), cost(Empty())) for _ in range(15)]
        print(sorted(ours / theirs for ours, theirs in pairs)[7])
    """)
    assert float(done.stdout) < 1


def test_off_wins_over_the_program(plain, tmp_path):
    done = plain("""
        print(kymo.enable(), kymo.enabled())
    """, env={"KYMO": "off"})
    assert (done.stdout, done.stderr) == ("False False\n", "")
    assert list((tmp_path / "live").iterdir()) == []


def test_on_without_kymo_run_leaves_a_recording_that_query_reads(record):
    recording = record(EVERYTHING)
    assert recording.stdout.startswith("True ")
    assert recording.column("SELECT name FROM trace.regions ORDER BY name") == ["data", "x", "y"]


def test_enable_records_from_then_on_and_disable_stops(plain, tmp_path, program):
    import kymo

    done = plain("""
        with kymo.region("before"):
            pass
        print(kymo.enable(), kymo.enabled())
        with kymo.region("during"):
            pass
        kymo.disable()
        with kymo.region("after"):
            pass
        print(kymo.enabled(), kymo.enable())
        with kymo.region("again"):
            pass
    """)
    assert done.stdout == "True True\nFalse True\n"
    (run,) = (tmp_path / "live").iterdir()
    assert [row["name"] for row in kymo.query("SELECT name FROM trace.zones ORDER BY start_ns", run)] == [
        "during", "again"]


def test_where_it_cannot_record_it_warns_and_the_program_goes_on(plain, tmp_path):
    (tmp_path / "file").write_text("")
    done = plain("""
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(kymo.enable(), len(caught), caught[0].category.__name__)
        with kymo.region("x"):
            print("goes on")
    """, env={"KYMO_DIR": str(tmp_path / "file")})
    assert done.stdout == "False 1 RuntimeWarning\ngoes on\n"


@pytest.fixture
def program():
    """Named by tests that need the kymo program."""


def test_a_process_that_is_recorded_asks_itself(plain, program):
    done = plain("""
        with kymo.region("x"):
            pass
        print(kymo.query("SELECT name, count FROM trace.regions"))
    """, env={"KYMO": "on"})
    assert done.stdout == "[{'name': 'x', 'count': 1}]\n"


def test_a_snapshot_is_one_file_that_query_reads(plain, tmp_path, program):
    import kymo

    plain("""
        import pathlib
        with kymo.region("x"):
            pass
        kymo.mark("größe", "t")
        kymo.snapshot(pathlib.Path("one.snapshot"))
        kymo.snapshot("one.snapshot")
    """, env={"KYMO": "on"})
    assert kymo.query("SELECT name FROM trace.zones", tmp_path / "one.snapshot") == [{"name": "x"}]
    assert kymo.query("SELECT name, text FROM trace.marks", tmp_path / "one.snapshot") == [
        {"name": "größe", "text": "t"}]


def test_a_snapshot_that_cannot_be_written_says_so(plain):
    done = plain("""
        try:
            kymo.snapshot("no/such/folder/x.snapshot")
        except kymo.Error as error:
            print(error)
    """, env={"KYMO": "on"})
    assert "no/such/folder/x.snapshot" in done.stdout


def test_an_unknown_column_gives_the_sentence_with_its_suggestion(record):
    import kymo

    recording = record("with kymo.region('x'): pass")
    with pytest.raises(kymo.Error, match="duration_ns"):
        recording.query("SELECT duration FROM trace.zones")


def test_a_target_that_is_not_there_is_named(program, tmp_path):
    import kymo

    with pytest.raises(kymo.Error, match="nowhere"):
        kymo.query("SELECT 1", tmp_path / "nowhere")


def test_the_program_is_named_when_it_cannot_be_started(monkeypatch):
    import kymo

    monkeypatch.setenv("KYMO_BIN", "/nowhere/kymo")
    with pytest.raises(kymo.Error, match="cannot start /nowhere/kymo: No such file"):
        kymo.query("SELECT 1")
