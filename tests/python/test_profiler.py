"""kymo.profiler: timers, collectors, streams and memory, under plain python."""
import pytest

# What is measured and what SQL finds are the same samples; ns are told by the clock's rate as it is known then.
RATE = 1e-3

BOTH_NUMBERS = """
    import json, threading
    from kymo.profiler import CUDATimer, MetricsCollector
    timer, collector = CUDATimer(), MetricsCollector()
    def work():
        for i in range(700):
            with timer.measure("outer"):
                with timer.measure("inner"):
                    sum(range(i))
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads: t.start()
    work()
    for t in threads: t.join()
    for i in range(1, 501):
        collector.record("loss", 1 / i)
        with collector.measure_time("outer"):
            pass
    print(json.dumps({
        "timer": timer.instance, "collector": collector.instance,
        "times": timer.all_times(), "own": collector.all_times(), "values": collector.all_values()}))
"""


def test_sql_on_the_recording_gives_the_same_numbers(supervise):
    import json

    recording = supervise(BOTH_NUMBERS)
    said = json.loads(recording.stdout)
    rows = {(row["name"], row["instance"]): row for row in recording.query(
        "SELECT * FROM trace.regions WHERE instance IS NOT NULL AND source = 'python'")}
    for instance, times in ((said["timer"], said["times"]), (said["collector"], said["own"])):
        for name, ours in times.items():
            row = rows[name, instance]
            assert row["count"] == ours["count"]
            for key, column in (("total", "total_ns"), ("self", "self_ns"), ("min", "min_ns"), ("max", "max_ns"),
                                ("mean", "mean_ns"), ("std", "stddev_ns"), ("p50", "p50_ns"), ("p99", "p99_ns")):
                assert row[column] / 1e6 == pytest.approx(ours[key], rel=RATE, abs=2e-6), (name, key)
    assert said["times"]["outer"]["count"] == said["times"]["inner"]["count"] == 2800
    (row,) = recording.query(
        "SELECT count(*) AS n, avg(value) AS mean, stddev_samp(value) AS std, min(value) AS low, max(value) AS high, "
        f"quantile_cont(value, 0.9) AS p90 FROM trace.counters WHERE name = 'loss' AND instance = {said['collector']}")
    ours = said["values"]["loss"]
    assert [row[key] for key in ("n", "low", "high")] == [ours[key] for key in ("count", "min", "max")]
    assert [row[key] for key in ("mean", "std", "p90")] == pytest.approx([ours[key] for key in ("mean", "std", "p90")])
    assert recording.one("SELECT count(*) FROM trace.zones WHERE name = 'inner' AND depth = 1") == 2800


def test_a_timer_and_a_collector_say_what_they_hold(plain):
    done = plain("""
        from kymo.profiler import CUDATimer, MetricsCollector
        timer, collector = CUDATimer(), MetricsCollector()
        print(timer)
        for i in range(3):
            with timer.measure("load"), collector.measure_time("iteration"):
                collector.record("loss", i)
        print(timer, collector, sep="\\n")
        for i in range(10):
            timer.start(f"{i}")
            timer.stop(f"{i}")
        print(timer)
    """)
    assert done.stdout.splitlines() == [
        "<CUDATimer: nothing yet>", "<CUDATimer: times 'load' (3)>", "<MetricsCollector: times 'iteration' (3); values 'loss' (3)>",
        "<CUDATimer: times 'load' (3), '0' (1), '1' (1), '2' (1), '3' (1), '4' (1), '5' (1), '6' (1) and 3 more>"]


def test_the_first_use_turns_recording_on(plain, tmp_path):
    done = plain("""
        from kymo.profiler import CUDATimer
        assert not kymo.enabled()
        with CUDATimer().measure("x"):
            pass
        print(kymo.enabled(), kymo.query("SELECT name, count FROM trace.regions").rows())
    """)
    assert done.stdout == "True [{'name': 'x', 'count': 1}]\n"
    assert len(list((tmp_path / "live").iterdir())) == 1


