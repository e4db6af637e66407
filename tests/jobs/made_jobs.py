"""Made jobs (tests/progs/made_ranks.c) by which findings and clocks are judged: by the tests here, and by bench/run."""
import random

LATE, CLEAN = 50, 20

CLOCKS = ["ranks=64", "ranks=64 per_host=8", "ranks=48 steps=400", "ranks=16 late=3:40000", "ranks=32 steps=1000",
          "ranks=100 per_host=2 steps=300", "ranks=4 steps=2000", "ranks=24 steps=40", "ranks=8 noise_us=3000 latency_us=100"]
# SQL over such a job, by rank: the largest error of an aligned end, and what dist.clocks states. The true end is in correlation.
CLOCK_ERRORS = """
    WITH c AS (SELECT rank, end_ns - correlation::BIGINT AS x FROM dist.collectives WHERE end_ns IS NOT NULL),
    r AS (SELECT rank, max(abs(x - (SELECT median(x) FROM c WHERE rank = 0)))::BIGINT AS worst FROM c GROUP BY 1),
    e AS (SELECT rank, max(error_ns) AS stated, any_value(method) AS method, count(*)::INT AS pieces FROM dist.clocks GROUP BY 1)
    SELECT * FROM r JOIN e USING (rank) ORDER BY rank"""


def noisy():
    """(the late rank, or None; the words of made_ranks) of each. Noise of 1 ms at each step, ten times that now and then; hosts with
    clocks of their own."""
    chance = random.Random(3)
    for number in range(LATE + CLEAN):
        ranks = chance.choice([4, 6, 8])
        late = chance.randrange(ranks) if number < LATE else None
        words = f"ranks={ranks} per_host={chance.choice([1, 2])} steps=60 seed={number} noise_us=1000 clocks=1"
        yield late, words + (f" late={late}:{chance.randrange(4000, 20000)}" if late is not None else "")


def is_right(late, verdicts):
    """Whether the report names this rank; of a job without a late rank, whether it names none. `verdicts` by name."""
    named = verdicts["rank"]["sentence"] if "rank" in verdicts else ""
    return named.startswith(f"Rank {late} on host ") if late is not None else not named and "slow_host" not in verdicts
