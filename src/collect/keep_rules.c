#include "collect/keep_rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Words for tables that belong together. Frames of stacks are not among them: rows that stay need
   them. */
static const struct {
	const char *word, *tables, *also;
} words[] = {
	{ "zones", "trace.zones", "trace.zone_text" },
	{ "steps", "trace.steps", "" },
	{ "counters", "trace.counters", "python.variables" },
	{ "samples", "python.samples", "native.samples" },
	{ "metrics", "host.*", "device.memory" },
	{ "torch", "python.torch_trace", "torch.ops" },
	{ "device", "device.ops", "" },
	{ "collectives", "dist.collectives", "" },
};

static bool keep_matches(const char *pattern, const char *table)
{
	size_t bytes = strlen(pattern);

	if (bytes && pattern[bytes - 1] == '*')
		return !strncmp(pattern, table, bytes - 1);
	return !strcmp(pattern, table);
}

int keep_rules_find(const struct keep_rules *rules, const char *table)
{
	for (unsigned i = 0; i < rules->count; i++)
		if (keep_matches(rules->list[i].tables, table) ||
		    keep_matches(rules->list[i].also, table))
			return (int)i;
	return -1;
}

static bool fill_tables(struct keep_rule *rule, const char *name, size_t bytes)
{
	if (!bytes || bytes >= sizeof(rule->tables))
		return false;
	memcpy(rule->tables, name, bytes);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(rule->tables, words[i].word)) {
			strcpy(rule->tables, words[i].tables);
			strcpy(rule->also, words[i].also);
			return true;
		}
	return strchr(rule->tables, '.') != NULL;
}

/* "10m" is minutes, "10M" megabytes. */
static bool fill_limit(struct keep_rule *rule, const char *text, size_t bytes)
{
	static const struct {
		char unit;
		uint64_t ns, bytes;
	} units[] = {
		{ 's', 1, 0 },		{ 'm', 60, 0 },		{ 'h', 3600, 0 },
		{ 'd', 86400, 0 },	{ 'w', 604800, 0 },	{ 'M', 0, 1ull << 20 },
		{ 'G', 0, 1ull << 30 }, { 'T', 0, 1ull << 40 },
	};
	size_t digits = strspn(text, "0123456789");
	uint64_t number = digits && digits < 7 ? strtoull(text, NULL, 10) : 0;

	if (bytes == 3 && !strncmp(text, "all", 3)) {
		rule->all = true;
		return !rule->age_ns && !rule->bytes;
	}
	if (!number || digits + 1 != bytes || rule->all)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (text[digits] == units[i].unit) {
			uint64_t *limit = units[i].ns ? &rule->age_ns : &rule->bytes;

			*limit = number *
				 (units[i].ns ? units[i].ns * 1000000000u : units[i].bytes);
			return true;
		}
	return false;
}

/* "zones=10m" */
static bool keep_take_part(struct keep_rules *rules, const char *part, size_t bytes)
{
	const char *equals = memchr(part, '=', bytes);
	struct keep_rule fresh = { .all = false }, *rule = &fresh;
	int found;

	if (!equals || !fill_tables(&fresh, part, (size_t)(equals - part)))
		return false;
	found = keep_rules_find(rules, fresh.tables);
	if (found >= 0)
		rule = &rules->list[found];
	if (!fill_limit(rule, equals + 1, bytes - (size_t)(equals + 1 - part)))
		return false;
	if (found >= 0)
		return true;
	if (rules->count == KEEP_RULES_MOST)
		return false;
	rules->list[rules->count++] = fresh;
	return true;
}

int keep_rules_parse(const char *text, struct keep_rules *rules, struct kymo_error *err)
{
	struct keep_rules wanted = { .count = 0 };
	const char *part = text;

	for (;;) {
		size_t bytes = strcspn(part, ",");

		if (!keep_take_part(&wanted, part, bytes))
			return error_set(
				err, EINVAL,
				"\"%.*s\" is not TABLE=LIMIT, such as zones=10m, steps=all, "
				"samples=2G or app.requests=1w",
				(int)bytes, part);
		if (!part[bytes])
			break;
		part += bytes + 1;
	}
	*rules = wanted;
	return 0;
}
