"""The CPythons that the extensions are built for, as tools/pythons finds them, and what to run in each."""
import re
import subprocess

from conftest import KYMO, ROOT, SECONDS


def find():
    """{"3.11": path}; .venv's own comes first."""
    done = subprocess.run([ROOT / "tools/pythons"], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {".".join(version.split(".")[:2]): path for path, version, _, _ in rows}


PYTHONS = find()


def plainly(command, env, cwd, stdin=""):
    """(status, stdout, stderr), but for addresses, which differ from run to run"""
    done = subprocess.run([str(word) for word in command], env=env, cwd=cwd, input=stdin.encode(), capture_output=True,
                          check=False, timeout=SECONDS)
    texts = [re.sub("0x[0-9a-f]{6,}", "0x…", text.decode(errors="replace")) for text in (done.stdout, done.stderr)]
    return done.returncode, *texts


def traced(command, env, cwd, stdin="", out="run", words=("--python",)):
    """The same under `kymo run -q --python`."""
    return plainly([KYMO, "run", "-q", "-o", out, *words, "--", *command], env, cwd, stdin)
