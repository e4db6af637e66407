"""tt-metal's host profiler, implemented by kymo: `python -m tracy`, Profiler, signpost."""
from _kymo_compat import give_way

if not give_way(__name__):
    from kymo import Profiler, signpost

    __all__ = ["Profiler", "signpost"]