def test_off_wins_and_everything_answers(plain, tmp_path):
    done = plain("""
        from kymo.profiler import CUDATimer, MetricsCollector, MemoryTracker, StreamProfiler, Reporter, compare_runs
        timer, collector = CUDATimer(), MetricsCollector()
        with StreamProfiler() as streams, MemoryTracker() as memory:
            with timer.measure("x"), collector.measure_time("iteration"):
                collector.record("loss", 1)
                block = bytearray(1_000_000)
        assert timer.get_elapsed("x") >= 0 and timer.stats("x")["count"] == 1
        assert streams.get_stats()["streams"][0]["ops"] >= 1 and memory.get_stats()["peak_allocated"] > 0
        reporter = Reporter(collector)
        reporter.save_json("r.json"), reporter.save_csv("r.csv"), reporter.save_html("r.html"), reporter.print_summary()
        assert "KYMO=off" in open("r.html").read()
        assert round(compare_runs(collector, "r.json")["speedup"], 6) == 1
        print(kymo.enabled(), kymo.directory())
    """, {"KYMO": "off"})
    assert done.stdout.endswith("False None\n")
    assert list((tmp_path / "live").iterdir()) == []


def test_a_stop_without_a_start_names_the_timer(plain):
    done = plain("""
        from kymo.profiler import CUDATimer
        timer = CUDATimer()
        timer.start("load"); timer.stop("load")
        for name in ("load", "never"):
            try:
                timer.stop(name)
            except ValueError as error:
                print(error)
        try:
            timer.get_elapsed("never")
        except ValueError as error:
            print(error)
        print(timer.stats("load")["count"])
    """)
    assert done.stdout == (
        "CUDATimer: stop('load') without a matching start('load')\n"
        "CUDATimer: stop('never') without a matching start('never')\n"
        "CUDATimer: no measurement is named 'never'; there are ['load']\n1\n")


def test_measurements_nest_recurse_and_cross_in_any_order(plain):
    done = plain("""
        import threading, time
        from kymo.profiler import CUDATimer
        timer = CUDATimer()
        def deep(n):
            with timer.measure("deep"):
                if n: deep(n - 1)
        deep(99)
        timer.start("a"); timer.start("b"); timer.stop("a"); timer.stop("b")     # crossed
        timer.start("same"); timer.start("same"); timer.stop("same"); timer.stop("same")
        def steps():
            with timer.measure("generator"):
                yield
        one, two = steps(), steps()
        next(one); next(two); list(one); list(two)
        timer.start("elsewhere")
        thread = threading.Thread(target=timer.stop, args=("elsewhere",)); thread.start(); thread.join()
        try:
            with timer.measure("raises"):
                raise KeyError("the program's own")
        except KeyError as error:
            print(error)
        print({name: row["count"] for name, row in timer.all_times().items()})
        rows = timer.all_times()["deep"]
        assert rows["self"] <= rows["max"] * 1.000001 < rows["total"]
        print(kymo.query("SELECT count(*) AS n, max(depth) AS d FROM trace.zones WHERE name = 'deep'").rows(),
              kymo.query("SELECT count(*) AS n FROM trace.open_zones").rows())
    """)
    assert done.stdout == (
        "\"the program's own\"\n{'deep': 100, 'a': 1, 'b': 1, 'same': 2, 'generator': 2, 'elsewhere': 1, 'raises': 1}\n"
        "[{'n': 100, 'd': 99}] [{'n': 0}]\n")


