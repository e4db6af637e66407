/* The summary that `kymo run` prints at the end. */
#ifndef KYMO_VIEWS_REPORT_SUMMARY_H
#define KYMO_VIEWS_REPORT_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct summary_options {
	bool colour;
	int columns; /* of the terminal; 0: 80 */
	int lines_above; /* besides one on how it ended: a long path, the last stack */
	bool stack_said; /* the last stack is printed above */
};

/* At most 22 lines on the recording at path. Without DuckDB it is shorter, with the reason. 0, or a
   negative errno and *err if the recording cannot be read. */
int summary_print(const char *path, const struct summary_options *options, FILE *out,
		  struct kymo_error *err);

#endif
