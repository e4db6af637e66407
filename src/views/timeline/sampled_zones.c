#include "views/timeline/sampled_zones.h"

#include "tables/tables.h"
#include "views_sql.h"

bool sampled_zones_wanted(struct tables *tables)
{
	return tables_number(tables, sql_unmarked, 0) > 0;
}

const char *sampled_zones_sql(void)
{
	return sql_gather_samples;
}

uint64_t sampled_zones_thinned(struct tables *tables)
{
	return (uint64_t)tables_number(tables, sql_sampled_thinned, 0);
}
