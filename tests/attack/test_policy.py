"""What a SELECT can call: each function of DuckDB that could do more than compute is refused or known to be harmless."""
import re
import subprocess

import pytest
from conftest import PROGS, ROOT, Home

# They read the recording, the catalog or nothing.
HARMLESS = {
    "table": """
        duckdb_approx_database_count duckdb_columns duckdb_connection_count duckdb_constraints duckdb_coordinate_systems
        duckdb_databases duckdb_dependencies duckdb_external_file_cache duckdb_functions duckdb_indexes duckdb_keywords
        duckdb_log_contexts duckdb_logs duckdb_memory duckdb_optimizers duckdb_prepared_statements duckdb_schemas
        duckdb_secret_types duckdb_sequences duckdb_settings duckdb_table_sample duckdb_tables duckdb_temporary_files
        duckdb_types duckdb_variables duckdb_views generate_series icu_calendar_names json_each json_tree
        pg_timezone_names pragma_collations pragma_database_size pragma_metadata_info pragma_platform pragma_show
        pragma_storage_info pragma_table_info pragma_user_agent pragma_version range repeat repeat_row summary
        test_all_types test_vector_types unnest
        kymo_scan kymo_meta kymo_leaves kymo_samples kymo_sites
        kymo_critical_path kymo_critical_sums kymo_critical_idle kymo_critical_idle_sums
        kymo_own_frames kymo_native_leaves kymo_native_own_frames kymo_native_samples""",
    "table_macro": "duckdb_logs_parsed duckdb_profiling_settings histogram histogram_values",
    # Of the scalar functions, those whose result is not a function of their arguments.
    "scalar": """
        current_connection_id current_database current_date current_query current_query_id current_schema current_schemas
        current_transaction_id currval error gen_random_uuid get_current_time get_current_timestamp in_search_path nextval
        now random setseed sleep_ms stats today transaction_timestamp txid_current uuid uuidv4 uuidv7""",
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("policy"))
    home.recording = home.path / "small"
    subprocess.run([PROGS / "sql_fixture", home.recording], check=True)
    return home


def denied():
    text = (ROOT / "src/tables/sql_policy.c").read_text()
    return set(re.findall(r'"(\w+)"', text.split("functions[] = {")[1].split("};")[0]))


@pytest.mark.parametrize("kind", HARMLESS)
def test_every_function_is_classified(recorded, kind):
    volatile = " AND (stability <> 'CONSISTENT' OR has_side_effects)" if kind == "scalar" else ""
    done = recorded("query", recorded.recording, "-f", "csv",
                    f"SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = '{kind}'{volatile}")
    there = set(done.stdout.split()[1:])
    assert there, done.stderr
    unknown = there - set(HARMLESS[kind].split()) - denied()
    assert not unknown, f"add to HARMLESS, or to functions[] of src/tables/sql_policy.c: {sorted(unknown)}"


def test_no_function_is_both(recorded):
    assert not denied() & {name for names in HARMLESS.values() for name in names.split()}


@pytest.mark.parametrize("function", ["sql_auto_complete", "write_log", "json_execute_serialized_sql", "enable_logging"])
def test_it_is_refused_however_it_is_written(recorded, function):
    for call in [f"FROM {function}('x')", f'FROM "{function}" (\'x\')', f"FROM {function.upper()}/**/('x')",
                 f"SELECT * FROM system.main.{function}\n('x')"]:
        done = recorded("query", recorded.recording, call)
        assert (done.returncode, done.stdout) == (1, ""), call
        assert done.stderr == f"kymo query: SQL over a recording may not call {function}(); --unsafe allows all statements\n"


def test_every_pragma_is_refused_or_only_shows(recorded):
    shows = {"collations", "database_list", "database_size", "extension_versions", "functions", "metadata_info", "platform", "show",
             "show_databases", "show_tables", "show_tables_expanded", "storage_info", "table_info", "user_agent", "version"}
    done = recorded("query", recorded.recording, "-f", "csv",
                    "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'pragma'")
    for name in set(done.stdout.split()[1:]) - shows:
        for sql in [f"PRAGMA {name}", f"PRAGMA {name}('x')", f"PRAGMA {name}('x', 'y')"]:
            assert recorded("query", recorded.recording, sql).returncode == 1, sql
