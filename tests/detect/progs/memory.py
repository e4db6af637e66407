"""Memory that grows all the time, or is taken once."""
import sys
import time

GROWS = sys.argv[1] == "grows"

kept = [] if GROWS else [bytearray(b"x") * 60_000_000]
for _ in range(50):
    if GROWS:
        kept.append(bytearray(b"x") * 2_000_000)
    time.sleep(0.05)
