/* PyTorch modules, with forward and backward in one row. */
#ifndef KYMO_VIEWS_REPORT_MODULES_H
#define KYMO_VIEWS_REPORT_MODULES_H

#include <stdio.h>

#include "tables/tables.h"
#include "views/term/text.h"

/* A header and the costliest modules by self time. Returns how many were printed, 0 if none were
   recorded, or a negative errno. */
int modules_print(struct tables *tables, size_t most, FILE *out, const struct text_style *style,
		  struct kymo_error *err);

#endif
