"""One function does the work, or eight share it."""
import sys
import time

EACH_S = 1.6 if sys.argv[1] == "one" else 0.2


def work():
    total = 0
    for i in range(1000):
        total += i * i
    return total


def spin(work):
    until = time.monotonic() + EACH_S
    while time.monotonic() < until:
        work()


if sys.argv[1] == "one":
    spin(work)
else:
    for number in range(8):
        names, code = {}, f"def share_{number}():\n    total = 0\n    for i in range(1000):\n        total += i * i\n"
        exec(compile(code, f"share_{number}.py", "exec"), names)
        spin(names[f"share_{number}"])
