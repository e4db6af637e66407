"""Implements `@kymo.region`. Plain functions are wrapped in C; generators and coroutines keep their kind.

The zone of a generator or coroutine lasts from its first step to its end. Other code runs on the thread in between and
may end its zones later: such zones are recorded as not nested.
"""
import functools
import inspect
from collections.abc import Callable
from typing import Any

from kymo._kymo import Function, Region
from kymo._kymo import region as named


def decorate_bare(function: Any) -> Any:
    """`@kymo.region` without a name: uses the function's name."""
    named = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
    name = getattr(named, "__qualname__", None)
    if not callable(named) or not isinstance(name, str):
        raise TypeError(f"kymo.region takes a name or a function, not {type(function).__name__}")
    return decorate(Region(name), function)


def decorate(region: Region, function: Any) -> Any:
    """`@region`: the same function, with its calls as zones of that region."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorate(region, function.__func__))
    if isinstance(function, type) or not callable(function):
        kind = "the class" if isinstance(function, type) else "an object of type"
        what = function.__name__ if isinstance(function, type) else type(function).__name__
        raise TypeError(f"{region!r} decorates functions, not {kind} {what}; decorate its methods instead")
    region = _placed(region, function)
    for is_kind, wrap in _KINDS:
        if is_kind(function):
            return functools.update_wrapper(wrap(region, function), function)
    return functools.update_wrapper(Function(region, function), function)


def _placed(region: Region, function: Any) -> Region:
    """The region, with file and line of the function."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    is_given = region.file is not None and named(region.name) is not region  # not just the place where its name was first used
    if code is None or is_given:
        return region
    return Region(region.name, code.co_filename, code.co_firstlineno, region.phase)


def _generator(region: Region, function: Any) -> Callable[..., Any]:
    def generator(*args: Any, **kwargs: Any) -> Any:
        with region:
            return (yield from function(*args, **kwargs))

    return generator


def _coroutine(region: Region, function: Any) -> Callable[..., Any]:
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        with region:
            return await function(*args, **kwargs)

    return coroutine


def _async_generator(region: Region, function: Any) -> Callable[..., Any]:
    # Async generators have no `yield from`: send, throw and close are forwarded explicitly.
    async def async_generator(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        with region:
            try:
                value = await inner.__anext__()
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        await inner.aclose()
                        raise
                    except BaseException as error:  # noqa: BLE001, exceptions thrown by the consumer go to inner
                        value = await inner.athrow(error)
                    else:
                        value = await inner.asend(sent)
            except StopAsyncIteration:
                return

    return async_generator


_KINDS = (
    (inspect.iscoroutinefunction, _coroutine),
    (inspect.isasyncgenfunction, _async_generator),
    (inspect.isgeneratorfunction, _generator),
)
