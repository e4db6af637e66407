#!/usr/bin/env python3
"""Measures kymo serve, and prints what it finds as lines of JSON for bench/run.

    bench/serve.py KYMO FILL LOOP RECORDING     KYMO_DIR and HOME are the caller's; RECORDING has 10 million zones
    bench/serve.py KYMO --map JOB               the map of a job alone
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

VIEWERS = 100
SECONDS = 4  # that live programs are watched for


def found(key, value):
    print(json.dumps({"key": key, "value": value}), flush=True)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, kymo, *targets):
        self.process = subprocess.Popen([kymo, "serve", "--port", str(free_port()), *targets], stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)/", self.process.stderr.readline()).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def connect(self, timeout=120):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def get(self, path, connection=None):
        """Seconds that it took, and the answer."""
        connection = connection or self.connect()
        began = time.perf_counter()
        connection.request("GET", path)
        body = connection.getresponse().read()
        return time.perf_counter() - began, body


def zones(kymo, recording):
    """The first picture of 10 million zones, then others of any stretch."""
    with Server(kymo, recording) as server:
        seconds, body = server.get("/api/zones?width=1280")
        head = json.loads(body[8:8 + int.from_bytes(body[4:8], "little")])
        found("serve.zones", head["count"])
        found("serve.first", seconds)
        connection, taken, end = server.connect(), [], head["end_ns"]
        for i in range(300):
            span = max(1000, end >> (i % 20))
            begin = (end - span) * (i * 7 % 11) // 11
            taken.append(server.get(f"/api/zones?width=1280&from={begin}&to={begin + span}&names_from=999999", connection)[0] * 1e3)
        found("serve.lod", quantile(taken, 0.99))
        found("serve.lod.p50", statistics.median(taken))
        if shutil.which("wrk"):
            link = f"http://127.0.0.1:{server.port}/api/zones?width=1280&from={end // 3}&to={end // 2}&names_from=999999"
            done = subprocess.run(["wrk", "-t2", f"-c{VIEWERS}", "-d3s", link], capture_output=True, text=True, check=False)
            rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
            if rate:
                found("serve.rate", float(rate.group(1)))


def browser_script():
    """The command that opens a page; None: no browser is installed."""
    playwright = pathlib.Path(__file__).parent.parent / "deps/playwright-core"
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium or not shutil.which("node") or not (playwright / "index.js").exists():
        return None
    return ["node", pathlib.Path(__file__).parent / "serve_page.mjs", playwright.resolve(), chromium]


def browser(kymo, recording):
    """The page on 10 million zones: until it is painted, and a frame's time while it is moved."""
    script = browser_script()
    if not script:
        return
    with Server(kymo, recording) as server:
        subprocess.run([*script, f"http://127.0.0.1:{server.port}/"], check=False, timeout=200)
    # The same from the list: it has not been read yet.
    with Server(kymo) as server:
        listed = json.loads(server.get("/api/targets")[1])["targets"]
        one = next(t["id"] for t in listed if t["path"] == str(recording))
        subprocess.run([*script, f"http://127.0.0.1:{server.port}/#/{one}/timeline"], check=False, timeout=200)


def job_map(kymo, job):
    """The map of step × rank: the first answer of a server that has just started, then the page."""
    with Server(kymo, job) as server:
        found("jobs.map.answer", server.get("/api/map?columns=1280&rows=500")[0])
    script = browser_script()
    if not script:
        return
    with Server(kymo, job) as server:
        one = json.loads(server.get("/api/targets")[1])["default"]
        subprocess.run([*script, f"http://127.0.0.1:{server.port}/#/{one}/ranks"], check=False, timeout=200)
    with Server(kymo, job) as server:
        seconds, body = server.get("/api/run", server.connect(600))
        if body.startswith(b'{"gen":'):  # and not an error, for example that it took too long
            found("jobs.run", seconds)


def watch(server, target, delays, ends_at, started_unix_ns):
    """Reads the tail of a program; how old each zone was when it came."""
    connection = server.connect()
    connection.request("GET", f"/api/tail?target={target}")
    response, rows = connection.getresponse(), False
    with contextlib.suppress(OSError):
        while time.monotonic() < ends_at:
            line = response.readline()
            if line.startswith(b"event: "):
                rows = line == b"event: rows\n"
            elif rows and line.startswith(b"data: "):
                now_ns = time.time_ns()
                for _, _, start, duration, _ in json.loads(line[6:])["zones"]:
                    delays.append((now_ns - started_unix_ns - start - duration) / 1e6)
    connection.close()


def live(kymo, loop):
    """From a zone's end to the event, for one viewer and for a hundred."""
    program = [kymo, "run", "-q", "--", loop]
    with Server(kymo) as server, subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        run.stdout.readline()
        target = None
        while not target:
            listed = json.loads(server.get("/api/targets")[1])["targets"]
            target = next((t for t in listed if t["state"] == "running"), None)
        for key, viewers in (("serve.live", 1), ("serve.viewers", VIEWERS)):
            delays, ends_at = [], time.monotonic() + SECONDS
            threads = [threading.Thread(target=watch, args=(server, target["id"], delays, ends_at, target["started_unix_ns"]))
                       for _ in range(viewers)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            # The first event tells of what was before.
            found(key, quantile(delays[len(delays) // 10:], 0.99))
            found(f"{key}.p50", statistics.median(delays))
        run.stdin.close()


def cost(kymo, fill):
    """A program that does nothing but record, with and without a viewer: its processor time."""
    taken = {True: [], False: []}
    with Server(kymo) as server:
        for i in range(8):
            looked_at = bool(i % 2)
            stop, delays = threading.Event(), []

            def look(stop=stop, delays=delays):
                while not stop.is_set():
                    watch(server, "latest", delays, time.monotonic() + 0.5, 0)
            if looked_at:
                looker = threading.Thread(target=look)
                looker.start()
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([fill, "4000000", "1"], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "KYMO": "on"})
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken[looked_at].append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
            if looked_at:
                stop.set()
                looker.join()
    found("serve.cost", statistics.median(taken[True]) / statistics.median(taken[False]))


def main(kymo, fill, loop, recording=None):
    if fill == "--map":
        job_map(kymo, loop)
        return
    zones(kymo, recording)
    browser(kymo, recording)
    live(kymo, loop)
    cost(kymo, fill)


if __name__ == "__main__":
    main(*sys.argv[1:])
