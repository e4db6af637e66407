/* Rows of kymo.overhead for sources that measure themselves (kymo.costs). */
#ifndef KYMO_TABLES_SCAN_COSTS_H
#define KYMO_TABLES_SCAN_COSTS_H

#include "tables/scan/meta.h"

#include "store/store.h"

/* Adds a row for each source: the sum of the last rows of all processes. */
void costs_fill(struct meta_rows *rows, const struct recording *recording);

#endif
