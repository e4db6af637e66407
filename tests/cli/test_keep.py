"""kymo run --keep: rows on disk that are thinned while the program runs."""
import sys

from probe_tools import rows

SPIN = """
import sys, threading, time
def work():
    end = time.monotonic() + 12
    while time.monotonic() < end: sum(range(1000))
threads = [threading.Thread(target=work, name="w%d" % i) for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_older_samples_are_thinned_their_time_stays_and_every_row_is_counted(kymo):
    done = kymo("run", "-o", "rec", "--no-summary", "--keep", "samples=1s:1ms,all:50ms", "--", sys.executable, "-c", SPIN)
    assert done.status == 0, done.err
    stream = rows(kymo, "rec", "SELECT sum(emitted) AS emitted, sum(kept) AS kept, sum(overwritten) AS overwritten, "
                               "sum(dropped) AS dropped FROM kymo.streams WHERE table_name = 'python.samples'")[0]
    assert stream["emitted"] == stream["kept"] + stream["overwritten"] + stream["dropped"]
    assert stream["overwritten"] > 0 and stream["dropped"] == 0
    assert rows(kymo, "rec", "SELECT count(*) AS n FROM python.samples") == [{"n": stream["kept"]}]
    # Of each thread: all its time, in the first two seconds one row of 50 ms; a batch may cut some.
    threads = rows(kymo, "rec", """
        SELECT thread, sum(weight_ns) / (max(ts_ns) - min(ts_ns)) AS share,
            count(*) FILTER (ts_ns < first + 2000000000) AS early, count(*) AS all_rows
        FROM python.samples, (SELECT min(ts_ns) AS first FROM python.samples)
        WHERE thread IN ('w0', 'w1') GROUP BY thread""")
    assert [thread for thread in threads if not 0.9 < thread["share"] < 1.1] == []
    assert [thread for thread in threads if not 1 <= thread["early"] <= 46] == []


def test_what_cannot_be_thinned_is_refused(kymo):
    for rule in ("zones=10m:1s", "steps=1h,all:1m", "samples=1h:1s,1d:10ms", "samples=2G:1s", "samples=1h:10", "1h:1s"):
        done = kymo("run", "--keep", rule if "=" in rule else f"zones=1m,{rule}", "--", "true")
        assert done.status == 2 and " is not TABLE=LIMIT, " in done.err
        assert "samples=1h:10ms,1w:1s" in done.err
