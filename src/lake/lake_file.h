/* One data file of a lake: DuckDB writes it under a name that readers leave alone; then it gets its
   own, whole. */
#ifndef KYMO_LAKE_FILE_H
#define KYMO_LAKE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/lake/lake_dir.h"
#include "tables/catalog/catalog.h"
#include "tables/tables.h"

struct lake_place {
	struct tables *tables; /* a session with .unsafe, which may write files */
	const struct lake_job *job;
	int lake; /* its directory; files are made relative to it, never through a link */
	uint64_t rows, bytes, files; /* written */
};

struct lake_file_content {
	const char *schema, *table; /* of the directory */
	const char *name; /* without .parquet */
	const char *query;
	const char *cursors; /* for the footer; NULL: none */
	bool replace; /* else -EEXIST if it is there */
	bool even_empty; /* a file without rows is written, too, if one is there already */
};

/* Opens the directory of place->job. -EPERM: others can exchange it, and this is root. */
int lake_place_open(struct lake_place *place, const struct lake_job *job, struct kymo_error *err);
void lake_place_close(struct lake_place *place); /* an empty one, with lake -1, is fine */

/* *out_rows: the number of rows, may be NULL. Nothing is written if the query has none. */
int lake_file_write(struct lake_place *place, const struct lake_file_content *content,
		    uint64_t *out_rows, struct kymo_error *err);
/* The directory of a table's files. A descriptor, or a negative errno and *err. */
int lake_file_directory(const struct lake_place *place, const char *schema, const char *table,
			bool make, struct kymo_error *err);
/* Removes what a killed flush of that writer has left; the caller holds its lock. */
void lake_file_clean(const struct lake_place *place, const char *writer);
/* LAKE/SCHEMA.TABLE/run=JOB/NAME */
void lake_file_path(const struct lake_job *job, const char *schema, const char *table,
		    const char *name, struct buf *out);
/* NULL: not one of the catalog's tables. */
const struct catalog_view *lake_file_view(const char *schema, const char *table);
/* Runs a statement; *out: the number in its first row and column, may be NULL. */
int lake_file_number(struct tables *tables, const char *sql, uint64_t *out, struct kymo_error *err);

#endif
