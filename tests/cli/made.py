"""Recordings whose every row is known: a packed one is a DuckDB file, so that tests write into a copy of it."""
import shutil

import duckdb


class Made:
    """with Made(template, path) as made: made.zone(...). Times are in ns; one process, one thread unless told."""

    def __init__(self, template, path):
        shutil.copy(template, path)
        self.path, self.names, self.rows, self.steps = path, {}, [], []
        self.db = duckdb.connect(str(path))
        for table in ("zone_rows", "names", "zone_threads", "steps", "open_zones", "marks", "counters", "regions"):
            self.db.execute(f"DELETE FROM trace.{table}")
        self.pid = self.db.execute("SELECT pid FROM kymo.runs").fetchone()[0]
        self.db.execute("INSERT INTO trace.zone_threads VALUES (1, ?, ?, 'main', NULL, 'box')", [self.pid, self.pid])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.rows:
            self.db.executemany("INSERT INTO trace.zone_rows VALUES (?, ?, ?, ?, 1, ?)", self.rows)
        if self.steps:
            self.db.executemany("INSERT INTO trace.steps VALUES (?, 'step', ?, ?, NULL, NULL, NULL, NULL, ?, NULL, 'box')",
                                self.steps)
        self.db.close()

    def name(self, name, source="c"):
        if (name, source) not in self.names:
            self.names[name, source] = len(self.names) + 1
            self.db.execute("INSERT INTO trace.names VALUES (?, ?, ?, NULL, NULL, NULL)",
                            [self.names[name, source], source, name])
        return self.names[name, source]

    def zone(self, name, start, duration, depth=0, source="c", step=0):
        self.rows.append((start, duration, self.name(name, source), depth, step))

    def step(self, start, duration):
        self.steps.append((len(self.steps), start, duration, self.pid))

    def loop(self, *regions):
        """Steps one after another; each region is (name, times), one time for each step."""
        at = 0
        for i in range(len(regions[0][1])):
            began = at
            for name, times in regions:
                self.zone(name, at, int(times[i]), depth=1, step=i)
                at += int(times[i])
            self.step(began, at - began)

    def sample(self, stack, count, every=1):
        for i in range(count):
            self.db.execute("INSERT INTO python.samples (ts_ns, pid, tid, stack, host) VALUES (?, ?, ?, ?, 'box')",
                            [i * every, self.pid, self.pid, stack])

    def module(self, module, stage, times, own=None, model=None):
        """own: the self times; those of a module that has no others inside are its times."""
        self.db.executemany("INSERT INTO python.torch_trace (step, seq, module, stage, duration, ts_ns, pid, self, model) "
                            "VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?)",
                            [(i, module, stage, t / 1e9, i * 1000, self.pid, s / 1e9, model)
                             for i, (t, s) in enumerate(zip(times, own or times, strict=True))])
