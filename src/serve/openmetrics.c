#include "serve/openmetrics.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"

static const struct {
	const char *name, *type, *help;
} openmetrics_families[] = {
#define OPENMETRICS_ROW(id, name, type, help) { name, type, help },
	OPENMETRICS_FAMILIES(OPENMETRICS_ROW)
#undef OPENMETRICS_ROW
};

static const char *const openmetrics_units[] = { "seconds", "bytes", "ratio", "watts" };

enum openmetrics_family openmetrics_find(const char *name)
{
	int i = 0;

	while (i < OPENMETRICS_COUNT && strcmp(openmetrics_families[i].name, name) != 0)
		i++;
	return (enum openmetrics_family)i;
}

static const char *openmetrics_unit(const char *name)
{
	const char *last = strrchr(name, '_');

	for (size_t i = 0; last && i < sizeof(openmetrics_units) / sizeof(openmetrics_units[0]);
	     i++)
		if (!strcmp(last + 1, openmetrics_units[i]))
			return openmetrics_units[i];
	return NULL;
}

void openmetrics_head(struct buf *out, enum openmetrics_family family)
{
	const char *name = openmetrics_families[family].name, *unit = openmetrics_unit(name);

	buf_print(out, "# TYPE %s %s\n", name, openmetrics_families[family].type);
	if (unit)
		buf_print(out, "# UNIT %s %s\n", name, unit);
	buf_print(out, "# HELP %s %s\n", name, openmetrics_families[family].help);
}

/* Controls are allowed in a value, but a terminal would obey them. */
static void openmetrics_escape(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			buf_text(out, "\\n");
		else if (*text == '"' || *text == '\\')
			buf_print(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			buf_print(out, "\\\\x%02x", (unsigned char)*text);
		else
			buf_char(out, *text);
	}
}

void openmetrics_label(struct buf *labels, const char *key, const char *value)
{
	char text[OPENMETRICS_LABEL_BYTES + 1];

	utf8_repair(value, strlen(value), text, sizeof(text));
	buf_print(labels, "%s%s=\"", labels->used ? "," : "", key);
	openmetrics_escape(labels, text);
	buf_char(labels, '"');
}

void openmetrics_part(struct buf *out, enum openmetrics_family family, const char *suffix,
		      const char *labels, double value)
{
	buf_print(out, "%s%s{%s} ", openmetrics_families[family].name, suffix, labels);
	if (isnan(value))
		buf_text(out, "NaN\n");
	else if (isinf(value))
		buf_text(out, value > 0 ? "+Inf\n" : "-Inf\n");
	else
		buf_print(out, "%.15g\n", value);
}

void openmetrics_sample(struct buf *out, enum openmetrics_family family, const char *labels,
			double value)
{
	bool counter = !strcmp(openmetrics_families[family].type, "counter");

	openmetrics_part(out, family, counter ? "_total" : "", labels, value);
}

/* The end of one label; NULL: it is none. */
static const char *after_label(const char *at)
{
	size_t key = strspn(at, "abcdefghijklmnopqrstuvwxyz_");

	if (!key || at[key] != '=' || at[key + 1] != '"')
		return NULL;
	for (at += key + 2; *at && *at != '"'; at++) {
		if ((unsigned char)*at < ' ')
			return NULL;
		if (*at == '\\' && !strchr("n\"\\", *++at))
			return NULL;
		if (!*at)
			return NULL;
	}
	return *at ? at + 1 : NULL;
}

bool openmetrics_are_labels(const char *text)
{
	const char *at = after_label(text);

	if (utf8_repaired_bytes(text, strlen(text)) != strlen(text))
		return false;
	while (at && *at == ',')
		at = after_label(at + 1);
	return at && !*at;
}
