"""One function does the work (`one`), its generators inside of comprehensions do (`nested`), or eight share it (`shared`)."""
import sys
import time

EACH_S = 0.2 if sys.argv[1] == "shared" else 1.6


def work():
    total = 0
    for i in range(1000):
        total += i * i
    return total


def spin(work):
    until = time.monotonic() + EACH_S
    while time.monotonic() < until:
        work()


def multiply():
    rows = [[float(i ^ j) for j in range(12)] for i in range(12)]
    return [[sum(rows[i][k] * rows[k][j] for k in range(12)) for j in range(12)] for i in range(12)]


if sys.argv[1] in ("one", "nested"):
    spin(work if sys.argv[1] == "one" else multiply)
else:
    for number in range(8):
        names, code = {}, f"def share_{number}():\n    total = 0\n    for i in range(1000):\n        total += i * i\n"
        exec(compile(code, f"share_{number}.py", "exec"), names)
        spin(names[f"share_{number}"])
