# Brought by `kymo run` through PYTHONPATH: lets kymo into this Python, and leaves the rest as if it had never been
# here. Any Python may come by, so this is written for all of them, 2.7 too.
import os
import sys


def _leave(here):
    """Not on sys.path, not in what import remembers: the next `import sitecustomize` finds the user's own."""
    sys.path[:] = [path for path in sys.path if path != here]
    sys.path_importer_cache.pop(here, None)
    return sys.modules.pop("sitecustomize", None)


def _say(sentence):
    if os.environ.get("KYMO_QUIET", "0") in ("", "0"):
        os.write(2, ("kymo: " + sentence + "\n").encode("utf-8"))


def _start(package):
    """The first one to get here starts it: this file, or the .pth file of an installed kymo."""
    if "kymo._auto" in sys.modules:
        return
    if sys.version_info < (3, 10):
        if "KYMO_PYTHON" in os.environ:  # asked for by name; torch is looked for in any Python
            _say("Python %d.%d (%s) is too old to be traced; 3.10 is the first" % (sys.version_info[:2] + (sys.executable,)))
        return
    # What `import` itself is made of, there since before this file: importlib.util would cost a millisecond more.
    from _frozen_importlib import _load
    from _frozen_importlib_external import spec_from_file_location

    _load(spec_from_file_location("kymo._auto", os.path.join(package, "_auto.py"))).start()


def _begin():
    here = os.path.dirname(os.path.abspath(__file__))
    me = _leave(here)  # held until the end: an old Python would clear the names above with its module
    try:
        import sitecustomize  # noqa: F401 - the user's own; that there is none is what Python expects to hear
    finally:
        try:
            _start(os.path.dirname(here))
        except Exception as error:
            _say("Python calls are not recorded: %s: %s" % (type(error).__name__, error))
        del me


_begin()
