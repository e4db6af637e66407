/*
 * SQL over a recording. DuckDB is loaded here (dlopen, lazily) and nowhere else, never into a
 * recorded program.
 *
 *	tables_open("runs/a", &options, &tables, err);
 *	tables_query(tables, "FROM trace.regions", &result, err);
 *	while (tables_next(result, err) > 0)
 *		for each row: tables_cell(result, column, row, &cell);
 *	tables_result_close(result); tables_close(tables);
 */
#ifndef KYMO_TABLES_TABLES_H
#define KYMO_TABLES_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store.h"

/* a session: an in-memory DuckDB with the recording attached as `rec`, with its schemas and
   views */
struct tables;
struct tables_result;

struct tables_options {
	bool unsafe; /* --unsafe: any statement, files, settings; otherwise one SELECT or EXPLAIN */
	uint64_t memory_limit_bytes; /* 0: 1 GiB (unsafe: DuckDB's own) */
	uint32_t timeout_ms; /* 0: none */
	uint32_t threads; /* 0: as many as there are cores */
};

/* The memory limit for internal SQL over whole recordings: a quarter of the free memory, from 1
   to 4 GiB. */
uint64_t tables_own_memory(void);

/* Loads DuckDB. *out_version is its version, which stays valid. */
int tables_library(const char **out_version, struct kymo_error *err);

/* path as store_resolve() returns it: directory, snapshot, packed file or job of a lake. */
int tables_open(const char *path, const struct tables_options *options, struct tables **out,
		struct kymo_error *err);
/* The same for a recording that is open already, and is closed with the session, also after a
   failure. The caller may change the chunks of its streams between two queries. */
int tables_open_recording(struct recording *recording, const struct tables_options *options,
			  struct tables **out, struct kymo_error *err);
void tables_close(struct tables *tables);
/* Takes the present state of a recording that goes on, for a session that asks the same again and
   again: DuckDB and the views stay. No result may be open. -ESTALE: the program has new tables;
   -EINVAL: a packed file; any other error leaves the session as it was. After -ESTALE open a new
   one. */
int tables_refresh(struct tables *tables, struct kymo_error *err);
/* The time limit of later queries; 0: none. */
void tables_limit_time(struct tables *tables, uint32_t timeout_ms);
/* The opened store, for callers that need no SQL; NULL for a packed file and a job of a lake. */
const struct recording *tables_recording(const struct tables *tables);
/* The name of the directory or file that was opened, without the path. A packed file has
   kymo.runs.path of the recording that it was made of. */
const char *tables_name(const struct tables *tables);
/* Adds a sentence to kymo.problems of this session: something that could not be computed. In a
   session of a packed file it is in tables_problems() alone. */
void tables_add_problem(struct tables *tables, const char *sentence);
/* These sentences and those of its tables, each with a newline; valid until one is added. */
const char *tables_problems(const struct tables *tables);
/* Computes a view now, once for all later queries of the session, since views over many rows take
   seconds: for those with few rows that many queries read. Without effect if it fails, and for a
   packed file, where they are tables. */
void tables_keep_view(struct tables *tables, const char *schema, const char *view);
/* Interrupts the running queries, or the next one if none is running, so that a request made
   while a query starts is not lost. Safe in a signal handler and in other threads. */
void tables_interrupt(struct tables *tables);

/* Checks and starts a query. -EPERM: the statement is not allowed; -EINVAL: DuckDB's message,
   with its suggestion; -ECANCELED: interrupted; -ETIMEDOUT. Results are streamed, not
   materialised. */
int tables_query(struct tables *tables, const char *sql, struct tables_result **out,
		 struct kymo_error *err);
void tables_result_close(struct tables_result *result); /* may be NULL */

size_t tables_column_count(const struct tables_result *result);
const char *tables_column_name(const struct tables_result *result, size_t column);
/* "BIGINT", "VARCHAR", … */
const char *tables_column_type(const struct tables_result *result, size_t column);

enum tables_cell_kind {
	TABLES_NULL,
	TABLES_BOOL,
	TABLES_INTEGER, /* .integer */
	TABLES_UNSIGNED, /* .unsigned_integer */
	TABLES_DOUBLE, /* .real */
	/* .text, .text_bytes: valid until the next tables_next(); also used for all other types */
	TABLES_TEXT,
	TABLES_JSON, /* as TEXT, and valid JSON: lists and structs */
};

struct tables_cell {
	enum tables_cell_kind kind;
	int64_t integer;
	uint64_t unsigned_integer;
	double real;
	const char *text;
	size_t text_bytes;
};

/* Fetches the next batch: its row count, 0 at the end, or a negative errno (-ECANCELED, -ETIMEDOUT,
   …). */
int64_t tables_next(struct tables_result *result, struct kymo_error *err);
void tables_cell(struct tables_result *result, size_t column, size_t row, struct tables_cell *out);

/* The first column of the first row as a number; fallback if there is none. */
double tables_number(struct tables *tables, const char *sql, double fallback);

/* Writes the whole result as an Arrow IPC stream to fd, or as a Parquet file (zstd) at path,
   which is replaced atomically. */
int tables_write_arrow(struct tables_result *result, int fd, struct kymo_error *err);
int tables_write_parquet(struct tables_result *result, const char *path, struct kymo_error *err);

/* Calls progress as rows are read, from any thread, one call at a time, with the number of rows
   so far and 0, since the total is not known. It is not called for a packed file, which DuckDB
   reads itself. NULL ends it. */
void tables_watch(struct tables *tables, void (*progress)(uint64_t done, uint64_t all));

/* kymo pack: writes the recording at `from` as a DuckDB database at `to`, which is replaced
   atomically. progress gets the rows done and the total; it may be NULL. */
int tables_pack(const char *from, const char *to, void (*progress)(uint64_t done, uint64_t all),
		struct kymo_error *err);

#endif
