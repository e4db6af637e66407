"""Programs that run while kymo is asked about them."""
import contextlib
import json
import subprocess
import time

from conftest import PROGS


@contextlib.contextmanager
def running(kymo, *words, command=None, env=None, **options):
    """A program that runs until the block is left; probe_loop with these words, or another command."""
    process = subprocess.Popen(command or [PROGS / "probe_loop", *words], cwd=kymo.cwd, env={**kymo.env, **(env or {})},
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
    try:
        process.first_line = process.stdout.readline().strip()
        yield process
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        process.stdout.close()


def rows(kymo, target, sql):
    done = kymo("query", "-f", "json", str(target), sql)
    assert done.status == 0, done.err
    return json.loads(done.out)


def until(what, seconds=30):
    """Waits for something that has to come, however busy the machine is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = what()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError("it did not come")
