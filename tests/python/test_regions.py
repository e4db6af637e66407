"""Regions as context managers: whatever order they end in, the thread's stack of zones stays right."""


def test_a_with_block_is_a_zone_of_source_python(record):
    recording = record("""
        with kymo.region("load"):
            pass
    """)
    assert recording.query("SELECT name, source, depth FROM trace.zones") == [
        {"name": "load", "source": "python", "depth": 0}]


def test_nested_regions_have_their_depths_and_are_contained(record):
    recording = record("""
        with kymo.region("outer"):
            for _ in range(3):
                with kymo.region("inner"):
                    pass
    """)
    assert recording.query("SELECT name, depth, count(*) AS n FROM trace.zones GROUP BY ALL ORDER BY depth") == [
        {"name": "outer", "depth": 0, "n": 1}, {"name": "inner", "depth": 1, "n": 3}]
    assert recording.one("""
        SELECT count(*) FROM trace.zones o, trace.zones i WHERE o.depth = 0 AND i.depth = 1
        AND (i.start_ns < o.start_ns OR i.start_ns + i.duration_ns > o.start_ns + o.duration_ns)""") == 0


def test_one_region_object_may_be_entered_again_inside_itself(record):
    recording = record("""
        region = kymo.region("again")
        def down(n):
            with region:
                if n:
                    down(n - 1)
        down(99)
    """)
    assert recording.query("SELECT count(*) AS n, min(depth) AS lo, max(depth) AS hi, count(DISTINCT depth) AS d "
                           "FROM trace.zones") == [{"n": 100, "lo": 0, "hi": 99, "d": 100}]


def test_a_hundred_thousand_deep_neither_crashes_nor_loses_a_zone(record):
    recording = record("""
        import sys
        if sys.version_info < (3, 11):
            depth = 5_000
        else:
            depth = 100_000
        sys.setrecursionlimit(depth + 100)
        region = kymo.region("deep")
        def down(n):
            with region:
                return n and down(n - 1)
        down(depth - 1)
        print(depth)
    """)
    assert recording.one("SELECT count FROM trace.regions") == int(recording.stdout)


def test_an_exception_goes_through_and_ends_the_zones(record):
    recording = record("""
        try:
            with kymo.region("outer"), kymo.region("inner"):
                raise KeyError("mine")
        except KeyError as error:
            print(error, error.__context__)
        with kymo.region("after"):
            pass
    """)
    assert recording.stdout == "'mine' None\n"
    assert recording.query("SELECT name, depth FROM trace.zones ORDER BY start_ns") == [
        {"name": "outer", "depth": 0}, {"name": "inner", "depth": 1}, {"name": "after", "depth": 0}]


def test_threads_share_a_region_object_and_keep_their_zones_apart(record):
    recording = record("""
        import threading
        region = kymo.region("shared")
        def work():
            for _ in range(500):
                with region:
                    with region:
                        pass
        threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
    """)
    assert recording.one("SELECT count FROM trace.regions") == 8000
    assert recording.column("SELECT DISTINCT depth FROM trace.zones ORDER BY 1") == [0, 1]
    assert recording.column("SELECT DISTINCT thread FROM trace.zones ORDER BY 1") == [f"worker {i}" for i in range(8)]


def test_thread_name_overrides_what_threading_calls_it(record):
    recording = record("""
        kymo.thread_name("der Chef ☂")
        with kymo.region("x"):
            pass
    """)
    assert recording.one("SELECT thread FROM trace.zones") == "der Chef ☂"


def test_names_keep_any_character(record):
    recording = record(r"""
        names = ("größe", "数据", "🚂", "quo'te\"", "</script>", "nul\0inside", "lone\udc80surrogate", "a" * 5000)
        for name in names:
            with kymo.region(name):
                pass
    """)
    names = recording.column("SELECT name FROM trace.zones ORDER BY start_ns")
    assert names[:5] == ["größe", "数据", "🚂", "quo'te\"", "</script>"]
    assert names[5:7] == ["nul␀inside", "lone\\udc80surrogate"]
    assert names[7] == "a" * 4096


ASYNC_TASKS = """
    import asyncio
    region = kymo.region("request")
    async def request(i, turns):
        with region:
            for _ in range(turns):
                with kymo.region("part"):
                    await asyncio.sleep(0)
    async def main():
        await asyncio.gather(*(request(i, 1 + i % 7) for i in range(200)))
    asyncio.run(main())
    with kymo.region("after"):
        pass
"""


