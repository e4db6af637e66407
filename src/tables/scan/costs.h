/* Rows of kymo.overhead by what sources have measured of themselves (kymo.costs). */
#ifndef KYMO_TABLES_SCAN_COSTS_H
#define KYMO_TABLES_SCAN_COSTS_H

#include "tables/scan/meta.h"

#include "store/store.h"

/* Adds one for each source: the last row of each process, summed. */
void costs_fill(struct meta_rows *rows, const struct recording *recording);

#endif
