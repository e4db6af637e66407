"""Programs that run while kymo is asked about them, for every suite."""
import contextlib
import subprocess
import time


@contextlib.contextmanager
def program(command, **options):
    """Runs until the block is left: its standard input is closed then, and it has ten seconds. Its first line has been read."""
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
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


def until(what, seconds=60):
    """Waits for something that has to come, however busy the machine is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = what()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError("it did not come")