def test_tasks_that_interleave_leave_no_zone_open_and_no_depth_behind(record):
    recording = record(ASYNC_TASKS)
    assert recording.query("SELECT name, count FROM trace.regions ORDER BY name") == [
        {"name": "after", "count": 1}, {"name": "part", "count": sum(1 + i % 7 for i in range(200))},
        {"name": "request", "count": 200}]
    assert recording.query("SELECT depth FROM trace.zones WHERE name = 'after'") == [{"depth": 0}]
    assert recording.query("FROM trace.open_zones") == []


def test_a_task_ends_its_own_zone_of_a_region_that_others_are_in_too(record):
    recording = record("""
        import asyncio
        async def request(seconds):
            with kymo.region("request"):
                await asyncio.sleep(seconds)
        async def main():
            await asyncio.gather(request(0.05), request(0.3))
        asyncio.run(main())
    """)
    short, long = recording.column("SELECT duration_ns / 1e9 FROM trace.zones ORDER BY duration_ns")
    assert 0.04 < short < 0.2
    assert 0.25 < long


def test_a_generator_that_ends_after_its_caller_ends_alone(record):
    recording = record("""
        def produce():
            with kymo.region("produce"):
                yield 1
                yield 2
        with kymo.region("first"):
            items = produce()
            next(items)
        with kymo.region("second"):
            list(items)
        with kymo.region("third"):
            pass
    """)
    assert recording.query("SELECT name, depth FROM trace.zones WHERE name <> 'produce' ORDER BY start_ns") == [
        {"name": "first", "depth": 0}, {"name": "second", "depth": 0}, {"name": "third", "depth": 0}]
    assert recording.one("SELECT count FROM trace.regions WHERE name = 'produce'") == 1


def test_a_generator_that_another_thread_closes_leaves_the_depth_right(record):
    recording = record("""
        import threading
        def produce():
            with kymo.region("produce"):
                yield 1
        items = produce()
        next(items)
        closer = threading.Thread(target=items.close)
        closer.start()
        closer.join()
        with kymo.region("after"):
            pass
    """)
    assert recording.query("SELECT name, depth FROM trace.zones ORDER BY start_ns") == [
        {"name": "produce", "depth": 0}, {"name": "after", "depth": 0}]


def test_turning_off_inside_a_region_keeps_later_ends_in_their_places(record):
    recording = record("""
        region = kymo.region("x")
        with region:                 # recorded
            kymo.disable()
            with region:             # not
                kymo.enable()
                with region:         # recorded
                    pass
        with kymo.region("after"):
            pass
    """)
    assert recording.column("SELECT name FROM trace.zones ORDER BY start_ns") == ["x", "x", "after"]
    assert recording.one("SELECT depth FROM trace.zones WHERE name = 'after'") == 0
    assert recording.query("FROM trace.open_zones") == []


def test_an_end_without_a_beginning_is_ignored(record):
    recording = record("""
        kymo.region("never").__exit__(None, None, None)
        with kymo.region("after"):
            pass
    """)
    assert recording.query("SELECT name, depth FROM trace.zones") == [{"name": "after", "depth": 0}]


def test_names_without_end_do_not_grow_the_program(record):
    recording = record("""
        import resource
        def many(start):
            for i in range(start, start + 100_000):
                with kymo.region(f"name {i}"):
                    pass
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        first = many(0)
        print(many(100_000) - first < 60_000, kymo.enabled())
    """)
    assert recording.stdout == "True True\n"


def test_what_is_open_when_the_program_dies_is_known(record):
    recording = record("""
        import os
        with kymo.region("outer"):
            with kymo.region("inner"):
                os.kill(os.getpid(), 9)
    """, status=-9)
    assert recording.column("SELECT name FROM trace.open_zones ORDER BY depth") == ["outer", "inner"]


def test_the_same_name_gives_the_same_object_and_it_can_be_pickled(plain):
    done = plain("""
        import copy, pickle
        region = kymo.region("x")
        print(region, region is kymo.region("x"), region.name, region.file == __file__, region.line)
        print(pickle.loads(pickle.dumps(region)), copy.deepcopy(region), kymo.phase("data"))
    """)
    assert done.stdout == ("kymo.region('x') True x True 4\n"
                           "kymo.region('x') kymo.region('x') kymo.phase('data')\n")


def test_a_region_is_where_its_name_was_used_first(record):
    recording = record("""
        for _ in range(2):
            with kymo.region("a"):
                pass
        with kymo.region("a"):
            pass
        @kymo.region("b")

        def b():
            pass
        b()
    """)
    rows = recording.query("SELECT DISTINCT name, parse_filename(file) AS file, line FROM trace.zones ORDER BY name")
    assert rows == [{"name": "a", "file": "script.py", "line": 4}, {"name": "b", "file": "script.py", "line": 8}]
