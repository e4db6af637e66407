"""Threads that compute, all at once or one alone."""
import sys
import threading
import time


def work():
    until = time.monotonic() + 2
    while time.monotonic() < until:
        sum(i * i for i in range(2000))


threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
