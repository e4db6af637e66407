#include "collect/keep_rules.h"

#include "collect/move/thin.h"

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

/* "10ms", "1s", "1m", "1h"; 0: none of these */
static uint64_t period_of(const char *text, size_t bytes)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{ "ms", 1000000u },
		{ "s", 1000000000u },
		{ "m", 60000000000u },
		{ "h", 3600000000000u },
	};
	size_t digits = strspn(text, "0123456789");
	uint64_t number = digits && digits < 7 ? strtoull(text, NULL, 10) : 0;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (digits < bytes && bytes - digits == strlen(units[i].unit) &&
		    !strncmp(text + digits, units[i].unit, bytes - digits))
			return number * units[i].ns;
	return 0;
}

/* Only samples and metrics have a rate of their own. */
static bool has_rate(const struct keep_rule *rule)
{
	return strstr(rule->tables, ".samples") || !strncmp(rule->tables, "host.", 5);
}

static bool can_be_thinned(const struct keep_rule *rule)
{
	return !strcmp(rule->tables, "host.*") || thin_knows(rule->tables);
}

/* The limit of the rule becomes its next level. */
static bool level_from_limit(struct keep_rule *rule, uint64_t period_ns)
{
	struct keep_level level = { rule->all ? KEEP_FOREVER : rule->age_ns, period_ns };
	const struct keep_level *last = rule->level_count ? &rule->levels[rule->level_count - 1]
							  : NULL;

	if (!level.age_ns || rule->bytes || rule->level_count == KEEP_LEVELS_MOST ||
	    (last && (level.age_ns <= last->age_ns || level.period_ns <= last->period_ns)))
		return false;
	rule->levels[rule->level_count++] = level;
	rule->all = false;
	rule->age_ns = 0;
	return true;
}

/* "1h:10ms", or a later "1w:1s" */
static bool take_level(struct keep_rule *rule, const char *text, size_t bytes)
{
	const char *colon = memchr(text, ':', bytes);
	size_t age_bytes = colon ? (size_t)(colon - text) : 0;
	uint64_t period_ns = colon ? period_of(colon + 1, bytes - age_bytes - 1) : 0;

	if (!period_ns || !can_be_thinned(rule) || (!rule->level_count && !has_rate(rule)))
		return false;
	return fill_limit(rule, text, age_bytes) && level_from_limit(rule, period_ns);
}

/* Continues the rule before it. Its first age may be without a period. */
static bool take_next_level(struct keep_rules *rules, const char *part, size_t bytes)
{
	struct keep_rule *rule = rules->count ? &rules->list[rules->count - 1] : NULL;

	if (!rule || (!rule->level_count && !level_from_limit(rule, 0)))
		return false;
	return take_level(rule, part, bytes);
}

/* "zones=10m" */
static bool keep_take_part(struct keep_rules *rules, const char *part, size_t bytes)
{
	const char *equals = memchr(part, '=', bytes);
	struct keep_rule fresh = { .all = false }, *rule = &fresh;
	int found;

	if (!equals)
		return take_next_level(rules, part, bytes);
	if (!fill_tables(&fresh, part, (size_t)(equals - part)))
		return false;
	found = keep_rules_find(rules, fresh.tables);
	if (found >= 0)
		rule = &rules->list[found];
	bytes -= (size_t)(equals + 1 - part);
	if (memchr(equals + 1, ':', bytes)) {
		if (found >= 0 || !take_level(rule, equals + 1, bytes))
			return false;
	} else if (rule->level_count || !fill_limit(rule, equals + 1, bytes)) {
		return false;
	}
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
				"samples=2G or app.requests=1w, nor AGE:PERIOD of samples, metrics "
				"or counters, such as samples=1h:10ms,1w:1s",
				(int)bytes, part);
		if (!part[bytes])
			break;
		part += bytes + 1;
	}
	*rules = wanted;
	return 0;
}

uint64_t keep_rules_first_period(const struct keep_rules *rules, const char *table)
{
	int found = keep_rules_find(rules, table);

	return found < 0 || !rules->list[found].level_count
		       ? 0
		       : rules->list[found].levels[0].period_ns;
}
