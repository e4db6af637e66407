#!/usr/bin/env python3
"""Measures what is always on, triggers and GET /metrics, and prints what it finds as lines of JSON for bench/run.

    bench/always.py KYMO LOOP     KYMO_DIR and HOME are the caller's; LOOP is tests/progs/trigger_loop
"""
import http.client
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SAVES = 5  # snapshots after a slow step
WATCH_S = 60  # under ten triggers
SCRAPES = 200
SLOW = "slow=SELECT step FROM trace.steps WHERE duration_ns > 1e9"
READY = ["slow_step", "stall", "memory_growth", "loss_nan", "device_idle", "late_rank"]
OWN = ["marks=SELECT ts_ns FROM trace.marks WHERE name = 'never'", "long=SELECT step FROM trace.steps WHERE duration_ns > 60e9",
       "big=SELECT ts_ns FROM host.process WHERE rss_bytes > 1e12", "losses=SELECT table_name FROM kymo.streams WHERE dropped > 0"]


def found(key, value):
    print(json.dumps({"key": key, "value": value}), flush=True)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def ask(kymo, recording, sql):
    done = subprocess.run([kymo, "query", "-f", "json", recording, sql], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def record(kymo, loop, place, triggers, *words):
    options = [word for trigger in triggers for word in ("--trigger", trigger)]
    subprocess.run([kymo, "run", "-q", "-o", place, *options, "--", loop, *words], stdout=subprocess.DEVNULL, timeout=200, check=True)


def time_to_disk(kymo, loop, place):
    """From the end of a step of 1.2 s to the row that is written when its snapshot is on disk, by the clock of the recording."""
    for number in range(SAVES):
        recording = place / f"save{number}"
        record(kymo, loop, recording, [SLOW], "60", "50", "20", "1200")
        for row in ask(kymo, recording, "SELECT (min(t.ts_ns) - min(s.start_ns + s.duration_ns)) / 1e9 AS s FROM kymo.triggers t, "
                                        "trace.steps s WHERE t.action LIKE 'snapshot%' AND t.result = 'ok' AND s.duration_ns > 1e9"):
            found("always.save", row["s"])


def cost_of_ten(kymo, loop, place):
    record(kymo, loop, place / "ten", READY + OWN, str(WATCH_S * 20), "50", "-1", "0")
    for row in ask(kymo, place / "ten", "SELECT pct FROM kymo.overhead WHERE source = 'triggers'"):
        found("always.ten", row["pct"])


def scrape(kymo, loop, place):
    program = subprocess.Popen([kymo, "run", "-q", "-o", place / "scraped", "--", loop, "100000", "20", "-1", "0"],
                               stdout=subprocess.DEVNULL)
    server = subprocess.Popen([kymo, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        port = next(int(match[1]) for line in server.stdout if (match := re.search(r"http://127\.0\.0\.1:(\d+)", line)))
        connection, times = http.client.HTTPConnection("127.0.0.1", port, timeout=30), []
        for _ in range(SCRAPES):
            begin = time.perf_counter()
            connection.request("GET", "/metrics")
            body = connection.getresponse().read()
            times.append(1000 * (time.perf_counter() - begin))
            time.sleep(0.05)
        found("always.scrape.bytes", len(body))
        found("always.scrape.p50", quantile(times, 0.5))
        found("always.scrape", quantile(times, 0.99))
    finally:
        server.terminate()
        program.terminate()
        server.wait(30)
        program.wait(30)


def main(kymo, loop):
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        time_to_disk(kymo, loop, place)
        cost_of_ten(kymo, loop, place)
        scrape(kymo, loop, place)


if __name__ == "__main__":
    main(*sys.argv[1:])
