#!/usr/bin/env python3
"""Lakes of many ranks: what `kymo lake add` writes, and what DuckDB and Spark need for fifteen analyses of a job. JSON lines.

    bench/lake.py [--ranks 1000,10000] [--spark] [--only-queries]

The jobs are made by tests/lake/made_lake.py: 100 steps, and for each of them 100 zones and 5 samples of each rank. 1,000 ranks have a
file for each host and table; from 10,000 on they are compacted. Spark runs as a cluster of a master and two workers, in the Python of
build/spark (`make spark` makes it); this script calls itself there.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
KYMO, PROGS, FILL = ROOT / "build/kymo", ROOT / "build/tests/progs", ROOT / "build/bench/fill"
ZONES = """SELECT name, count(*) AS n, CAST(sum(duration_ns) AS BIGINT) AS ns,
    percentile_disc(0.9) WITHIN GROUP (ORDER BY duration_ns) AS p90 FROM trace.zones GROUP BY name ORDER BY ns DESC, name LIMIT 10"""
SHAPE = {"steps": 100, "zones": 100, "samples": 5, "clocks": 1, "straggler": 5}
TEN_MINUTES = 600
NOW = 20  # times that kymo.now is written in them


def say(key, value):
    print(json.dumps({"key": f"lake.{key}", "value": value}), flush=True)


def analyses():
    text = (ROOT / "tests/spark/analyses.sql").read_text()
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return [one.strip() for one in lines.split(";") if one.strip()] + [ZONES]


def measured(command, **more):
    """Wall and CPU seconds, and the largest memory in MB of a process among it and its children."""
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    text = ("import json, resource, subprocess, sys\n"
            "status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
            "print(json.dumps([status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024]))")
    done = subprocess.run([sys.executable, "-c", text, *map(str, command)], stdout=subprocess.PIPE, text=True, check=True, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    status, megabytes = json.loads(done.stdout)
    if status:
        raise SystemExit(f"{command[1]} ended with {status}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - start, cpu, megabytes


def queries(folder, ranks):
    """Both engines over a job of so many ranks."""
    lake = folder / f"lake-{ranks}"
    words = [f"{key}={value}" for key, value in {**SHAPE, "ranks": ranks, "merged": int(ranks >= 10_000)}.items()]
    made = subprocess.run([ROOT / ".venv/bin/python", ROOT / "tests/lake/made_lake.py", KYMO, lake, "job", *words], check=True,
                          capture_output=True, text=True).stdout.split()
    say(f"{ranks}.rows", int(made[0]))
    say(f"{ranks}.bytes", int(made[1]))
    say(f"{ranks}.files", sum(1 for _ in lake.glob("*/run=job/*.parquet")))
    say(f"{ranks}.zone_bytes", size_of(lake, "trace.zones") / (ranks * SHAPE["steps"] * SHAPE["zones"]))
    for _ in range(3):
        wall, cpu, megabytes = measured([KYMO, "query", "--unsafe", "-f", "csv", lake / "job", ";\n".join(analyses())])
        say(f"{ranks}.s", wall)
        say(f"{ranks}.cpu", cpu)
        say(f"{ranks}.mb", megabytes)
    return lake


# ---- Spark ---------------------------------------------------------------------------------------------------------

def cpu_of_groups(groups):
    """CPU seconds of the processes of these process groups that run: executors are in the group of their worker."""
    ticks = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) in groups:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def spark(lake):
    """The cluster and all analyses, in the Python that has pyspark."""
    sys.path[:0] = [str(ROOT / "tests/spark")]
    import cluster
    import plain_package

    kymo_spark = plain_package.load(KYMO)
    ranks = lake.name.split("-")[-1]
    folder = lake.parent / "spark"
    folder.mkdir()
    machines = cluster.Cluster(folder)
    try:
        start = time.monotonic()
        session = machines.session(folder / "warehouse")
        kymo_spark.attach(session, lake / "job")
        say(f"spark.{ranks}.attach", time.monotonic() - start)
        start = time.monotonic()
        for sql in analyses():
            kymo_spark.sql(session, sql).collect()
        say(f"spark.{ranks}.s", time.monotonic() - start)
        say(f"spark.{ranks}.cpu", cpu_of_groups({os.getpgrp(), *(child.pid for child in machines.children)}))
        session.stop()
    finally:
        machines.stop()


# ---- writing -------------------------------------------------------------------------------------------------------

def size_of(lake, table="*"):
    return sum(file.stat().st_size for file in lake.glob(f"{table}/run=*/*.parquet"))


def rows_of(lake, table, env):
    done = subprocess.run([KYMO, "query", "-f", "csv", lake, f"SELECT count(*) FROM {table}"], env=env, capture_output=True, text=True,
                          check=True)
    return int(done.stdout.split()[-1])


def writing(folder, env):
    """10 million zones of one thread, and a job whose ranks have samples, steps and collectives."""
    zones = subprocess.run([FILL, "10000000", "1"], env={**env, "KYMO": "on", "KYMO_KEEP": "all"}, capture_output=True, text=True,
                           check=True).stdout.split()[-1]
    lake = folder / "zones"
    for _ in range(3):
        shutil.rmtree(lake, ignore_errors=True)
        _, cpu, _ = measured([KYMO, "lake", "add", "--run", "z", zones, lake], env=env)
        count = rows_of(lake / "z", "trace.zones", env)
        say("row_ns", cpu / count * 1e9)
    shutil.rmtree(lake)
    shutil.rmtree(zones, ignore_errors=True)
    subprocess.run([PROGS / "made_ranks", folder / "made", "ranks=64", "per_host=8", "steps=2000", "samples=1"], check=True)
    lake = folder / "all"
    done = subprocess.run([KYMO, "lake", "add", "--run", "a", folder / "made", lake], env=env, capture_output=True, text=True,
                          check=True)
    say("row_bytes", size_of(lake) / int(done.stderr.split(" rows")[0].split()[-1].replace(",", "")))


def cost(folder, env):
    """8 ranks of a host: a flush of ten minutes at 35 rows a second each, and kymo.now 20 times."""
    steps = 35 * TEN_MINUTES // 2  # each with a row of trace.steps and one of dist.collectives
    subprocess.run([PROGS / "made_ranks", folder / "eight", "ranks=8", "per_host=8", f"steps={steps}", "work_us=57000"], check=True)
    _, cpu, _ = measured([KYMO, "lake", "add", "--tier", "1", "--run", "a", folder / "eight", folder / "flush"], env=env)
    say("flush_cpu", cpu)
    program = "for r in 0 1 2 3 4 5 6 7; do (sleep 8 | RANK=$r WORLD_SIZE=8 " + str(PROGS / "live_loop") + ") & done; wait"
    words = ["-q", "--no-summary", "--lake", folder / "live", "-o", folder / "rec"]
    subprocess.run([KYMO, "run", *words, "--", "sh", "-c", program],
                   env={**env, "KYMO_LAKE_EVERY": "1", "KYMO_JOB": "j"}, check=True, capture_output=True)
    sql = "SELECT events, total_ns FROM kymo.overhead WHERE source = 'lake'"
    done = subprocess.run([KYMO, "query", "-f", "csv", folder / "live/j", sql], env=env, capture_output=True, text=True, check=True)
    events, total = map(int, done.stdout.split()[-1].split(","))
    say("now_cpu", total / events / 1e9)
    say("cost", 100 * (cpu + NOW * total / events / 1e9) / TEN_MINUTES)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="1000,10000")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--only-queries", action="store_true")
    parser.add_argument("--attach", type=pathlib.Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.attach:
        return spark(given.attach)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("RANK", "SLURM", "TORCHELASTIC"))}
    with tempfile.TemporaryDirectory(prefix="kymo-lake-") as name:
        folder = pathlib.Path(name)
        if not given.only_queries:
            writing(folder, env)
            cost(folder, env)
        for ranks in map(int, given.ranks.split(",")):
            lake = queries(folder, ranks)
            if given.spark and ranks < 10_000:
                subprocess.run([ROOT / "build/spark/bin/python", __file__, "--attach", lake], check=True, start_new_session=True)
            shutil.rmtree(lake)


if __name__ == "__main__":
    main()
