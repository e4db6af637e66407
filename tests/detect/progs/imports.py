"""Most of the run is an import, or hardly any of it."""
import pathlib
import sys
import tempfile
import time

SLOW = sys.argv[1] == "slow"

with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "heavy.py").write_text(f"import time\nuntil = time.monotonic() + {1.5 if SLOW else 0.01}\n"
                                                   f"while time.monotonic() < until:\n    time.sleep(0.001)\n")
    sys.path.insert(0, folder)
    import heavy  # noqa: F401

time.sleep(0.6 if SLOW else 2.1)
