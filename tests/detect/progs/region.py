"""A region that takes most of the run, or hardly any of it."""
import sys
import time

import kymo

MOST = sys.argv[1] == "most"

for _ in range(10):
    with kymo.region("simulate"):
        time.sleep(0.1 if MOST else 0.002)
    time.sleep(0.002 if MOST else 0.1)
