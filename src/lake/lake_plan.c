#include "lake/lake_plan.h"

#include <stdio.h>
#include <string.h>

#include "lake/lake.h"
#include "tables/catalog/catalog.h"

static const struct {
	const char *table;
	struct lake_plan plan;
} plans[] = {
	{ "dist.clocks", { LAKE_READ, 0, NULL } },
	{ "dist.collectives", { LAKE_ROWS, 1, "rank, group_name, seq" } },
	{ "dist.desync", { LAKE_READ, 0, NULL } },
	{ "dist.late", { LAKE_READ, 0, NULL } },
	{ "dist.ranks", { LAKE_WHOLE, 0, NULL } },
	{ "kymo.config", { LAKE_ROWS, 0, NULL } },
	{ "kymo.costs", { LAKE_ROWS, 0, NULL } },
	{ "kymo.gaps", { LAKE_ROWS, 0, NULL } },
	{ "kymo.imports", { LAKE_ROWS, 0, NULL } },
	{ "kymo.overhead", { LAKE_WHOLE, 0, NULL } },
	{ "kymo.problems", { LAKE_WHOLE, 0, NULL } },
	{ "kymo.processes", { LAKE_WHOLE, 0, NULL } },
	{ "kymo.runs", { LAKE_WHOLE, 0, NULL } },
	{ "kymo.streams", { LAKE_WHOLE, 0, NULL } },
	{ "kymo.threads", { LAKE_WHOLE, 0, NULL } },
	{ "trace.open_zones", { LAKE_WHOLE, 0, NULL } },
	{ "trace.regions", { LAKE_WHOLE, 0, NULL } },
	{ "host.cgroup", { LAKE_ROWS, 1, "ts_ns" } },
	{ "host.cpu", { LAKE_ROWS, 1, "ts_ns" } },
	{ "host.gpu", { LAKE_ROWS, 1, "ts_ns" } },
	{ "host.io", { LAKE_ROWS, 1, "pid, ts_ns" } },
	{ "host.memory", { LAKE_ROWS, 1, "pid, ts_ns" } },
	{ "host.network", { LAKE_ROWS, 1, "ts_ns" } },
	{ "host.process", { LAKE_ROWS, 1, "pid, ts_ns" } },
	{ "host.program", { LAKE_LATER, 1, NULL } },
	{ "host.threads", { LAKE_ROWS, 1, "pid, tid, ts_ns" } },
	{ "trace.counters", { LAKE_ROWS, 1, "pid, name, ts_ns" } },
	{ "trace.marks", { LAKE_WHOLE, 1, NULL } },
	{ "trace.steps", { LAKE_ROWS, 1, "pid, step" } },
	{ "alloc.frames", { LAKE_ROWS, 2, NULL } },
	{ "alloc.rows", { LAKE_ROWS, 2, "pid, ts_ns" } },
	{ "device.clocks", { LAKE_ROWS, 2, "pid, ts_ns" } },
	{ "device.memory", { LAKE_ROWS, 2, "pid, ts_ns" } },
	{ "device.ops", { LAKE_ROWS, 2, "pid, start_ns" } },
	{ "device.waits", { LAKE_ROWS, 2, "pid, start_ns" } },
	{ "native.frames", { LAKE_ROWS, 2, NULL } },
	{ "native.modules", { LAKE_ROWS, 2, NULL } },
	{ "native.samples", { LAKE_ROWS, 2, "pid, tid, ts_ns" } },
	{ "python.frames", { LAKE_ROWS, 2, NULL } },
	{ "python.samples", { LAKE_ROWS, 2, "pid, tid, ts_ns" } },
	{ "python.torch_trace", { LAKE_ROWS, 2, "pid, ts_ns" } },
	{ "python.variables", { LAKE_ROWS, 2, "pid, ts_ns" } },
	{ "trace.zones", { LAKE_ROWS, 2, "pid, start_ns" } },
};

static bool is_own_table(const char *schema, const char *name)
{
	for (size_t i = 0; i < catalog_view_count; i++)
		if (!strcmp(catalog_views[i].schema, schema) &&
		    !strcmp(catalog_views[i].name, name))
			return true;
	return false;
}

struct lake_plan lake_plan_of(const char *schema, const char *name)
{
	char table[160];

	snprintf(table, sizeof(table), "%s.%s", schema, name);
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		if (!strcmp(plans[i].table, table))
			return plans[i].plan;
	if (is_own_table(schema, name))
		return (struct lake_plan){ LAKE_LATER, LAKE_TIER_ALL, NULL };
	return (struct lake_plan){ LAKE_ROWS, LAKE_TIER_ALL, NULL };
}
