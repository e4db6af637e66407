#include <string.h>

#include "serve/serve_inside.h"

/* A path that ends with / matches all paths below it. A route without an answer is the event
   stream. */
static const struct route routes[] = {
	{ "/", "GET", false, answer_page, NULL },
	{ "/assets/", "GET", false, answer_asset, NULL },
	{ "/api/targets", "GET", false, answer_targets, NULL },
	{ "/api/run", "GET", true, answer_run, NULL },
	{ "/api/range", "GET", true, answer_range, NULL },
	{ "/api/zones", "GET", false, answer_zones, NULL },
	{ "/api/flame", "GET", true, answer_flame, NULL },
	{ "/api/name", "GET", false, answer_name, NULL },
	{ "/api/query", "POST", true, answer_query, running_queries_enter },
	{ "/api/cancel", "POST", false, answer_cancel, NULL },
	{ "/api/schema", "GET", true, answer_schema, NULL },
	{ "/api/tail", "GET", false, NULL, NULL },
	{ "/api/backtrace", "GET", true, answer_backtrace, NULL },
	{ "/api/config", "GET", true, answer_config, NULL },
	{ "/api/config", "POST", true, answer_config, NULL },
	{ "/api/report", "GET", true, answer_report, NULL },
	{ "/api/compare", "GET", true, answer_compare, NULL },
	{ "/api/export", "GET", true, answer_export, NULL },
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
