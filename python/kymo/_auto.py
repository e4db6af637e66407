"""Applies KYMO_PYTHON, KYMO_TORCH, KYMO_GC, KYMO_MEMORY and PROBING_TORCH_PROFILING when Python starts.

start() is called once, by the sitecustomize of `kymo run --python` or by the .pth file of an installed kymo. The first
may run in a Python without a kymo package: this file is loaded by its path, imports only modules that site has already
imported, and loads its neighbours by their paths.
"""
import os
import sys
from _imp import _fix_co_filename  # type: ignore[attr-defined]

# Tools that trace this program take "<frozen …>" for a part of Python, as they do importlib: they neither count nor
# report our lines.
_fix_co_filename(sys._getframe().f_code, "<frozen kymo._auto>")

TYPE_CHECKING = False  # importing typing would add milliseconds to each start of Python
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ON = ("on", "1", "true", "yes")
OFF = ("off", "0", "false", "no", "")

mode = ""  # "", "on" (every call) or "partial" (only inside a Profiler)
lines = False
c_calls = False

_is_limited = False  # by --max-overhead; read before calls are recorded
_started = False


def start() -> None:
    """Applies the environment; a second call does nothing. A failure here never stops the program."""
    global _started, _is_limited
    if _started or os.environ.get("KYMO", "on").lower() in OFF[:-1]:
        return
    _started = True
    if is_recording():
        import atexit

        atexit.register(_note_failure)
        _keep_room("keep_room")
        _arm_loops()
    _is_limited = os.environ.get("KYMO_PYTHON_LIMIT", "0") != "0"
    is_whole = _read_words(os.environ.get("KYMO_PYTHON", "")) == "on" and not _has_window()
    torch = [_asks_for(name) for name in ("KYMO_TORCH", "PROBING_TORCH_PROFILING")]
    if _asks_for("KYMO_GC"):
        _attempt("garbage collections are", _arm_gc)
    if any(torch):
        _attempt("torch modules are", lambda: load("_torch_auto").arm())
        if is_recording():
            _attempt("marks of JAX are", _arm_jax)
            arm_trainers()
    # If preloaded but off, it may be turned on at any allocation, where nothing can be loaded.
    if _asks_for("KYMO_MEMORY") or "libkymo_memory" in os.environ.get("LD_PRELOAD", ""):
        _attempt("Python lines of allocations are", lambda: extension("_memory"))
    if is_whole:
        begin()  # last, so that our own calls are not recorded
    elif mode == "on":
        _attempt("Python calls are", _open_window)


def _arm_jax() -> None:
    load("_jax_auto", folder="_inject/").arm()


def arm_trainers() -> None:
    """Waits for trainers such as transformers; also called when the injected extension sees one before torch."""
    _attempt("phases of trainers are", lambda: load("_trainers_auto", folder="_inject/").arm())


def is_recording() -> bool:
    return os.environ.get("KYMO", "").lower() in ON


def _keep_room(call: str) -> None:
    try:
        getattr(extension("_gc"), call)()
    except ImportError:  # not built for this Python
        pass


def _arm_loops() -> None:
    try:
        loops = extension("_loop")
    except ImportError:  # not built for this Python
        return
    import atexit

    loops.arm()
    atexit.register(loops.flush)


def _note_failure() -> None:
    """At exit: records an uncaught exception as a mark, with the place that raised it."""
    error = getattr(sys, "last_value", None)
    if not isinstance(error, BaseException):
        return
    try:
        _keep_room("give_room")  # the traceback of a MemoryError holds what has used up the memory
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = f" ({os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno})" if where is not None else ""
        extension("_kymo")._mark_last("uncaught exception", f"{type(error).__name__}: {error}"[:300] + place)
    except Exception:  # the program has failed already and reports it itself
        pass


def note_failure_once() -> None:
    """As _note_failure(), unless start() has registered it too."""
    if not _started:
        _note_failure()


def find_torch(early: "Any", path: "Any", target: "Any") -> "Any":
    """Replaces the finder of the injected extension by that of _torch_auto, and asks it for torch."""
    if early not in sys.meta_path:
        return None
    _attempt("torch modules are", lambda: load("_torch_auto").arm())
    if is_recording():
        _attempt("marks of JAX are", _arm_jax)  # the early finder has gone
        arm_trainers()
    waiter = getattr(sys.modules.get("kymo._torch_auto"), "_waiter", None)
    return waiter.find_spec("torch", path, target) if waiter is not None else None


