"""kymo run --keep RULES: old rows of a table go, totals and other tables stay."""
import sys

from conftest import KYMO, Recording, run


def test_zones_older_than_their_limit_go_and_totals_and_steps_stay(home, tmp_path):
    script, out = tmp_path / "script.py", tmp_path / "run"
    script.write_text("""import time, kymo
for _ in range(130):
    kymo.step("train")
    for _ in range(2000):
        with kymo.region("work"):
            pass
    kymo.step_end("train")
    time.sleep(0.1)
""")
    done = run([KYMO, "run", "--keep", "zones=1s,steps=all", "-o", out, "--", sys.executable, script],
               {**home, "PYTHONPATH": str(KYMO.parent / "python")}, tmp_path)
    recording = Recording(out, done)
    assert recording.one("SELECT count FROM trace.regions WHERE name = 'work'") == 260000
    assert recording.one("SELECT count(*) FROM trace.zones WHERE name = 'work'") < 200000
    assert recording.one("SELECT count(*) FROM trace.steps") == 130
    assert recording.query("FROM kymo.problems") == []
