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
/* FLOPs of the recorded steps: one line for all, and the modules with most of them. As above. */
int modules_print_flops(struct tables *tables, size_t most, FILE *out,
			const struct text_style *style, struct kymo_error *err);

#endif
