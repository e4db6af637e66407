# Added by `kymo run` through PYTHONPATH: starts kymo in this Python and then removes its own traces. Any Python may run
# it, so it works in all of them, including 2.7.
import os
import sys


def _leave(here):
    """Leaves sys.path and the import caches: the next `import sitecustomize` finds the user's own."""
    sys.path[:] = [path for path in sys.path if path != here]
    sys.path_importer_cache.pop(here, None)
    return sys.modules.pop("sitecustomize", None)


def _say(sentence):
    if os.environ.get("KYMO_QUIET", "0") in ("", "0"):
        os.write(2, ("kymo: " + sentence + "\n").encode("utf-8"))


def _start(package):
    """Starts kymo, unless the .pth file of an installed kymo already has."""
    if "kymo._auto" in sys.modules:
        return
    if sys.version_info < (3, 10):
        if "KYMO_PYTHON" in os.environ:  # requested explicitly; KYMO_TORCH is set for any Python
            _say("Python %d.%d (%s) cannot be traced: 3.10 or newer is needed" % (sys.version_info[:2] + (sys.executable,)))
        return
    # Already loaded as part of `import` itself: importlib.util would take a millisecond more.
    from _frozen_importlib import _load
    from _frozen_importlib_external import spec_from_file_location

    _load(spec_from_file_location("kymo._auto", os.path.join(package, "_auto.py"))).start()


def _begin():
    here = os.path.dirname(os.path.abspath(__file__))
    me = _leave(here)  # held until the end: an old Python would clear the names above with the module
    try:
        import sitecustomize  # noqa: F401 - the user's own; Python expects the ImportError if there is none
    finally:
        try:
            _start(os.path.dirname(here))
        except Exception as error:
            _say("Python calls are not recorded: %s: %s" % (type(error).__name__, error))
        del me


_begin()
