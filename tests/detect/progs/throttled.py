"""Computes for a second in the control group whose files are named, or in the one it is in."""
import os
import sys
import time

for file in sys.argv[1:]:
    with open(file, "w", encoding="ascii") as group:
        group.write(str(os.getpid()))
time.sleep(0.3)  # seen there before it is held back
until = time.monotonic() + 1.2
while time.monotonic() < until:
    sum(range(1000))
