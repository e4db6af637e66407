"""Modules with the names of other profilers, implemented by kymo. Each module only translates names.

A .pth line puts this folder last on sys.path, so a real module of that name is found first wherever it is installed,
and none of its files is overwritten. If one comes after this folder anyway (by another .pth file), give_way() imports
it instead. KYMO_COMPAT=on prefers the modules here.
"""
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from typing import Optional

# The modules here, and the profilers they stand for.
MODULES = {
    "kitsune": "Kitsune's profiler: kitsune.profiler with CUDATimer, MemoryTracker, MetricsCollector, Reporter, compare_runs",
    "probing": "probing: enable_torch_profiling()",
    "tracy": "the host profiler of tt-metal: python -m tracy, Profiler, signpost",
}

_HERE = os.path.dirname(os.path.abspath(__file__))


def _real(name: str) -> Optional[ModuleSpec]:
    """The spec of a module of that name elsewhere; a bare folder does not count."""
    spec = PathFinder.find_spec(name, [path for path in sys.path if os.path.abspath(path or ".") != _HERE])
    return spec if spec and spec.loader and spec.origin else None


def give_way(name: str) -> bool:
    """Imports the real module of that name instead of kymo's. False: there is none."""
    spec = None if os.environ.get("KYMO_COMPAT", "").lower() in ("on", "1", "true", "yes") else _real(name)
    if not spec or not spec.loader:
        return False
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return True
