"""README.md: its examples run and print what it shows, but for the numbers."""
import importlib.util
import pathlib
import re

import pytest
from conftest import ROOT
from pages import blocks, run_page

PAGE = (ROOT / "README.md").read_text()


def test_its_examples_print_what_it_shows(reader, tmp_path):
    if not any(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd")):
        pytest.skip("no OpenCL device: pocl-opencl-icd is missing (make setup)")
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: make setup")
    (tmp_path / "work/examples").symlink_to(ROOT / "examples")
    wrong = run_page(PAGE, tmp_path / "work", reader, numbers=False)
    assert not wrong, "\n\n".join(wrong)


def test_it_is_short_and_has_an_example_for_each_user():
    assert len(PAGE.splitlines()) <= 150
    assert len([kind for kind, _, _ in blocks(PAGE) if kind == "console"]) == 5


def test_its_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"(?:^    |`)make ([a-z]+)", PAGE, re.M)) <= targets
