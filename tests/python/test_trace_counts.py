"""Calls are counted as cProfile counts them, in programs that were not written for it; their results stay the same."""
import shutil
import textwrap

import pytest
from trace_tools import on_every_python, traced, venv_package  # noqa: F401

# Each defines main(), which returns what it found out.
PROGRAMS = {
    "json": """
        import json.decoder, json.encoder, json.scanner
        def main():
            encoder = json.encoder.JSONEncoder(indent=1, sort_keys=True)
            value = {"k%d" % i: [i, float(i), str(i), None, True, {"x": [i] * 3}] for i in range(60)}
            text = "".join(encoder.iterencode(value))
            decoder = json.decoder.JSONDecoder()
            decoder.parse_string = json.decoder.py_scanstring
            decoder.parse_object, decoder.parse_array = json.decoder.JSONObject, json.decoder.JSONArray
            decoder.scan_once = json.scanner.py_make_scanner(decoder)
            return decoder.decode(text) == value
        """,
    "difflib": """
        import difflib
        def main():
            a = [("line %d" % (i * 7 % 31)) for i in range(120)]
            b = [("line %d" % (i * 5 % 29)) for i in range(120)]
            return len(list(difflib.unified_diff(a, b))), len("".join(difflib.ndiff(a[:20], b[:20])))
        """,
    "decimal": """
        import _pydecimal
        def main():
            context = _pydecimal.Context(prec=60)
            total = _pydecimal.Decimal(0)
            for i in range(1, 40):
                total = context.add(total, context.divide(_pydecimal.Decimal(1), _pydecimal.Decimal(i)))
            return str(total.sqrt(context))
        """,
    "tokenize": """
        import ast, io, textwrap, tokenize
        def main():
            with open(textwrap.__file__) as f:
                text = f.read()
            names = {t.string for t in tokenize.generate_tokens(io.StringIO(text).readline)}
            return len(names), len(ast.dump(ast.parse(text))), len(ast.unparse(ast.parse(text)))
        """,
    "queens": """
        def queens(n, row=0, columns=frozenset(), up=frozenset(), down=frozenset()):
            if row == n:
                yield ()
            for c in range(n):
                if c not in columns and row + c not in up and row - c not in down:
                    for rest in queens(n, row + 1, columns | {c}, up | {row + c}, down | {row - c}):
                        yield (c, *rest)
        class Stop(Exception):
            pass
        def search(n):
            if n == 0:
                raise Stop
            try:
                search(n - 1)
            finally:
                str(n)
        def main():
            found = len(list(queens(8)))
            early = queens(7)
            next(early)
            early.close()
            for _ in range(5):
                try:
                    search(30)
                except Stop:
                    found += 1
            return found
        """,
    "mpmath": """
        import importlib
        import random
        import mpmath
        MODULES = ["basic_ops", "bitwise", "division", "diff", "str", "trig"]  # those that need no pytest
        functions = []
        for name in MODULES:
            module = importlib.import_module("mpmath.tests.test_" + name)
            functions += [f for n, f in vars(module).items() if n.startswith("test_") and callable(f)]
        def main():
            for function in functions:
                random.seed(1)
                mpmath.mp.prec = 53
                function()
            return len(functions)
        """,
}
RUNNER = """
    import gc
    gc.disable()  # else the calls of finalisers and weak references are each tool's own
    def counted():
        import cProfile
        profile = cProfile.Profile(builtins=False)
        profile.enable()
        result = main()
        profile.disable()
        counts = {}
        for entry in profile.getstats():
            if not isinstance(entry.code, str):
                key = entry.code.co_filename + ":%d" % entry.code.co_firstlineno
                counts[key] = counts.get(key, 0) + entry.callcount
        return result, counts
    if sys.argv[1] == "kymo":
        trace.start()
        result = main()
        trace.stop()
        print(json.dumps([repr(result), {}, trace.gaps()]))
    elif sys.argv[1] == "cprofile":
        result, counts = counted()
        print(json.dumps([repr(result), counts]))
    """


def program(name):
    return textwrap.dedent(PROGRAMS[name]) + textwrap.dedent(RUNNER)


@on_every_python
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_counts_equal_those_of_cprofile(traced, tmp_path, python, name):  # noqa: F811
    env = {}
    if name == "mpmath":
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib/mpmath").symlink_to(venv_package("mpmath"))
        env = {"KYMO_TEST_LIB": str(tmp_path / "lib")}
    code = "import os\nsys.path.append(os.environ.get('KYMO_TEST_LIB', sys.path[0]))\n" + program(name)
    wanted_result, wanted = traced(python, code, "cprofile", env=env).said()
    wanted = {place: n for place, n in wanted.items() if "<frozen kymo._torch_auto>:" not in place}  # ours are passed over
    shutil.rmtree(tmp_path / "run")
    recording = traced(python, code, "kymo", env=env)
    result, _, gaps = recording.said()
    assert result == wanted_result
    assert set(gaps.values()) == {0}
    found = {f"{row['file']}:{row['line']}": int(row["n"]) for row in recording.query(
        "SELECT file, line, count(*) AS n FROM trace.zones WHERE source = 'python' GROUP BY ALL")}
    assert found == wanted
    assert sum(found.values()) > 1000
    assert recording.overlaps() == 0