WORKERS = """
    import os
    from multiprocessing import get_context
    from kymo.profiler import CUDATimer, MetricsCollector, MemoryTracker
    collector, timer = MetricsCollector(), CUDATimer()
    def work(n):
        with collector.measure_time("work"):
            collector.record("n", n)
        return collector.all_times()["work"]["count"]
    def main():
        with MemoryTracker(interval=5), timer.measure("epoch"):
            with collector.measure_time("before"):
                pass
            with get_context({method!r}).Pool(2) as pool:
                counts = pool.map(work, range(20), chunksize=1)
                pool.close()
                pool.join()
        print(collector.all_times().keys() - {{"work"}}, timer.stats("epoch")["count"], len(counts))
    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_neither_double_nor_lose_samples(supervise, method):
    recording = supervise(WORKERS.format(method=method))
    assert recording.stdout == "{'before'} 1 20\n"
    assert recording.query("SELECT name, count(*) AS n FROM trace.zones WHERE name IN ('work', 'before', 'epoch') "
                           "GROUP BY name ORDER BY name") == [
        {"name": "before", "n": 1}, {"name": "epoch", "n": 1}, {"name": "work", "n": 20}]
    assert recording.one("SELECT sum(value) FROM trace.counters WHERE name = 'n'") == sum(range(20))


LOADER = """
    import torch
    from torch.utils.data import DataLoader, Dataset
    from kymo.profiler import CUDATimer, MetricsCollector, MemoryTracker
    class Data(Dataset):
        def __init__(self): self.collector = MetricsCollector()
        def __len__(self): return 40
        def __getitem__(self, i):
            with self.collector.measure_time("load"):
                self.collector.record("i", i)
                return torch.tensor([i])
    if __name__ == "__main__":
        timer, tracker, data = CUDATimer(), MemoryTracker(interval=5), Data()
        data[0]
        with tracker, timer.measure("epoch"):
            total = 0
            for batch in DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context={method!r}):
                with timer.measure("batch"):
                    total += int(batch.sum())
        print(total, timer.stats("epoch")["count"], timer.stats("batch")["count"], data.collector.all_times()["load"]["count"],
              tracker.get_stats()["peak_allocated"] > 0)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_dataloaders_workers_neither_double_nor_lose_samples(supervise, method):
    pytest.importorskip("torch", reason="no torch in this Python")
    recording = supervise(LOADER.format(method=method))
    assert recording.stdout == "780 1 10 1 True\n"
    assert recording.query("SELECT name, count(*) AS n FROM trace.zones WHERE instance IS NOT NULL GROUP BY name ORDER BY name") == [
        {"name": "batch", "n": 10}, {"name": "epoch", "n": 1}, {"name": "load", "n": 41}]
    assert recording.one("SELECT sum(value) FROM trace.counters WHERE name = 'i'") == 780
    assert recording.one("SELECT count(DISTINCT pid) FROM trace.zones WHERE name = 'load'") == 3


def test_a_child_that_falls_out_of_the_parents_block_counts_nothing(supervise):
    recording = supervise("""
        import os
        from kymo.profiler import CUDATimer, MemoryTracker
        timer = CUDATimer()
        with MemoryTracker(), timer.measure("block"):
            timer.start("begun")
            pid = os.fork()
            with timer.measure("parent" if pid else "child"):
                pass
            timer.stop("begun")
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
        names = {name: row["count"] for name, row in timer.all_times().items()}
        assert names == ({"begun": 1, "parent": 1, "block": 1} if pid else {"child": 1}), names
    """)
    assert recording.query("SELECT name, count(*) AS n FROM trace.zones GROUP BY name ORDER BY name") == [
        {"name": name, "n": 1} for name in ("begun", "block", "child", "parent")]


def test_collectors_made_again_and_names_without_end_leave_nothing_over(plain):
    done = plain("""
        import gc
        from kymo._metrics import resident
        from kymo.profiler import MetricsCollector
        def cell():
            collector = MetricsCollector()
            collector.itself = collector                       # a cycle, as notebooks have them
            for name in ("forward", "backward"):
                with collector.measure_time(name):
                    collector.record("loss", 1)
            collector.start("never stopped")
        for _ in range(1500): cell()
        gc.collect()
        before = resident()[0]
        for _ in range(3000): cell()
        gc.collect()
        assert resident()[0] - before < 8 << 20, resident()[0] - before
        assert MetricsCollector().instance <= 1000
        many = MetricsCollector()
        for i in range(6000):
            many.record(f"name {i}", i)
        values = many.all_values()
        print(len(values), values["(other names)"]["count"], sum(row["count"] for row in values.values()))
    """)
    assert done.stdout == "4097 1904 6000\n"


def test_any_number_of_samples_takes_the_same_memory_and_stays_exact(plain):
    done = plain("""
        from kymo.profiler import MetricsCollector
        collector = MetricsCollector()
        for i in range(100_001):
            collector.record("i", i)
        row = collector.all_values()["i"]
        means, size = collector.value_samples("i")
        print(row["count"], row["sum"], row["mean"], row["min"], row["max"], row["last"], round(row["std"], 3))
        print(size, len(means), means[0], all(row[p] == __import__("pytest").approx(q * 1e5, rel=.04) for p, q in
              (("p50", .5), ("p90", .9), ("p99", .99))))
    """)
    assert done.stdout == ("100001 5000050000.0 50000.0 0.0 100000.0 100000.0 28867.946\n"
                           "128 781 63.5 True\n")


