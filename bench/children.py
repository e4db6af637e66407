"""Starts processes and prints the CPU time of itself and of all of them: what bench/run compares with and without kymo.

    python children.py KIND COUNT FILE

KIND: true, python (-c pass), plain (python -S -c pass), fork, pool (of four workers). COUNT processes or pools, one after the
other. FILE: gets the two numbers, in seconds.
"""
import multiprocessing
import os
import resource
import sys

COMMANDS = {"true": ["/bin/true"], "python": [sys.executable, "-c", "pass"], "plain": [sys.executable, "-S", "-c", "pass"]}


def start(command, count):
    for _ in range(count):
        os.waitpid(os.posix_spawn(command[0], command, os.environ), 0)


def fork(count):
    for _ in range(count):
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)


def pool(count):
    for _ in range(count):
        with multiprocessing.get_context("fork").Pool(4) as workers:
            workers.map(abs, range(8))


def seconds(whose):
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime


def main(kind, count, path):
    if kind in COMMANDS:
        start(COMMANDS[kind], int(count))
    else:
        {"fork": fork, "pool": pool}[kind](int(count))
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{seconds(resource.RUSAGE_SELF)} {seconds(resource.RUSAGE_CHILDREN)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
