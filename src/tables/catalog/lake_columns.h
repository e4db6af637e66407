#ifndef KYMO_TABLES_CATALOG_LAKE_COLUMNS_H
#define KYMO_TABLES_CATALOG_LAKE_COLUMNS_H

#include <stdint.h>

#include "tables/catalog/catalog.h"

/* The hash of the columns that files of a catalog's table have in a lake (lake_hash_column). */
uint64_t catalog_lake_columns(const struct catalog_view *view);
/* Its columns, each with its type: a file with another one is an error, not another answer. */
void catalog_lake_casts(struct buf *out, const struct catalog_view *view);
/* A query without rows that has these columns. */
void catalog_lake_nothing(struct buf *out, const struct catalog_view *view);

#endif
