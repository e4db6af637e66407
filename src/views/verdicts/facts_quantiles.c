/*
 * p50 and p99 of the regions without a histogram: a thread keeps those of its first 256 regions,
 * and with every Python call recorded, imports come first. If all rows are kept, they tell as well.
 */
#include <stdlib.h>
#include <string.h>

#include "views/query/rows.h"
#include "views/verdicts/facts.h"
#include "views_sql.h"

#define SCANNED_MOST 20000000u /* rows: seconds */

static bool facts_has_unknown(const struct facts *facts)
{
	for (size_t i = 0; i < facts->region_count; i++)
		if (facts->regions[i].p50_ns < 0)
			return true;
	return false;
}

static bool facts_has_all_zones(const struct facts *facts)
{
	struct facts_rows zones = facts_rows_of(facts, "trace.zones");

	return zones.kept && zones.kept == zones.emitted && !zones.dropped &&
	       zones.kept <= SCANNED_MOST;
}

static int quantile_row(const struct rows *rows, void *context)
{
	struct facts *out = context;
	char *label = rows_take_text(rows, 0);
	char source[16];

	rows_copy_text(rows, 1, source, sizeof(source));
	for (size_t i = 0; label && i < out->region_count; i++) {
		struct facts_region *region = &out->regions[i];

		if (region->p50_ns >= 0 || strcmp(region->name, label) != 0 ||
		    strcmp(region->source, source) != 0)
			continue;
		region->p50_ns = rows_number(rows, 2, -1);
		region->p99_ns = rows_number(rows, 3, -1);
	}
	free(label);
	return 0;
}

int facts_quantiles(struct tables *tables, struct facts *out, struct kymo_error *err)
{
	if (!facts_has_unknown(out) || !facts_has_all_zones(out))
		return 0;
	return rows_each(tables, sql_facts_quantiles, quantile_row, out, err);
}
