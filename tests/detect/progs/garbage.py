"""Many objects that hold each other, in a heap that is kept; or few."""
import sys
import time

MANY = sys.argv[1] == "many"


class Node:
    def __init__(self):
        self.me = self


kept = [[] for _ in range(200_000 if MANY else 10)]
until = time.monotonic() + 1.2
while time.monotonic() < until:
    if MANY:
        kept.append([Node() for _ in range(300)])
        kept.append([[] for _ in range(3000)])
    else:
        sum(range(1000))
