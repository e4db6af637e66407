"""Programs that are run under the front, and what their recording holds."""
import subprocess
import sys
import textwrap

from conftest import KYMO, SECONDS, Recording


def run(command, env, cwd, out="run"):
    """(status, Recording at cwd/out)"""
    done = subprocess.run([str(word) for word in command], env=env, cwd=cwd, capture_output=True, text=True, check=False,
                          timeout=SECONDS, stdin=subprocess.DEVNULL)
    return done.returncode, Recording(cwd / out, done)


class Front:
    """front("-p", code=…): runs it as program.py under `python -m kymo`; front.module is what stands after -m."""

    def __init__(self, home, path):
        self.env, self.path, self.module, self.count = home, path, "kymo", 0

    def write(self, text, name="program.py"):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        return file

    def __call__(self, *words, code=None, status=0, env=None, python=sys.executable):
        self.count += 1
        out = f"run{self.count}"
        program = [] if code is None else [self.write(code)]
        ended, recording = run([python, "-m", self.module, "-o", out, *words, *program], {**self.env, **(env or {})},
                               self.path, out)
        assert ended == status, f"exit status {ended}\n{recording.stdout}\n{recording.stderr}"
        return recording

    def inject(self, python, code, status=0, words=("--python",)):
        """The same by `kymo run --python`, in any Python."""
        self.count += 1
        out = f"run{self.count}"
        ended, recording = run([KYMO, "run", "-o", out, *words, "--", python, self.write(code)], self.env, self.path, out)
        assert ended == status, f"exit status {ended}\n{recording.stdout}\n{recording.stderr}"
        return recording


def calls(recording, like="%"):
    """{name: calls} of the Python functions in files like that."""
    rows = recording.query("SELECT name, count(*) AS n FROM trace.zones WHERE source = 'python' AND file LIKE "
                           f"'{like}' GROUP BY name")
    return {row["name"]: row["n"] for row in rows}


def last_line(recording):
    return recording.stderr.splitlines()[-1]
