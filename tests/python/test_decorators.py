"""Decorated functions stay the functions they were."""


def test_a_call_is_a_zone_with_file_and_line_of_the_function(record):
    recording = record("""
        @kymo.region("double")
        def double(x):
            return 2 * x
        print([double(i) for i in range(3)])
    """)
    assert recording.stdout == "[0, 2, 4]\n"
    (row,) = recording.query("SELECT name, source, count(*) AS n, any_value(parse_filename(file)) AS file, "
                             "any_value(line) AS line FROM trace.zones GROUP BY ALL")
    assert row["n"] == 3 and row["name"] == "double" and row["source"] == "python"
    assert row["file"] == "script.py" and row["line"] == 3


def test_without_a_name_it_takes_the_qualified_one(record):
    recording = record("""
        class Model:
            @kymo.region
            def forward(self, x):
                return x
            @kymo.region
            @staticmethod
            def helper(x):
                return x
            @classmethod
            @kymo.region
            def make(cls):
                return cls()
        print(Model.make().forward(1), Model.helper(2), Model().helper(3))
    """)
    assert recording.stdout == "1 2 3\n"
    assert recording.column("SELECT name FROM trace.regions ORDER BY name") == [
        "Model.forward", "Model.helper", "Model.make"]


def test_it_looks_like_the_function_it_was(plain):
    done = plain("""
        import copy, functools, inspect, pickle, weakref
        @kymo.region("f")
        def f(a, *, b: int = 2) -> int:
            "adds"
            return a + b
        print(f.__name__, f.__doc__, f.__module__, inspect.signature(f), f(1, b=5))
        print(pickle.loads(pickle.dumps(f)) is f, copy.deepcopy(f) is f, weakref.ref(f)() is f, f.__wrapped__(1))
        f.note = 5
        print(f.note, functools.partial(f, 3)(), callable(f))
    """)
    assert done.stdout == ("f adds __main__ (a, *, b: int = 2) -> int 6\n"
                           "True True True 3\n"
                           "5 5 True\n")


def test_tracebacks_have_no_frame_of_ours(plain):
    done = plain("""
        import traceback
        @kymo.region
        def fails():
            raise ValueError("mine")
        try:
            fails()
        except ValueError as error:
            print([frame.name for frame in traceback.extract_tb(error.__traceback__)])
        try:
            fails(1)
        except TypeError as error:
            print(error)
    """)
    assert done.stdout == "['<module>', 'fails']\nfails() takes 0 positional arguments but 1 was given\n"


def test_a_decorated_function_recurses_as_deep_as_a_plain_one(plain):
    done = plain("""
        import sys
        def plain(n):
            return n and plain(n - 1)
        @kymo.region
        def decorated(n):
            return n and decorated(n - 1)
        def deepest(function):
            for n in range(1, 3000):
                try:
                    function(n)
                except RecursionError:
                    return n
        print(deepest(plain) - deepest(decorated))
        sys.setrecursionlimit(20000)
        print(decorated(5000))
    """)
    assert done.stdout == "0\n0\n"


def test_recursion_beyond_the_stack_is_an_exception_and_not_a_crash(record):
    recording = record("""
        import sys, threading
        sys.setrecursionlimit(10**6)
        @kymo.region
        def down(n):
            return n and down(n - 1)
        def attempt():
            try:
                down(900_000)
            except RecursionError as error:
                print("stack" in str(error).lower())  # 3.14 has a limit of its own: "Stack overflow"
        attempt()
        threading.stack_size(256 * 1024)
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        with kymo.region("after"):
            pass
    """)
    assert recording.stdout == "True\nTrue\n"
    assert recording.one("SELECT depth FROM trace.zones WHERE name = 'after'") == 0


def test_a_coroutine_is_one_zone_from_its_first_step_to_its_end(record):
    recording = record("""
        import asyncio, inspect
        @kymo.region("fetch")
        async def fetch(x):
            await asyncio.sleep(0.05)
            return x
        async def main():
            print(await asyncio.gather(fetch(1), fetch(2)), inspect.iscoroutinefunction(fetch))
        never = fetch(3)
        never.close()
        asyncio.run(main())
    """)
    assert recording.stdout == "[1, 2] True\n"
    durations = recording.column("SELECT duration_ns / 1e9 FROM trace.zones WHERE name = 'fetch'")
    assert len(durations) == 2 and all(d > 0.04 for d in durations)


def test_a_generator_sends_throws_closes_and_returns_as_before(record):
    recording = record("""
        import inspect
        @kymo.region("produce")
        def produce():
            got = yield 1
            try:
                yield got
            except KeyError:
                yield "thrown"
            return "end"
        items = produce()
        print(next(items), items.send("sent"), items.throw(KeyError("x")))
        try:
            next(items)
        except StopIteration as stop:
            print(stop.value, inspect.isgeneratorfunction(produce))
        half = produce()
        next(half)
        half.close()
    """)
    assert recording.stdout == "1 sent thrown\nend True\n"
    assert recording.one("SELECT count FROM trace.regions") == 2
    assert recording.query("FROM trace.open_zones") == []


def test_an_async_generator_sends_throws_and_closes_as_before(record):
    recording = record("""
        import asyncio, inspect
        @kymo.region("stream")
        async def stream():
            try:
                got = yield 1
                while True:
                    try:
                        got = yield got
                    except KeyError:
                        got = yield "thrown"
            finally:
                await asyncio.sleep(0)
                print("closed")
        @kymo.region
        async def two():
            yield 1
            yield 2
        async def main():
            items = stream()
            print(await items.__anext__(), await items.asend("sent"), await items.athrow(KeyError("x")))
            await items.aclose()
            print([x async for x in two()], inspect.isasyncgenfunction(two))
        asyncio.run(main())
    """)
    assert recording.stdout == "1 sent thrown\nclosed\n[1, 2] True\n"
    assert recording.query("SELECT name, count FROM trace.regions ORDER BY name") == [
        {"name": "stream", "count": 1}, {"name": "two", "count": 1}]


def test_what_is_no_function_is_refused_with_a_sentence(plain):
    done = plain("""
        for wrong in (int, 5, None):
            try:
                kymo.region("x")(wrong)
            except TypeError as error:
                print(error)
        try:
            kymo.region(5)
        except TypeError as error:
            print(error)
    """)
    assert done.stdout == (
        "kymo.region('x') decorates functions, not the class int; decorate its methods instead\n"
        "kymo.region('x') decorates functions, not an object of type int; decorate its methods instead\n"
        "kymo.region('x') decorates functions, not an object of type NoneType; decorate its methods instead\n"
        "kymo.region takes a name or a function, not int\n")
