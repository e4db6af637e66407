"""Programs that run while kymo is asked about them."""
import json
import sys

from conftest import PROGS, ROOT

sys.path.append(str(ROOT / "tests"))
from running import program, until  # noqa: E402, F401


def running(kymo, *words, command=None, env=None, **options):
    """A program that runs until the block is left; probe_loop with these words, or another command."""
    return program(command or [PROGS / "probe_loop", *words], cwd=kymo.cwd, env={**kymo.env, **(env or {})}, **options)


def rows(kymo, target, sql):
    done = kymo("query", "-f", "json", str(target), sql)
    assert done.status == 0, done.err
    return json.loads(done.out)
