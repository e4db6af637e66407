"""tools/embed-sql: what it makes of .sql files, and the errors that it names file and line of."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.skipif(not shutil.which(os.environ.get("CC", "cc")), reason="no C compiler")

VIEW = """\
-- Zones that have ended.
--
-- name      VARCHAR  zone name
-- start_ns  BIGINT   start, in ns; NULL if
--                    not known
--
-- A note.
SELECT
    name,  -- a comment
    CASE WHEN kind = {SCHEMA_TEXT_MARK} THEN   start_ns END AS start_ns
FROM kymo_scan('trace.zones')
WHERE name <> 'a  -- b'
"""

VERDICT = """\
-- threshold: 0.10
-- weight: 1.0
-- sentence: Data loading takes {share} of step time
--   ({won} of {whole}).
-- evidence: {count} steps
-- advice: more workers
-- tab: timeline
-- query: FROM trace.steps
SELECT sum(data_ns), {run_ns}
FROM trace.steps
"""


@pytest.fixture
def tree(tmp_path):
    """Embeds the given files of a layer; gives the C text, or the errors."""
    layer = tmp_path / "src/tables"
    layer.mkdir(parents=True)
    (layer / "sql_constants.h").write_text(
        'enum { SCHEMA_TEXT_MARK = 1 };\n#define FLAG (1u << 10)\n#define BIG 0xfffffffffff8ull\n'
        '#define GC "gc"\n#define WORDS "\'a\', " GC\n')

    def embed(**texts):
        files, parts = [], []
        for name, text in texts.items():
            path = layer / (name.replace("__", "/").replace("_dot_", ".") + ".sql")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            (parts if path.parent.name == "parts" else files).append(path)
        done = subprocess.run([ROOT / "tools/embed-sql", "--layer", "tables", "--root", tmp_path,
                               "--c", tmp_path / "o.c", "--h", tmp_path / "o.h", "--cc", os.environ.get("CC", "cc"),
                               *(word for part in parts for word in ("--part", part)), *files],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            assert done.returncode == 1 and not (tmp_path / "o.c").exists() and "Traceback" not in done.stderr
            return done.stderr.rstrip("\n")
        assert not done.stderr
        return (tmp_path / "o.c").read_text()
    embed.root = tmp_path
    return embed


def test_a_view_is_a_row_of_the_catalog_with_its_columns(tree):
    made = tree(sql__trace_dot_zones=VIEW)
    assert '{ "name", "VARCHAR", "zone name" },\n\t{ "start_ns", "BIGINT", "start, in ns; NULL if not known" },' in made
    assert ('"SELECT "\n\t\t"name, "\n\t\t"CASE WHEN kind = 1 THEN start_ns END AS start_ns "\n'
            '\t\t"FROM kymo_scan(\'trace.zones\') "\n\t\t"WHERE name <> \'a  -- b\'"') in made
    assert 'trace_zones, 2, "Zones that have ended." }' in made


def test_a_verdict_is_a_row_of_the_rules(tree):
    made = tree(rules__data=VERDICT)
    assert '.name = "data",\n\t  .threshold = 0.10,\n' in made
    assert '.sentence = "Data loading takes {share} of step time ({won} of {whole})."' in made
    assert '"SELECT sum(data_ns), {run_ns} "\n\t\t"FROM trace.steps" }' in made


def test_a_verdict_names_the_part_that_tells_whether_it_reads_zones(tree):
    part = "-- Whether there are any.\nSELECT {FLAG} * {run_ns}\n"
    made = tree(rules__data=VERDICT.replace("-- tab:", "-- zones_if: has_data\n-- tab:"), sql__parts__has_data=part)
    assert '\t  .zones_if =\n\t\t"SELECT 1024 * {run_ns}",\n' in made
    assert '"has_data"' not in made


def test_a_query_is_a_constant_with_the_values_of_c(tree):
    made = tree(sql__some="-- why\nSELECT {FLAG}, {BIG}, '{GC} x', [{WORDS}], {'k': {run_ns}}\n")
    assert made.endswith("""const char sql_some[] =\n\t"SELECT 1024, 281474976710648, 'gc x', ['a', gc], {'k': {run_ns}}";\n""")
    assert "extern const char sql_some[];" in (tree.root / "o.h").read_text()


def test_parts_are_included_with_their_arguments(tree):
    made = tree(sql__some="SELECT ({include known time=start_ns}) AS t\n", sql__parts__known="-- a part\nCASE {time}\nEND\n")
    assert made.endswith('"SELECT ( "\n\t"CASE start_ns "\n\t"END "\n\t") AS t";\n')


@pytest.mark.parametrize("files, error", [
    ({"sql__some": "SELECT 1,\n{NO_SUCH}\n"},
     "src/tables/sql/some.sql:2: no constant is named NO_SUCH in the headers that src/tables/sql_constants.h includes"),
    ({"sql__trace_dot_zones": VIEW.replace("-- name      VARCHAR  zone name\n", "")},
     "src/tables/sql/trace.zones.sql:8: column name has no comment line at the top of src/tables/sql/trace.zones.sql"),
    ({"sql__trace_dot_zones": VIEW.replace("    name,  -- a comment\n", "")},
     "src/tables/sql/trace.zones.sql:3: the query returns no column name"),
    ({"sql__trace_dot_zones": VIEW.replace("    name,  -- a comment\n", "").replace("AS start_ns", "AS start_ns, name")},
     "src/tables/sql/trace.zones.sql:3: the query returns start_ns here; keep the comments in its order"),
    ({"sql__trace_dot_zones": VIEW.replace("name,  -- a comment", "count(*),")},
     "src/tables/sql/trace.zones.sql:9: give each column of the outermost SELECT a name: … AS name"),
    ({"sql__trace_dot_zones": VIEW.replace("VARCHAR", "text")},
     "src/tables/sql/trace.zones.sql:3: a column is a name, an SQL type and a meaning: -- pid  INTEGER  process ID"),
    ({"sql__trace_dot_zones": VIEW.replace("ended.", "ended")},
     "src/tables/sql/trace.zones.sql:1: the description is a sentence and ends with a full stop"),
    ({"sql__trace_dot_zones": "SELECT 1 AS a\n"},
     "src/tables/sql/trace.zones.sql:1: expected comments with a description, an empty comment and a line for each column"),
    ({"rules__data": VERDICT.replace("-- tab: timeline\n", "")}, "src/tables/rules/data.sql:1: no tab in the header"),
    ({"rules__data": VERDICT.replace("weight: 1.0", "weight: much")},
     "src/tables/rules/data.sql:2: weight is a number, not much"),
    ({"rules__data": VERDICT.replace("tab:", "tap:")},
     "src/tables/rules/data.sql:7: a key is one of threshold, weight, weight_with_steps, least_s, sentence, evidence, advice, "
     "tab, query, needs, zones_if, a colon and a value"),
    ({"rules__data": VERDICT.replace("-- tab:", "-- zones_if: none\n-- tab:")},
     "src/tables/rules/data.sql:7: no part is named none; a part is a file NAME.sql in a folder named parts"),
    ({"sql__some": "SELECT {include none}\n"},
     "src/tables/sql/some.sql:1: no part is named none; a part is a file NAME.sql in a folder named parts"),
    ({"sql__some": "SELECT {include a}\n", "sql__parts__a": "{include b}\n", "sql__parts__b": "1 + {include a}\n"},
     "src/tables/sql/parts/b.sql:1: a includes itself"),
    ({"sql__some": "SELECT 'a\nb'\n"}, "src/tables/sql/some.sql:1: a quoted text does not end on its line"),
    ({"sql__some": "SELECT 1" + " + 1" * 30 + "\n"}, "src/tables/sql/some.sql:1: 128 characters; the longest line has 100"),
    ({"sql__some": "-- nothing\n"}, "src/tables/sql/some.sql:2: no SQL after the comments"),
    ({"sql__some": "SELECT 1\n", "other__sql__some": "SELECT 2\n"},
     "src/tables/sql/some.sql:1: src/tables/other/sql/some.sql has the same name"),
])
def test_errors_name_the_file_and_the_line(tree, files, error):
    assert tree(**files) == error


def test_every_view_documents_the_columns_that_it_returns(recording):
    documented = []
    for path in sorted((ROOT / "src/tables/sql").glob("*/*.*.sql")):
        head = path.read_text().split("\n--\n")[1]
        documented += [f"{path.stem},{name},{kind}" for name, kind in re.findall(r"^-- (\w+) +([A-Z]+(?:\[\])?) ", head, re.M)]
    views = "', '".join(path.stem for path in (ROOT / "src/tables/sql").glob("*/*.*.sql"))
    assert documented and recording(
        "SELECT table_schema || '.' || table_name AS t, column_name, data_type FROM information_schema.columns "
        f"WHERE table_catalog = 'rec' AND t IN ('{views}') ORDER BY t, ordinal_position") == "\n".join(documented)
