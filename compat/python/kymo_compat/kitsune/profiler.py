"""kymo.profiler under the name that programs for Kitsune import."""
from kymo.profiler import *  # noqa: F403
from kymo.profiler import __all__  # noqa: F401