def find_jax(early: "Any", path: "Any", target: "Any") -> "Any":
    """Puts the finder of _jax_auto before that of the injected extension, and asks it for JAX."""
    if early not in sys.meta_path or "kymo._jax_auto" in sys.modules:
        return None
    _attempt("marks of JAX are", _arm_jax)
    waiter = getattr(sys.modules.get("kymo._jax_auto"), "_waiter", None)
    return waiter.find_spec("jax", path, target) if waiter is not None else None


def begin() -> None:
    """Records every call from now on, or every line."""
    _attempt("Python calls are", _begin)


def _begin() -> None:
    trace = tracer()
    if trace.mechanism(lines, c_calls) in ("profile", "trace"):
        import threading  # noqa: F401, these hooks are set in each thread, and new threads come from threading
    trace.start(lines=lines, c_calls=c_calls)
    if _is_limited and trace.limit():
        import atexit

        atexit.register(trace.limit_end)
        os.register_at_fork(after_in_child=trace.limit_in_child)


def end() -> None:
    """Undoes one begin()."""
    trace = sys.modules.get("kymo._trace")
    if trace is not None:
        trace.stop()


def _arm_gc() -> None:
    try:
        extension("_gc").arm()
    except ImportError:  # kymo run sets KYMO_GC by default: a missing extension is not reported
        pass


def tracer() -> "Any":
    return extension("_trace")


def extension(name: str) -> "Any":
    """The extension kymo.NAME for this version of Python."""
    from _imp import extension_suffixes

    if "kymo." + name in sys.modules:
        return sys.modules["kymo." + name]
    for suffix in extension_suffixes():
        if os.path.exists(_beside(name + suffix)):
            return load(name, suffix)
    version = ".".join(map(str, sys.version_info[:2]))
    raise ImportError(f"this kymo has no extension for Python {version} ({sys.executable}); "
                      f"build kymo with it: see CONTRIBUTING.md")


def load(name: str, suffix: str = ".py", folder: str = "") -> "Any":
    """Loads the file of that name in this directory, or in a folder of it, as kymo.NAME."""
    module = sys.modules.get("kymo." + name)
    if module is not None:
        return module
    from _frozen_importlib import _load  # type: ignore[attr-defined]
    from _frozen_importlib_external import spec_from_file_location

    return _load(spec_from_file_location("kymo." + name, _beside(folder + name + suffix)))


def say(sentence: str) -> None:
    """Prints one line to stderr, without using sys.stderr, which belongs to the program."""
    if os.environ.get("KYMO_QUIET", "0") in ("", "0"):
        try:
            os.write(2, f"kymo: {sentence}\n".encode(errors="replace"))
        except OSError:
            pass


def _beside(name: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)


def _attempt(what: str, act: "Callable[[], object]") -> None:
    try:
        act()
    except Exception as error:
        say(f"{what} not recorded: {error}")


_WINDOW = ("KYMO_SKIP", "KYMO_TAKE", "KYMO_FROM", "KYMO_TO")


def _has_window() -> bool:
    return any(name in os.environ for name in _WINDOW)


def _open_window() -> None:
    """Records calls only between two steps or signposts, made by Python, C or torch."""
    import atexit

    skip, take, first, last = map(os.environ.get, _WINDOW)
    trace = tracer()
    trace.window(lambda inside: begin() if inside else end(), skip and int(skip), take and int(take), first, last)
    atexit.register(trace.window_close)


def _read_words(text: str) -> str:
    """Sets mode, lines and c_calls from "on", "partial,lines" and the like; returns the mode."""
    global mode, lines, c_calls
    words = text.lower().split(",")
    rest = set(words[1:]) - {"lines", "c-calls"}
    if "/" in text or words[0] in OFF:  # a path: builds of kymo use this variable for the interpreter
        return mode
    if rest or words[0] not in (*ON, "partial"):
        say(f"KYMO_PYTHON={text} is ignored; use on, off or partial, with ,lines or ,c-calls")
        return mode
    mode = "partial" if words[0] == "partial" else "on"
    lines = mode == "partial" and "lines" in words
    c_calls = "c-calls" in words
    return mode


def _asks_for(name: str) -> bool:
    word = os.environ.get(name, "").lower()
    if word not in ON + OFF:
        say(f"{name}={os.environ[name]} is ignored; use on or off")
    return word in ON
