"""kymo ls: what a program that runs is doing, and since when."""
import json
import re

from probe_tools import running, until

DEEP = """
import sys, kymo
kymo.step()
kymo.step()
with kymo.region("a-loop-whose-name-is-much-longer-than-any-line-has-room-for-it"):
    with kymo.region("data.next"):
        print("begun", flush=True)
        sys.stdin.read()
"""


def test_a_hung_program_is_shown_with_its_zones_their_ages_and_that_of_its_last_row(kymo, python):
    with running(kymo, command=[python, "-c", DEEP], env={"KYMO": "on"}):
        out = until(lambda: re.search(r"last row", kymo("ls").out) and kymo("ls").out)
        line = out.splitlines()[2]
        assert re.fullmatch(r"  in a-loop\S*…\S+ for [\d.]+ m?s > data\.next for [\d.]+ m?s; last row [\d.]+ m?s ago", line)
        assert all(len(line) <= 80 for line in out.splitlines())
        entry, = json.loads(kymo("ls", "-f", "json").out)
        assert entry["open_zone"].startswith("a-loop-") and entry["open_zone_age_ns"] > 0
        assert 0 < entry["last_row_age_ns"] < 3600e9
    assert len(kymo("ls").out.splitlines()) == 2, "of one that has ended there is no such line"


def test_a_program_on_standby_has_no_row_yet(kymo):
    with running(kymo, env={"KYMO": "standby"}):
        assert kymo("ls").out.splitlines()[2] == "  no zone open; no row yet"
