"""The commands of docs/python.md run, in their order, on the programs that it shows."""
import os
import re
import subprocess
import sys

import pytest
from conftest import KYMO, ROOT, SECONDS

TEXT = (ROOT / "docs/python.md").read_text()


def test_the_five_minutes_for_python(home, tmp_path):
    pytest.importorskip("pyarrow", reason="no pyarrow in this Python")
    env = {**home, "PATH": f"{os.path.dirname(sys.executable)}:{KYMO.parent}:{home['PATH']}"}
    for name, code in re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", TEXT, re.S):
        (tmp_path / name).write_text(code)
    commands = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.S) for line in block.splitlines()]
    said = {}
    for command in commands:
        done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
                              timeout=SECONDS, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "no calls recorded" not in done.stderr, command
        said[command] = done.stdout
    assert len(commands) == 20
    (slowest,) = (out for command, out in said.items() if "'%::%'" in command)
    assert slowest.splitlines()[2].startswith("test_sizes.py::test_sorted[30] ")
    assert re.search(r"^load +20 ", said[commands[1]], re.M)
    assert said["python ask.py"].startswith("10 {'step': ") and said["python ask.py"].endswith("\n10\n")
    assert (tmp_path / "runs/first").is_dir() and list(tmp_path.glob("kymo-*.csv"))
