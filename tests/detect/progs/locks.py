"""Four threads and one lock, or a lock for each."""
import sys
import threading
import time

import kymo

one = threading.Lock()


def work():
    lock = one if sys.argv[1] == "one" else threading.Lock()
    for _ in range(10):
        with kymo.region("cache.lock"):
            lock.acquire()
        time.sleep(0.02)
        lock.release()


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
