"""What is built against kymo by others. Programs are compiled and run as those of tests/compat are."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "compat"))
