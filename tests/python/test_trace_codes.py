"""Another user of co_extra has its free function called only for the code objects on which it set something."""
import pytest
from trace_tools import on_every_python, traced  # noqa: F401

# As CPython's test_code does: an index of co_extra with a free function that counts what it is called for.
OTHER_USER = """
        import ctypes, gc
        old = sys.version_info < (3, 12)
        def api(name):
            return ctypes.pythonapi[name.replace("PyUnstable_", "_Py") if old else name]
        free_function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        freed = []
        free = free_function(lambda pointer: freed.append(pointer))
        def other_user_asks():
            request = api("PyUnstable_Eval_RequestCodeExtraIndex")
            request.argtypes, request.restype = (free_function,), ctypes.c_ssize_t
            return request(free)
        def other_user_sets(index, code, value):
            store = api("PyUnstable_Code_SetExtra")
            store.argtypes = (ctypes.py_object, ctypes.c_ssize_t, ctypes.c_ssize_t)
            assert store(code, index, value) == 0
        def other_user_gets(index, code):
            load, value = api("PyUnstable_Code_GetExtra"), ctypes.c_ssize_t(0)
            load.argtypes = (ctypes.py_object, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_ssize_t))
            load(code, index, value)
            return value.value
        def call_and_drop(number):
            names = {}
            exec(f"def short_lived_{number}():\\n    x = 1\\n    y = 2\\n    return x", names)
            names[f"short_lived_{number}"]()
        """
ASKS = """
        index = other_user_asks()
        """
ORDERS = {"before": (OTHER_USER + ASKS, ""), "after": ("", OTHER_USER + ASKS)}  # before and after kymo._trace is loaded


@on_every_python
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("lines", [False, True])
def test_another_free_function_is_not_called_for_what_its_user_never_set(traced, python, order, lines):  # noqa: F811
    first, second = ORDERS[order]
    recording = traced(python, second + f"""
        trace.start(lines={lines})
        for number in range(3000):
            call_and_drop(number)
        gc.collect()
        nothing_set = len(freed)
        exec("def kept(): return 1")
        other_user_sets(index, kept.__code__, 4711)
        kept()
        value = other_user_gets(index, kept.__code__)
        del kept
        gc.collect()
        trace.stop()
        print(json.dumps([nothing_set, value, freed]))
        """, first=first)
    assert recording.said() == [0, 4711, [4711]]
    assert recording.counts("call_and_drop", "short_lived_0", "short_lived_2999", "kept") == [3000, 1, 1, 1]
    assert recording.overlaps() == 0


@on_every_python
def test_names_beside_another_user_are_those_of_the_running_code(traced, python):  # noqa: F811
    """Code objects of many names follow each other at the same addresses."""
    recording = traced(python, """
        trace.start()
        for _ in range(3):
            for number in range(40):
                call_and_drop(number)
        trace.stop()
        """, first=OTHER_USER + ASKS)
    assert recording.counts(*(f"short_lived_{number}" for number in range(40))) == [3] * 40


@on_every_python
def test_a_free_function_that_is_gone_at_the_end_is_not_called(traced, python):  # noqa: F811
    recording = traced(python, OTHER_USER + """
        trace.start()
        other_user_asks()
        for number in range(100):
            exec(f"def lives_{number}(): pass\\nlives_{number}()")
        print(json.dumps(len(freed)))
        """)
    assert recording.said() == 0
    assert recording.counts("lives_99") == [1]