def test_threads_carry_their_names_into_the_recording(supervise):
    recording = supervise("""
        import threading
        from kymo.profiler import CUDATimer
        timer = CUDATimer()
        def work():
            with timer.measure("x"): pass
        thread = threading.Thread(target=work, name="loader-7"); thread.start(); thread.join()
        work()
    """)
    assert recording.column("SELECT thread FROM trace.zones ORDER BY thread") == ["MainThread", "loader-7"]


# A stand-in for torch.cuda: work takes time on a queue that goes on without the host. No accelerator is needed, and none is
# tested here.
STAND_IN = """
    import sys, time, types
    queue = [0.0]
    class Event:
        waited = 0
        def __init__(self, enable_timing): assert enable_timing
        def record(self): self.at = queue[0]
        def query(self): return False
        def synchronize(self): Event.waited += 1
        def elapsed_time(self, other): return other.at - self.at
    cuda = types.SimpleNamespace(Event=Event, synchronize=lambda: synchronized.append(1), is_initialized=lambda: True,
                                 memory_stats=lambda: dict(memory))
    memory = {}
    synchronized = []
    sys.modules["torch"] = types.SimpleNamespace(version=types.SimpleNamespace(cuda="13.0"), cuda=cuda, __version__="0")
    def kernel(ms): queue[0] += ms
"""


def test_device_events_tell_the_time_where_there_are_any(supervise):
    """To a tenth: a device's ms are kept as ticks of the recording's clock, whose rate is known better from moment to moment."""
    recording = supervise(STAND_IN + """
    from kymo.profiler import CUDATimer, DeviceTimer
    assert DeviceTimer is CUDATimer
    timer = CUDATimer()
    for ms in (5.0, 7.0):
        with timer.measure("outer"):
            kernel(1.0)
            with timer.measure("kernel"):
                kernel(ms)
    print(Event.waited, len(synchronized))
    print(round(timer.get_elapsed("kernel"), 1), Event.waited)      # waits for this name's events alone
    stats = timer.stats("kernel")
    print(stats["count"], round(stats["mean"], 1), stats["clock"], round(timer.times("outer")["self"], 1))
    quiet = CUDATimer(synchronize=False)
    with quiet.measure("x"): kernel(2.5)
    print(round(quiet.get_elapsed("x"), 1), len(synchronized))
    """)
    assert recording.stdout == "0 4\n7.0 2\n2 6.0 cuda events 2.0\n2.5 4\n"
    rows = recording.query("SELECT name, source, duration_ns FROM trace.zones WHERE source = 'device' AND name = 'kernel' ORDER BY 3")
    assert [round(row["duration_ns"] / 1e6, 1) for row in rows] == [5.0, 7.0]
    assert recording.one("SELECT count(*) FROM trace.zones WHERE source = 'python' AND name = 'kernel'") == 2


def test_a_device_that_fails_is_timed_by_the_host(plain):
    done = plain(STAND_IN + """
    def broken(**words): raise RuntimeError("no more events")
    cuda.Event = broken
    from kymo.profiler import CUDATimer
    timer = CUDATimer()
    with timer.measure("x"): time.sleep(.002)
    print(timer.stats("x")["clock"], timer.get_elapsed("x") >= 2)
    """)
    assert done.stdout == "host True\n"


def test_the_accelerators_allocator_is_read_and_never_reset(plain):
    done = plain(STAND_IN + """
    from kymo.profiler import MemoryTracker
    def now(current, peak, allocs):
        memory.update({"allocated_bytes.all.current": current, "allocated_bytes.all.peak": peak, "allocation.all.allocated": allocs,
                       "allocation.all.freed": allocs - 1, "allocated_bytes.all.allocated": 100 * allocs,
                       "reserved_bytes.all.current": 2 * current, "reserved_bytes.all.peak": 2 * peak})
    now(10, 500, 5)
    with MemoryTracker(interval=10_000) as tracker:
        now(700, 900, 9)
    print(tracker.get_stats())
    """)
    assert done.stdout == str({
        "peak_allocated": 900, "peak_reserved": 1800, "current_allocated": 700, "current_reserved": 1400, "num_allocs": 4,
        "num_frees": 4, "total_allocated": 400, "source": "torch.cuda allocator"}) + "\n"


