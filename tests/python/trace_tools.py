"""Programs traced by kymo._trace, on every CPython that the extension was built for."""
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from conftest import KYMO, ROOT, SECONDS, Recording, run

PYTHONS = [line.split("\t") for line in
           subprocess.run([ROOT / "tools/pythons"], capture_output=True, text=True, check=True).stdout.splitlines()]
on_every_python = pytest.mark.parametrize("python", [path for path, *_ in PYTHONS],
                                          ids=[version for _, version, *_ in PYTHONS])
VERSIONS = {path: tuple(int(n) for n in version.split(".")) for path, version, *_ in PYTHONS}

# Zones of one thread and depth that overlap: there may be none. (Deeper than a row can say is one depth.)
OVERLAPS = """SELECT count(*) FROM (SELECT start_ns + duration_ns AS ends,
    lead(start_ns) OVER (PARTITION BY pid, tid, thread, depth ORDER BY start_ns) AS next
    FROM trace.zones WHERE depth < 65535) WHERE next < ends"""


class Traced(Recording):
    def counts(self, *names):
        """How often each function was called, in the order of names."""
        found = {row["name"]: int(row["n"]) for row in
                 self.query("SELECT name, count(*) AS n FROM trace.zones WHERE source = 'python' GROUP BY ALL")}
        return [found.get(name, 0) for name in names]

    def overlaps(self):
        return self.one(OVERLAPS)

    def said(self):
        """What the program printed last, as JSON."""
        return json.loads(self.stdout.splitlines()[-1])


@pytest.fixture
def traced(home, tmp_path):
    """traced(python, code): runs it under `kymo run` with trace = kymo._trace imported, and gives its recording.
    first is code that runs before that import."""
    def go(python, code, *arguments, status=0, env=None, first=""):
        script, out = tmp_path / "script.py", tmp_path / "run"
        script.write_text("import json, sys\n" + textwrap.dedent(first) + "import kymo._trace as trace\n" +
                          textwrap.dedent(code))
        environment = {**home, "PYTHONPATH": str(ROOT / "build/python"), "PYTHONHASHSEED": "0", **(env or {})}
        done = run([KYMO, "run", "-o", out, "--", python, script, *arguments], environment, tmp_path, status)
        return Traced(out, done)
    return go


def plainly(python, code, tmp_path, *arguments):
    """The exit status of the same program without kymo; negative where it crashes by itself."""
    script = tmp_path / "plain.py"
    script.write_text("import sys\n" + textwrap.dedent(code))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KYMO")}
    return subprocess.run([python, script, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True,
                          timeout=SECONDS, check=False)


def venv_package(name):
    """The folder of a package of .venv that any Python can use, since it is Python only."""
    folder = pathlib.Path(sys.prefix) / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages" / name
    if not folder.is_dir():
        pytest.skip(f"{name} is not installed in .venv: tools/setup test")
    return folder
