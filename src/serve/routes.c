#include <string.h>

#include "serve/serve_inside.h"

/* A path that ends with / matches all paths below it. A route without an answer is the event
   stream. */
static const struct route routes[] = {
	{ "/", "GET", WORKERS_FAST, answer_page, NULL },
	{ "/assets/", "GET", WORKERS_FAST, answer_asset, NULL },
	{ "/metrics", "GET", WORKERS_FAST, answer_metrics, NULL },
	{ "/api/targets", "GET", WORKERS_FAST, answer_targets, NULL },
	{ "/api/run", "GET", WORKERS_SLOW, answer_run, NULL },
	{ "/api/range", "GET", WORKERS_SLOW, answer_range, NULL },
	{ "/api/zones", "GET", WORKERS_FAST, answer_zones, NULL },
	{ "/api/map", "GET", WORKERS_FAST, answer_map, NULL },
	{ "/api/joins", "GET", WORKERS_SLOW, answer_joins, NULL },
	{ "/api/flame", "GET", WORKERS_SLOW, answer_flame, NULL },
	{ "/api/name", "GET", WORKERS_FAST, answer_name, NULL },
	{ "/api/source", "GET", WORKERS_SLOW, answer_source, NULL },
	{ "/api/query", "POST", WORKERS_QUERIES, answer_query, running_queries_enter },
	{ "/api/cancel", "POST", WORKERS_FAST, answer_cancel, NULL },
	{ "/api/schema", "GET", WORKERS_SLOW, answer_schema, NULL },
	{ "/api/tail", "GET", WORKERS_FAST, NULL, NULL },
	{ "/api/backtrace", "GET", WORKERS_SLOW, answer_backtrace, NULL },
	{ "/api/config", "GET", WORKERS_SLOW, answer_config, NULL },
	{ "/api/config", "POST", WORKERS_SLOW, answer_config, NULL },
	{ "/api/report", "GET", WORKERS_SLOW, answer_report, NULL },
	{ "/api/compare", "GET", WORKERS_SLOW, answer_compare, NULL },
	{ "/api/export", "GET", WORKERS_SLOW, answer_export, NULL },
};

static bool matches(const struct route *route, const char *path)
{
	size_t bytes = strlen(route->path);

	if (bytes > 1 && route->path[bytes - 1] == '/')
		return !strncmp(path, route->path, bytes);
	return !strcmp(path, route->path);
}

const struct route *routes_find(const char *path, const char *method, bool *other_method)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (!matches(&routes[i], path))
			continue;
		if (!strcmp(routes[i].method, method))
			return &routes[i];
		*other_method = true;
	}
	return NULL;
}