def test_a_memory_tracker_ends_its_thread_and_knows_the_peak(plain):
    done = plain("""
        import threading, time
        from kymo.profiler import MemoryTracker
        tracker = MemoryTracker(interval=5)
        threads = threading.active_count()
        with tracker:
            assert threading.active_count() == threads + 1
            data = bytearray(64 << 20)
            del data
            time.sleep(.03)
        assert threading.active_count() == threads
        stats = tracker.get_stats()
        assert stats["peak_allocated"] - stats["current_allocated"] > 50 << 20
        assert all(value is not None for value in stats.values()), stats
        print(sorted(stats), sorted(tracker.get_allocation_timeline()[0]))
        for words, some in (((False, True), True), ((False, False), False)):
            with MemoryTracker(*words) as quiet: pass
            assert bool(quiet.get_allocation_timeline()) == some
    """)
    assert done.stdout == (
        "['current_allocated', 'current_reserved', 'num_allocs', 'num_frees', 'peak_allocated', 'peak_reserved', 'source', "
        "'total_allocated'] ['allocated', 'device', 'kind', 'ptr', 'size', 'stack', 'ts_ns']\n")


def test_streams_are_busy_idle_and_overlap(plain):
    done = plain("""
        import threading, time
        from kymo.profiler import CUDATimer, StreamProfiler
        timer, both = CUDATimer(), threading.Barrier(2)
        def work(times):
            both.wait()
            with timer.measure("work"):
                both.wait()
                time.sleep(.2)
                both.wait()
        with StreamProfiler(num_streams=3) as profiler:
            threads = [threading.Thread(target=work, args=(1,), name=f"queue {i}") for i in range(2)]
            for t in threads: t.start()
            for t in threads: t.join()
        stats = profiler.get_stats()
        print([(row["kind"], row["ops"]) for row in stats["streams"]], sorted(row["name"] for row in stats["streams"]))
        assert 1.5 < stats["overlap"] <= 2, stats
        for row in stats["streams"]:
            assert abs(row["busy_ms"] + row["idle_ms"] - stats["wall_ms"]) < 1e-6
        with profiler:
            with timer.measure("alone"):
                with timer.measure("inside"): pass
            with timer.measure("alone"): pass
        print(profiler.get_stats()["overlap"], profiler.get_stats()["streams"][0]["ops"])
        with profiler: pass
        profiler.print_stream_efficiency()
    """)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["[('thread', 1), ('thread', 1), ('none', 0)] ['(idle)', 'queue 0', 'queue 1']", "1.0 2"]
    assert any(line.startswith("Note: no activity") for line in lines[2:])
    assert max(map(len, lines[2:])) <= 80


def test_arguments_go_by_position_and_by_name(plain):
    done = plain("""
        from kymo.profiler import CUDATimer, MetricsCollector
        timer, collector = CUDATimer(synchronize=True, warmup=1, repeat=2), MetricsCollector()
        with timer.measure(name="x"), collector.measure_time(name="y"): pass
        timer.start(name="x"); timer.stop(name="x")
        collector.record(name="loss", value=1); collector.record("loss", value=2); collector.record(value=3, name="loss")
        print(timer.stats(name="x")["count"], timer.get_elapsed(name="x") > 0, collector.all_values()["loss"]["sum"])
        for wrong in (lambda: timer.measure(), lambda: timer.measure(5), lambda: timer.measure(nam="x"),
                      lambda: timer.measure("x", name="x"), lambda: collector.record("loss"), lambda: collector.record("loss", "a"),
                      lambda: collector.record("loss", 1, 2), lambda: collector.record("loss", name="x")):
            try:
                wrong()
            except TypeError:
                continue
            print("taken")
    """)
    assert done.stdout == "2 True 6.0\n"


def test_benchmark_warms_up_and_repeats(plain):
    done = plain("""
        from kymo.profiler import CUDATimer
        calls = []
        timer = CUDATimer(warmup=2, repeat=5)
        stats = timer.benchmark(lambda: calls.append(1))
        print(len(calls), stats["count"], stats["clock"], sorted(stats))
    """)
    assert done.stdout == ("7 5 host ['clock', 'count', 'max', 'mean', 'min', 'p50', 'p90', 'p99', 'std']\n")
