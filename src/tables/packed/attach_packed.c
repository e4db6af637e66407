#include "tables/packed/attach_packed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/scratch/child_notes.h"
#include "tables/catalog/catalog.h"
#include "tables/packed/packed_foreign.h"
#include "tables/packed/packed_old.h"
#include "tables/sql_fill.h"
#include "tables_sql.h"

/* Only the list of tables is read; a damaged one may lead in a circle. */
#define ATTACH_SECONDS 120

static int attach_packed_run(duckdb_connection connection, struct buf *sql, const char *doing,
			     struct kymo_error *err)
{
	int rc = sql->failed ? error_set(err, ENOMEM, "no memory for the query")
			     : duck_run(connection, sql->data, doing, err);

	buf_fini(sql);
	return rc;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* DuckDB would wait for the writer of a FIFO, and read a log next to the file. */
static int check_file(const char *path, struct kymo_error *err)
{
	char log[KYMO_PATH_BYTES + 8];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	bool regular = fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode);

	if (fd < 0)
		return error_set(err, errno, "cannot open the recording %s: %s", path,
				 strerror(errno));
	close(fd);
	if (!regular)
		return error_set(err, EINVAL, "%s is not a regular file", path);
	snprintf(log, sizeof(log), "%s.wal", path);
	if (!lstat(log, &status))
		return error_set(err, EINVAL,
				 "cannot open %s: %s shows that another program writes it or was "
				 "interrupted; open it with DuckDB once, or pack the recording "
				 "again",
				 path, log);
	return 0;
}

/* After this no statement can access other files or change settings. DuckDB looks for the log,
   which does not exist. */
static int lock_to(duckdb_connection connection, const char *path, struct kymo_error *err)
{
	struct buf sql = { 0 }, log = { 0 };

	buf_print(&log, "%s.wal", path);
	buf_text(&sql, "SET allowed_paths = [");
	catalog_quote_text(&sql, path);
	buf_text(&sql, ", ");
	catalog_quote_text(&sql, buf_get(&log));
	buf_text(&sql, "]; SET enable_external_access = false; SET lock_configuration = true");
	buf_fini(&log);
	return attach_packed_run(connection, &sql, "cannot lock down DuckDB", err);
}

static void note_deadline(uint32_t seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	child_notes_deadline(seconds ? (uint64_t)(now.tv_sec + seconds) * 1000000000u : 0,
			     seconds * 1000);
}

static int attach_file(duckdb_connection connection, const char *path, const char *database,
		       struct kymo_error *err)
{
	char doing[KYMO_PATH_BYTES + 64];
	struct buf sql = { 0 };

	snprintf(doing, sizeof(doing), "cannot read the packed recording %s", path);
	buf_text(&sql, "ATTACH ");
	catalog_quote_text(&sql, path);
	buf_print(&sql, " AS %s (READ_ONLY, TYPE duckdb)", database);
	return attach_packed_run(connection, &sql, doing, err);
}

/* ---- what it holds -------------------------------------------------------------------------- */

/* why: of a check that failed; it names what is foreign. */
static int refuse_foreign(const struct kymo_error *why, const char *path, struct kymo_error *err)
{
	const char *what = strstr(why->text, PACKED_FOREIGN);

	if (!what)
		return error_set(err, EIO, "cannot read the packed recording %s%s", path,
				 why->text);
	what += strlen(PACKED_FOREIGN);
	return error_set(
		err, EINVAL,
		"%s is not as kymo pack writes it: it has %.*s; open it with DuckDB if you "
		"trust it",
		path, (int)strcspn(what, "\n"), what);
}

/* sql with the name of the attached file; the caller frees it. */
static struct buf packed_fill(const char *sql, const char *database)
{
	const struct sql_value values[] = { { "database", .text = database }, { NULL } };
	struct buf out = { 0 };

	sql_fill(&out, sql, values);
	return out;
}

