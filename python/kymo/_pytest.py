"""The pytest plugin. When pytest is recorded, each test is a zone named by its id, and so is the set-up of each fixture.
`pytest --kymo` records by itself: _inside/pytest_record.py.

`python -m kymo -p -m pytest` records only the tests that take kymo_profile (or tracy_profile): exactly the test
function, without the set-up of its fixtures, in any order of fixtures.
"""
import functools
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import pytest

FIXTURES = frozenset({"kymo_profile", "tracy_profile"})


NAMES = frozenset({"kymo", "kymo._pytest"})  # of the entry point, and of -p kymo._pytest and pytest_plugins


def pytest_plugin_registered(plugin: Any, manager: Any) -> None:
    """Blocks the other name of this plugin: pytest ends with an internal error if it meets a plugin by two names."""
    if plugin is sys.modules[__name__]:
        for name in NAMES - {manager.get_name(plugin)}:
            manager.set_blocked(name)


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("kymo", "kymo: record tests, compare their times")
    group.addoption("--kymo", action="store_true", help="record each test and fixture as a zone")
    group.addoption("--kymo-output", metavar="FILE", default="kymo-tests.kymosnap",
                    help="the recording (kymo-tests.kymosnap); workers of pytest-xdist add their names")
    group.addoption("--kymo-baseline", metavar="FILE", default="kymo-baseline.json",
                    help="times of earlier runs, relative to the root folder (kymo-baseline.json)")
    group.addoption("--kymo-update-baseline", action="store_true", help="add the times of this run to the baseline, if all tests pass")
    group.addoption("--kymo-fail-above", metavar="PERCENT", default=None, type=_percent,
                    help="fail if a test is slower than the baseline by more than PERCENT and by more than its runs differ")


def _percent(text: str) -> float:
    import argparse

    try:
        value = float(text.strip().rstrip("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage; for example 5%")
    return value / 100


def _is_wanted(config: Any) -> bool:
    option = config.option
    return bool(option.kymo or option.kymo_update_baseline or option.kymo_fail_above is not None)


def pytest_configure(config: Any) -> None:
    if _is_wanted(config):
        from kymo._inside.pytest_record import Recorder

        config.pluginmanager.register(Recorder(config), "kymo-recorder")


@pytest.fixture
def kymo_profile() -> Any:
    """Records the calls of this test function under `python -m kymo -p`; the value is its Profiler."""
    from kymo import Profiler

    return Profiler()


@pytest.fixture
def tracy_profile(kymo_profile: Any) -> Any:
    """Alias of kymo_profile."""
    return kymo_profile


def _recorded(function: Any, profiler: Any) -> Any:
    """The test function with its Profiler directly around it, without code of pytest in between."""
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


# trylast: inside the wrappers of other plugins, which may replace the function, too.
@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Iterator[None]:
    if _is_asked_for(pyfuncitem):
        yield from _bracket(pyfuncitem)
    else:
        yield


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    # unittest runs the methods of its classes, not pytest_pyfunc_call.
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


# tryfirst: around other plugins, whose work for a test is part of its time.
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    yield from _zone(item.nodeid)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    # For pytest a parameter is a fixture; it takes no time.
    if getattr(fixturedef.func, "__name__", "") == "get_direct_param_fixture_func":
        yield
    else:
        yield from _zone(f"fixture {fixturedef.argname}")
