#include "tables/catalog/lake_columns.h"

#include "store/lake/lake_dir.h"

uint64_t catalog_lake_columns(const struct catalog_view *view)
{
	uint64_t hash = LAKE_HASH_BEGIN;

	for (size_t i = 0; i < view->column_count; i++)
		hash = lake_hash_column(hash, view->columns[i].name, view->columns[i].type);
	return hash;
}

void catalog_lake_casts(struct buf *out, const struct catalog_view *view)
{
	for (size_t i = 0; i < view->column_count; i++) {
		buf_text(out, i ? ", " : "");
		catalog_quote(out, view->columns[i].name);
		buf_print(out, "::%s AS ", view->columns[i].type);
		catalog_quote(out, view->columns[i].name);
	}
}

void catalog_lake_nothing(struct buf *out, const struct catalog_view *view)
{
	buf_text(out, "SELECT ");
	for (size_t i = 0; i < view->column_count; i++) {
		buf_print(out, "%sNULL::%s AS ", i ? ", " : "", view->columns[i].type);
		catalog_quote(out, view->columns[i].name);
	}
	buf_text(out, " WHERE false");
}
