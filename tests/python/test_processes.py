"""Children of all kinds are recorded under `kymo run`.

A fork while other threads run is the one with a caveat, Python's and everybody's: those threads do not exist in the
child, and what they had open stays open in the parent alone.
"""
import pytest

WORKERS = """
    import multiprocessing, os
    def work(n):
        with kymo.region("work"):
            kymo.record("n", n)
            return os.getpid()
    if __name__ == "__main__":
        multiprocessing.set_start_method({method!r})
        with kymo.region("parent"):
            with multiprocessing.Pool(3) as pool:
                pids = pool.map(work, range(60), chunksize=1)
                pool.close()
                pool.join()
        print(len(set(pids)))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_are_recorded(supervise, method):
    recording = supervise(WORKERS.format(method=method))
    rows = recording.query("SELECT pid, count(*) AS n FROM trace.zones WHERE name = 'work' GROUP BY pid")
    assert sum(row["n"] for row in rows) == 60
    assert len(rows) == int(recording.stdout)
    assert recording.one("SELECT sum(value) FROM trace.counters WHERE name = 'n'") == sum(range(60))
    assert recording.one("SELECT count(*) FROM trace.zones WHERE name = 'parent'") == 1


def test_a_decorated_function_goes_to_a_spawned_worker(supervise):
    recording = supervise("""
        import multiprocessing
        @kymo.region
        def work(n):
            return n + 1
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                print(sum(pool.map(work, range(10))))
                pool.close()
                pool.join()
    """)
    assert recording.stdout == "55\n"
    assert recording.one("SELECT count(*) FROM trace.zones WHERE name = 'work'") == 10


def test_after_a_fork_inside_regions_both_sides_have_right_depths(supervise):
    recording = supervise("""
        import os
        with kymo.region("p"):
            with kymo.region("q"):
                pid = os.fork()
                with kymo.region("parent" if pid else "child"):
                    pass
        with kymo.region("after"):
            pass
        if pid:
            os.waitpid(pid, 0)
    """)
    assert recording.query("SELECT name, depth, count(DISTINCT pid) AS pids FROM trace.zones "
                           "WHERE name IN ('parent', 'child', 'after') GROUP BY ALL ORDER BY name") == [
        {"name": "after", "depth": 0, "pids": 2}, {"name": "child", "depth": 0, "pids": 1},
        {"name": "parent", "depth": 2, "pids": 1}]


def test_forks_while_threads_record_do_not_hang_and_lose_nothing(supervise):
    recording = supervise("""
        import os, threading, warnings
        warnings.simplefilter("ignore")
        stop = False
        counts = [0, 0]
        def spin(i):
            while not stop:
                with kymo.region("spin"):
                    counts[i] += 1
        threads = [threading.Thread(target=spin, args=(i,)) for i in range(2)]
        for t in threads: t.start()
        for i in range(30):
            pid = os.fork()
            if not pid:
                for _ in range(10):
                    with kymo.region("child"):
                        pass
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        stop = True
        for t in threads: t.join()
        print(sum(counts))
    """)
    assert recording.one("SELECT count(*) FROM trace.zones WHERE name = 'child'") == 300
    assert recording.one("SELECT sum(count) FROM trace.regions WHERE name = 'spin'") == int(recording.stdout)


def test_a_python_started_by_subprocess_is_recorded(supervise):
    recording = supervise("""
        import subprocess, sys
        subprocess.run([sys.executable, "-c", "import kymo\\nwith kymo.region('grandchild'): pass"], check=True)
    """)
    assert recording.column("SELECT name FROM trace.zones") == ["grandchild"]


def test_the_exit_status_and_the_output_are_the_programs_own(supervise):
    recording = supervise("""
        import sys
        with kymo.region("x"):
            print("out")
            print("err", file=sys.stderr)
            sys.exit(7)
    """, status=7)
    assert recording.stdout == "out\n"
    assert recording.stderr.startswith("err\n")
    assert recording.column("SELECT name FROM trace.zones") == ["x"]


def test_nothing_is_lost_between_what_the_program_counts_and_what_is_kept(supervise):
    recording = supervise("""
        region = kymo.region("x")
        for _ in range(300_000):
            with region:
                pass
    """)
    assert recording.one("SELECT count(*) FROM trace.zones") == 300_000
    assert recording.one("SELECT count FROM trace.regions") == 300_000
    assert recording.one("SELECT sum(emitted) = sum(kept) + sum(overwritten) + sum(dropped) "
                         "FROM kymo.streams WHERE table_name = 'trace.zones'") is True
