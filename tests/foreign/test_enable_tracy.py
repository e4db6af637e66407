"""make build ENABLE_TRACY=1: the examples that are marked for Tracy record; without it they do not."""
import os

import pytest
from programs import BUILD, ROOT, Home, said


def test_make_hands_the_word_down_to_the_build():
    recipe = said(["make", "-n", "build", "ENABLE_TRACY=1"], cwd=ROOT)
    assert "tools/build" in recipe
    assert "-Dtracy=true" in (ROOT / "tools/build").read_text()


def test_plain_build_does_not_record_what_is_marked(tmp_path):
    if "-Dtracy=true" in (BUILD / ".state").read_text():
        pytest.skip("this tree was built with ENABLE_TRACY=1")
    home = Home(tmp_path)
    home.run(BUILD / "examples/marked")
    assert home.recordings() == []


def test_with_enable_tracy_it_records_by_itself(tmp_path):
    said([ROOT / "tools/build", "build-tracy", "-Dtests=false", "--", "examples/marked"],
         env={**os.environ, "ENABLE_TRACY": "1"}, seconds=400)
    home = Home(tmp_path)
    home.run(ROOT / "build-tracy/examples/marked")
    assert home.one("SELECT sum(count)::INT FROM trace.regions WHERE name = 'simulate'") == 1000
    assert home.one("SELECT sum(count)::INT FROM trace.regions WHERE name = 'worker'") == 20
    assert home.one("SELECT count(*) FROM trace.steps WHERE name = 'frame'") == 9
    assert sorted(home.column("SELECT DISTINCT thread FROM trace.zones WHERE name = 'worker'")) == ["worker 0", "worker 1"]
