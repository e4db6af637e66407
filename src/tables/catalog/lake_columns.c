#include "tables/catalog/lake_columns.h"

#include "store/lake/lake_dir.h"

uint64_t catalog_lake_columns(const struct catalog_view *view)
{
	uint64_t hash = LAKE_HASH_BEGIN;

	for (size_t i = 0; i < view->column_count; i++)
		hash = lake_hash_column(hash, view->columns[i].name, view->columns[i].type);
	return hash;
}