/* Each column of a known table has its type: the views and queries of today rely on it. */
static int check_types(const struct packed_columns *columns, const char *path,
		       struct kymo_error *err)
{
	const char *type = NULL;
	const struct packed_column *wrong = packed_columns_wrong(columns, &type);

	if (!wrong)
		return 0;
	return error_set(err, EINVAL,
			 "%s is not as kymo pack writes it: column %.40s.%.40s.%.40s has the type "
			 "%.40s, not %s; open it with DuckDB if you trust it",
			 path, wrong->schema, wrong->table, wrong->column, wrong->type, type);
}

static int check_objects(duckdb_connection connection, const char *path, const char *database,
			 struct packed_columns *columns, struct kymo_error *err)
{
	struct buf objects = packed_fill(sql_packed_objects, database);
	struct buf listed = packed_fill(sql_packed_columns, database);
	struct kymo_error why = { 0 };
	int rc = duck_run(connection, sql_packed_expected, "cannot check a packed recording", err);

	if (!rc) {
		rc = duck_run(connection, buf_get(&objects), "", &why);
		/* Binds the views, which are known now. */
		if (!rc)
			rc = packed_columns_read(connection, buf_get(&listed), columns, &why);
		rc = rc ? refuse_foreign(&why, path, err) : check_types(columns, path, err);
	}
	if (!rc)
		rc = duck_run(connection, "DETACH expected; DETACH expected_old",
			      "cannot check a packed recording", err);
	buf_fini(&objects);
	buf_fini(&listed);
	return rc;
}

static int not_packed(const char *path, struct kymo_error *err)
{
	return error_set(err, EINVAL,
			 "%s is a DuckDB database, but not a packed recording: it has no table "
			 "kymo.runs; open it with DuckDB",
			 path);
}

static int attach_checked(duckdb_connection connection, const char *path, const char *database,
			  struct packed_columns *columns, struct kymo_error *err)
{
	struct buf runs = packed_fill(sql_packed_runs, database);
	int rc = attach_file(connection, path, database, err);

	if (!rc && duck_run(connection, buf_get(&runs), "", NULL))
		rc = not_packed(path, err);
	if (!rc)
		rc = check_objects(connection, path, database, columns, err);
	buf_fini(&runs);
	return rc;
}

/* DuckDB renames no database, so the file is attached again, and checked again: it may be another
   one by now. */
static int attach_behind_views(duckdb_connection connection, const char *path,
			       struct kymo_error *err)
{
	struct packed_columns columns = { 0 };
	struct buf sql = { 0 };
	int rc = duck_run(connection, "DETACH rec", "cannot read the packed recording", err);

	if (!rc)
		rc = attach_checked(connection, path, "packed", &columns, err);
	if (!rc) {
		packed_old_sql(&sql, &columns);
		rc = attach_packed_run(connection, &sql,
				       "cannot show the packed recording with the tables of today",
				       err);
	}
	packed_columns_fini(&columns);
	return rc;
}

/* The file becomes the current database only after the checks: a macro of its would replace a
   function that they call. */
static int attach_and_use(duckdb_connection connection, const char *path, struct kymo_error *err)
{
	struct packed_columns columns = { 0 };
	int rc = attach_checked(connection, path, "rec", &columns, err);

	if (!rc && packed_old_is(&columns))
		rc = attach_behind_views(connection, path, err);
	if (!rc)
		rc = duck_run(connection, "USE rec", "cannot read the packed recording", err);
	if (!rc && duck_run(connection, "SELECT started_unix_ns, version FROM kymo.runs", "", NULL))
		rc = not_packed(path, err);
	packed_columns_fini(&columns);
	return rc;
}

int attach_packed(duckdb_connection connection, const char *path, bool unsafe,
		  struct kymo_error *err)
{
	int rc = check_file(path, err);

	if (!rc && !unsafe)
		rc = lock_to(connection, path, err);
	note_deadline(ATTACH_SECONDS);
	if (!rc)
		rc = attach_and_use(connection, path, err);
	note_deadline(0);
	return rc;
}
