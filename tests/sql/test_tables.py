"""Every table gives the same answer from the recording and from its packed file."""
import pytest

from conftest import ROOT

ANSWERS = [
    ("FROM trace.zones ORDER BY pid, start_ns",
     ("python,step,train.py,7,500,1000,0,100,101,main,0,1,,box\n"
      "c,op,,,600,50,0,100,102,loader,0,1,2,box\n"
      "c,load,data.c,3,1000,200,1,100,101,main,0,1,,box\n"
      "python,step,train.py,7,1800,1000,0,100,101,main,0,2,,box\n"
      "c,load,data.c,3,2000,400,1,100,101,main,0,2,,box\n"
      "python,step,train.py,7,100,300,0,200,,,,0,,box")),
    ("FROM trace.open_zones",
     ("python,step,train.py,7,3000,59999997000,0,100,101,main,0,3,,box\n"
      "c,load,data.c,3,3100,59999996900,1,100,101,main,0,3,,box")),
    ("SELECT source, name, count, total_ns, self_ns, min_ns, max_ns, mean_ns, open, pid FROM trace.regions ORDER BY name",
     ("c,load,2,600,600,200,400,300.0,1,100\n"
      "c,op,1,50,50,50,50,50.0,0,100\n"
      "python,step,2,2000,1400,1000,1000,1000.0,1,100")),
    ("SELECT ts_ns, name, text FROM trace.marks ORDER BY ts_ns", "700,epoch,hello world\n800,epoch,"),
    ("FROM trace.zone_text ORDER BY start_ns", "1000,load,batch 7,,100,101,main,0,box\n2000,load,,42,100,101,main,0,box"),
    ("SELECT ts_ns, name, value, instance FROM trace.counters ORDER BY ts_ns", "900,loss,0.5,\n1900,loss,0.25,"),
    ("FROM trace.steps", "1,step,500,1000,200,,,,100,0,box"),
    ("FROM host.process", "1000,100,99.5,4096,,2,1,2,3,4,8192,500,300,200,16384,0,box"),
    ("FROM host.program", "1000,1,4096,99.5"),
    ("FROM host.cpu ORDER BY cpu NULLS FIRST", "1000,,50.0,1.0,2.0,box\n1000,1,25.0,0.0,0.0,box"),
    ("FROM kymo.config", "1500,sample_rate,0.1,0.01,kymo config,box"),
    ("SELECT program, command, state, exit_code, signal, kept, clock FROM kymo.runs",
     "made,made --fast,killed,,SIGKILL,all,monotonic"),
    ("SELECT sum(emitted), sum(kept), sum(overwritten), sum(dropped), sum(dropped_full) FROM kymo.streams", "30,22,5,3,3"),
    ("FROM app.requests ORDER BY at_ns",
     ("100,1.5,/index,true,main,op,,101,100,0\n"
      "200,-0.0,/café�!,false,loader,load,,102,100,0\n"
      "300,,,,,,9,,200,")),
    ("SELECT count(*) FROM python.torch_trace", "0"),
    ("SELECT count(*) FROM device.ops", "0"),
    ("SELECT count(*) FROM alloc.sites", "0"),
]


@pytest.mark.parametrize("sql, expected", ANSWERS, ids=[sql for sql, _ in ANSWERS])
def test_answers(both, sql, expected):
    assert both(sql) == expected


def test_no_table_compares_every_row_with_every_other(recording):
    """A join with a condition on one side alone is such a loop: two million marks with texts took minutes."""
    tables = sorted(path.stem for path in (ROOT / "src/tables/sql").glob("*/*.*.sql"))
    plan = recording("EXPLAIN SELECT " + ", ".join(f"(SELECT max(t::VARCHAR) FROM {table} t)" for table in tables))
    assert len(tables) > 50 and "HASH_JOIN" in plan
    assert "BLOCKWISE_NL_JOIN" not in plan


def test_the_information_schema_lists_every_table_with_the_users_own(both):
    sql = ("SELECT table_schema || '.' || table_name FROM information_schema.tables "
           "WHERE table_name NOT IN ('zone_rows', 'zone_threads', 'names') ORDER BY 1")
    assert both(sql).split("\n") == [
        "alloc.allocations", "alloc.frames", "alloc.live", "alloc.rows", "alloc.sites", "alloc.timeline",
        "app.requests", "device.breakdown", "device.clocks", "device.gaps", "device.idle", "device.idle_sums",
        "device.kernels", "device.launch_stats",
        "device.launches", "device.memory", "device.models", "device.ops", "device.overlap", "device.queue_depth",
        "device.queues", "device.steps", "device.waits", "dist.clocks", "dist.collectives", "dist.desync", "dist.late",
        "dist.ranks", "host.cgroup",
        "host.cpu", "host.gpu", "host.io", "host.memory",
        "host.network", "host.process", "host.program", "host.threads", "kymo.config", "kymo.costs", "kymo.gaps",
        "kymo.imports", "kymo.overhead",
        "kymo.problems", "kymo.processes", "kymo.runs", "kymo.streams", "kymo.threads", "kymo.triggers", "native.folded",
        "native.frames", "native.modules", "native.samples", "python.backtrace",
        "python.folded", "python.frames", "python.loop_stalls", "python.samples", "python.torch_trace", "python.variables",
        "torch.flops", "torch.ops", "torch.peaks", "trace.counters", "trace.critical_path", "trace.critical_sums", "trace.links",
        "trace.marks", "trace.open_zones", "trace.places", "trace.regions", "trace.steps",
        "trace.zone_text", "trace.zones"]


def test_the_statements_of_a_first_hour_run_as_they_stand(both):
    assert both("SELECT name, sum(duration_ns) AS ns FROM trace.zones GROUP BY name ORDER BY ns DESC") == \
        "step,2300\nload,600\nop,50"
    assert both("SELECT z.name, s.name FROM trace.zones z JOIN trace.steps s ON z.step = s.step AND z.pid = s.pid "
                "ORDER BY z.start_ns") == "step,step\nop,step\nload,step"
    assert both("SELECT thread, count(*) FROM trace.zones GROUP BY ALL ORDER BY 2 DESC, 1") == "main,4\nloader,1\n,1"
    assert both("FROM rec.trace.steps SELECT step") == "1"


def test_a_range_of_time_or_steps_is_a_parameter_of_the_scan(recording):
    assert recording("SELECT name, start_ns FROM kymo_scan('trace.zones', from_ns := 1200, to_ns := 1900) ORDER BY 2") == \
        "step,500\nstep,1800"
    assert recording("SELECT name FROM kymo_scan('trace.zones', step_from := 2, step_to := 3) ORDER BY 1") == "load\nstep"


def test_problems_are_a_table(recording):
    assert recording("FROM kymo.problems WHERE text LIKE 'app.%'") == \
        '"app.requests: column ""ms"" of stream 2 has another type than elsewhere; its values are NULL"'
