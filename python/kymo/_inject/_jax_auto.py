"""Annotations of JAX's profiler: waits for JAX and hooks two classes of it.

arm() is called when Python starts or imports torch or JAX: this file is loaded by its path and imports only modules that
are already imported. Failures here never reach the program.
"""
import os
import sys
from _imp import _fix_co_filename  # type: ignore[attr-defined]

# Tools that trace this program take "<frozen …>" for a part of Python, as they do importlib: they neither count nor
# report our lines.
_fix_co_filename(sys._getframe().f_code, "<frozen kymo._jax_auto>")

TYPE_CHECKING = False  # importing typing would add milliseconds to each start of Python
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

EVERY = 64  # one step of so many is a window of XLA's operations
_waiter: "_Waiter | None" = None


def arm() -> None:
    """Hooks JAX now, or as soon as it is imported."""
    global _waiter
    if hasattr(sys.modules.get("jax"), "profiler"):
        _attempt(enable)
    elif _waiter is None:
        _waiter = _Waiter()
        sys.meta_path.insert(0, _waiter)


def enable() -> None:
    """Starts recording annotations; JAX must have been imported."""
    global _waiter
    if _waiter in sys.meta_path:
        sys.meta_path.remove(_waiter)
    profiler = sys.modules["jax"].profiler
    c = _extension()
    c.hook(profiler.TraceAnnotation, profiler.StepTraceAnnotation)
    word = os.environ.get("KYMO_XLA", "")
    if word not in ("", "0", "off"):
        _windows(c, int(word) if word.isdigit() else 1 if word == "all" else EVERY)


def _windows(c: "Any", every: int) -> None:
    from jax._src.lib import _profiler  # type: ignore[import-not-found]

    options = _profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.enable_hlo_proto = False
    original = _profiler.ProfilerSession
    c.windows(lambda: original(options), original if type(original) is type else _gate(_profiler, original), every)


def _gate(profiler: "Any", original: "Any") -> type:
    """A class that the program's sessions pass through first: nanobind does not call a replaced __init__."""
    class Gate:
        def __init__(self) -> None:
            pass

    def session(*arguments: "Any", **options: "Any") -> "Any":
        Gate()
        return original(*arguments, **options)

    profiler.ProfilerSession = session
    return Gate


def _extension() -> "Any":
    """kymo._jax for this version of Python, loaded by its path."""
    if "kymo._jax" in sys.modules:
        return sys.modules["kymo._jax"]
    from _frozen_importlib import _load  # type: ignore[attr-defined]
    from _frozen_importlib_external import spec_from_file_location
    from _imp import extension_suffixes

    for suffix in extension_suffixes():
        path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_jax" + suffix)
        if os.path.exists(path):
            return _load(spec_from_file_location("kymo._jax", path))
    raise ImportError(f"this kymo has no extension for {sys.executable}; build kymo with it: see CONTRIBUTING.md")


class _Waiter:
    """In sys.meta_path until JAX is imported; finds JAX through the others and watches its loader."""

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name != "jax":
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                _attempt(lambda: _watch(spec.loader))  # noqa: B023
                return spec
        return None


def _watch(loader: "Any") -> None:
    """Hooks JAX after this loader has executed it; the loader itself is restored."""
    run = loader.exec_module

    def exec_module(module: "Any") -> None:
        del loader.exec_module
        run(module)
        _attempt(enable)

    loader.exec_module = exec_module


def _attempt(act: "Callable[[], object]") -> None:
    try:
        act()
    except Exception as error:
        if os.environ.get("KYMO_QUIET", "0") in ("", "0"):
            try:
                os.write(2, f"kymo: marks of JAX are not recorded: {error}\n".encode(errors="replace"))
            except OSError:
                pass
