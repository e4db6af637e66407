"""Most of the run is imports, one of them most of all, or hardly any of it."""
import pathlib
import sys
import tempfile
import time

SLOW = sys.argv[1] == "slow"

with tempfile.TemporaryDirectory() as folder:
    for name, seconds in (("light", 0.2), ("heavy", 1.5)):
        (pathlib.Path(folder) / f"{name}.py").write_text(
            f"import time\nuntil = time.monotonic() + {seconds if SLOW else 0.01}\n"
            f"while time.monotonic() < until:\n    time.sleep(0.001)\n")
    sys.path.insert(0, folder)
    import light  # noqa: F401
    import heavy  # noqa: F401

time.sleep(0.6 if SLOW else 2.1)
