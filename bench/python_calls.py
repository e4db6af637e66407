"""What tracing adds to a Python call: kymo, its peers and a tracer written in Python, in turn in one process.

    python3.12 bench/python_calls.py PREFIX [ROUNDS]

Prints JSON lines, as the programs of build/bench do: ns that a call takes more than without, median of the rounds.
Needs kymo on PYTHONPATH and KYMO=on; a peer that cannot be imported is left out.
"""
import json
import statistics
import sys
import time

import kymo._trace as kymo_trace

CALLS = 60_000


def leaf(x):
    return x


class Point:
    def __init__(self, x):
        self.x = x

    def moved(self, by):
        return leaf(self.x) + by


def work(turns):
    """Five calls a turn: functions, a method, a constructor."""
    for i in range(turns):
        leaf(i)
        point = Point(i)
        point.moved(leaf(1))


def lines(turns):
    """Four lines a turn, and one call."""
    for i in range(turns):
        a = i
        b = a
        leaf(b)


def plain(function, turns):
    start = time.thread_time_ns()
    function(turns)
    return time.thread_time_ns() - start


def kymo_calls(function, turns, **options):
    kymo_trace.start(**options)
    try:
        return plain(function, turns)
    finally:
        kymo_trace.stop()


def kymo_c_calls(function, turns):
    return kymo_calls(function, turns, c_calls=True)


def kymo_lines(function, turns):
    return kymo_calls(function, turns, lines=True)


def viztracer(function, turns):
    from viztracer import VizTracer

    tracer = VizTracer(tracer_entries=2_000_000, verbose=0)
    tracer.start()
    try:
        return plain(function, turns)
    finally:
        tracer.stop()
        tracer.clear()


def cprofile(function, turns):
    import cProfile

    profile = cProfile.Profile()
    profile.enable()
    try:
        return plain(function, turns)
    finally:
        profile.disable()


def yappi(function, turns):
    import yappi as peer

    peer.set_clock_type("wall")
    peer.start(builtins=False)
    try:
        return plain(function, turns)
    finally:
        peer.stop()
        peer.clear_stats()


def settrace(function, turns):
    """The least that a tracer in Python can do: the time and the place of each event."""
    seen, now = [], time.perf_counter_ns

    def trace(frame, event, arg):
        seen.append((now(), event, frame.f_code, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        return plain(function, turns)
    finally:
        sys.settrace(None)


# name, tool, work, and what its cost is divided by
TOOLS = [("kymo", kymo_calls, work, 5), ("kymo_c", kymo_c_calls, work, 5), ("viztracer", viztracer, work, 5),
         ("cprofile", cprofile, work, 5), ("yappi", yappi, work, 5),
         ("kymo_lines", kymo_lines, lines, 5), ("settrace", settrace, lines, 5)]


def measure(rounds):
    cost, missing = {name: [] for name, *_ in TOOLS}, {}
    for number in range(rounds + 1):
        for name, tool, function, events in TOOLS:
            turns = CALLS // events // (1 if name != "settrace" else 4)
            if name in missing:
                continue
            base = min(plain(function, turns) for _ in range(3))
            try:
                took = tool(function, turns)
            except ImportError as error:
                missing[name] = str(error)
                continue
            if number:  # the first one warms up
                cost[name].append((took - base) / turns / events)
    return cost, missing


def main():
    prefix, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 15
    cost, missing = measure(rounds)
    for name, values in cost.items():
        if values:
            print(json.dumps({"key": f"{prefix}.{name}.ns", "value": statistics.median(values)}))
    for name in ("viztracer", "cprofile", "yappi"):
        if cost[name]:
            ratio = statistics.median(k / p for k, p in zip(cost["kymo"], cost[name]))
            print(json.dumps({"key": f"{prefix}.{name}", "value": ratio}))
    ratio = statistics.median(k / p for k, p in zip(cost["kymo_lines"], cost["settrace"]))
    print(json.dumps({"key": f"{prefix}.lines", "value": ratio}))
    for name, why in missing.items():
        print(f"{name}: {why}", file=sys.stderr)


main()
