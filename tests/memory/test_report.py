"""What a report says of memory."""
import os
import re
import shutil
import subprocess

from conftest import KYMO, PACKAGE, PYTHON, ROOT


def test_the_report_names_the_peak_who_held_it_and_what_grows(lab):
    program = lab.home / "data.py"
    shutil.copy(ROOT / "tests/progs/memory_grows.py", program)
    _, path = lab.run(PYTHON, program, PYTHONPATH=os.fspath(PACKAGE))
    done = subprocess.run([KYMO, "report", path], env=lab.env, cwd=lab.home, capture_output=True, text=True, check=True, timeout=120)
    memory = done.stdout.split("\nMemory\n")[1].split("\n\n")[0]
    assert re.search(r"^  allocated: peak 9\d MB (± .* )?at .* at the end \(malloc, sampled, from the start\)$", memory, re.MULTILINE)
    assert re.search(r"^ +87 MB +9\d\.\d %  data\.py:5$", memory, re.MULTILINE)
    assert memory.endswith("  grows 3 MB per step since step 12, at data.py:5")
