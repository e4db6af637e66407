"""The pytest plugin. Where pytest is recorded, each test is a zone by its id, and so is the set-up of each fixture.

A test that takes kymo_profile (or tracy_profile) is recorded under `python -m kymo -p -m pytest`, and nothing else then. Exactly the
test function is: not the set-up of its fixtures, in whatever order it takes them.
"""
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

FIXTURES = frozenset({"kymo_profile", "tracy_profile"})


@pytest.fixture
def kymo_profile() -> Any:
    """Records the calls of this test function, when pytest runs under `python -m kymo -p`; the Profiler that does."""
    from kymo import Profiler

    return Profiler()


@pytest.fixture
def tracy_profile(kymo_profile: Any) -> Any:
    """kymo_profile by its other name."""
    return kymo_profile


def _recorded(function: Any, profiler: Any) -> Any:
    """The test function, and its Profiler around it as closely as can be: nothing of pytest's is between the two."""
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def test(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            with profiler:
                return await function(*args, **kwargs)
    else:
        @functools.wraps(function)
        def test(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            with profiler:
                return function(*args, **kwargs)
    return test


def _bracket(item: Any) -> Iterator[None]:
    from kymo import Profiler, _auto

    if _auto.mode != "partial":
        yield
        return
    function = item.obj
    item.obj = _recorded(function, Profiler())
    try:
        yield
    finally:
        item.obj = function


def _is_asked_for(item: Any) -> bool:
    return not FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


# trylast: inside of what other plugins wrap around the call, who may replace the function too.
@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Iterator[None]:
    if _is_asked_for(pyfuncitem):
        yield from _bracket(pyfuncitem)
    else:
        yield


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    # Methods of unittest's classes are run by unittest, not by pytest_pyfunc_call.
    if _is_asked_for(item) and type(item).__name__ == "TestCaseFunction":
        yield from _bracket(item)
    else:
        yield


def _zone(name: str) -> Iterator[None]:
    import kymo
    from kymo import _auto

    if kymo.enabled() and _auto.mode != "partial":
        with kymo.region(name):
            yield
    else:
        yield


# tryfirst: around what other plugins do for a test, which is its time too.
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    yield from _zone(item.nodeid)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    # A parameter is a fixture for pytest, and has no time.
    if getattr(fixturedef.func, "__name__", "") == "get_direct_param_fixture_func":
        yield
    else:
        yield from _zone(f"fixture {fixturedef.argname}")
