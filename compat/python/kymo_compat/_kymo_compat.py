"""Other profilers' module names, spoken by kymo. Each module here only translates names.

They are found by a .pth line that puts this folder last on sys.path, so that a real module of such a name, wherever
it is installed, is found first, and no file of it is ever overwritten. Where one comes after this folder all the same
(another .pth file), give_way() hands over to it. KYMO_COMPAT=on asks for ours.
"""
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from typing import Optional

# The modules that are here, and whose names they speak.
MODULES = {
    "kitsune": "Kitsune's profiler: kitsune.profiler with CUDATimer, MemoryTracker, MetricsCollector, Reporter, compare_runs",
    "probing": "probing: enable_torch_profiling()",
    "tracy": "the host profiler of tt-metal: python -m tracy, Profiler, signpost",
}

_HERE = os.path.dirname(os.path.abspath(__file__))


def _real(name: str) -> Optional[ModuleSpec]:
    """The spec of a module of that name elsewhere; a bare folder is none."""
    spec = PathFinder.find_spec(name, [path for path in sys.path if os.path.abspath(path or ".") != _HERE])
    return spec if spec and spec.loader and spec.origin else None


def give_way(name: str) -> bool:
    """True where a real module of that name has been imported in place of ours."""
    spec = None if os.environ.get("KYMO_COMPAT", "").lower() in ("on", "1", "true", "yes") else _real(name)
    if not spec or not spec.loader:
        return False
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return True
