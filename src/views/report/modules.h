/* Modules of PyTorch, forward and backward beside each other. */
#ifndef KYMO_VIEWS_REPORT_MODULES_H
#define KYMO_VIEWS_REPORT_MODULES_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/term/text.h"

/* A header and the costliest modules by self time. How many were printed, 0 where none were
   recorded; a negative errno. */
int modules_print(struct tables *tables, size_t most, FILE *out, const struct text_style *style,
		  struct kymo_error *err);

#endif
