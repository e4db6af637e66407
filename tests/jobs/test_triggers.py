"""The ready-made trigger for a late rank, over made jobs with one and without."""
import json
import pathlib

from conftest import make_job

CONDITION = pathlib.Path(__file__).resolve().parents[2] / "src/trigger/sql/ready_late_rank.sql"


def test_a_late_rank_meets_its_condition_and_a_job_without_one_does_not(place):
    """100 ms in each of 100 collectives; then nobody; then so little that it costs less than a tenth of a minute."""
    def rows(name, words):
        made = make_job(place, name, f"ranks=4 steps=100 seed=1 noise_us=1000 {words}")
        done = place.kymo("query", "-f", "json", made, CONDITION.read_text())
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    assert rows("late", "late=2:100000") == [{"rank": 2}]
    assert rows("clean", "") == []
    assert rows("little", "late=2:10000") == []
