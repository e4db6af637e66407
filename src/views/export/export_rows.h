/*
 * Rows that are no zones: steps, and operations of devices. A query gives the place of each as its
 * first columns, and all that kymo import needs to make the same row again as the others, which
 * become arguments of the event under the name of the column.
 */
#ifndef KYMO_VIEWS_EXPORT_EXPORT_ROWS_H
#define KYMO_VIEWS_EXPORT_EXPORT_ROWS_H

#include "views/export/export.h"

/* Added to the number of a track: a tid above those of Linux and of sampled stacks. */
#define EXPORT_ROWS_TID 1610612736

struct export_row {
	const char *category; /* TRACE_OWN_OPS or TRACE_OWN_STEPS */
	int32_t pid, track;
	bool begins; /* the first of its track */
	char track_name[128];
	struct tables_cell name;
	bool has_times;
	int64_t start_ns, end_ns;
	struct tables_result *result; /* for export_rows_argument() */
	size_t row, columns;
};

/* Calls write for every row. */
int export_rows(struct export *export,
		int (*write)(struct export *export, const struct export_row *row));
/* An argument, from 0 on; false: there are no more. A NULL has kind TABLES_NULL. */
bool export_rows_argument(const struct export_row *row, size_t number, const char **key,
			  struct tables_cell *out);

#endif
