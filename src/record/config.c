/* Settings changed by the program itself; `kymo config` changes them from outside
   (collect/run/configure.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "record/record.h"

static void take_text(char *out, size_t out_bytes, const char *text)
{
	memcpy(out, text, kymo__utf8_cut(text, strlen(text), out_bytes - 1));
}

void kymo__config_row(const char *key, const char *old_value, const char *new_value, const char *by)
{
	struct schema_config_row row;

	memset(&row, 0, sizeof(row));
	row.ts_ticks = kymo__ticks();
	take_text(row.key, sizeof(row.key), key);
	take_text(row.old_value, sizeof(row.old_value), old_value);
	take_text(row.new_value, sizeof(row.new_value), new_value);
	take_text(row.by, sizeof(row.by), by);
	/* Also while nothing is on: settings turn things on. */
	if (kymo__process_ready())
		kymo__push(&kymo__tables[SCHEMA_CONFIG], &row);
}

int kymo__configure(const char *name, const char *text, const char *by, struct kymo_error *err)
{
	const struct settings_key *key = settings_find(name);
	struct settings_value old, value;
	char old_text[SETTINGS_TEXT_BYTES], new_text[SETTINGS_TEXT_BYTES];
	int rc;

	if (!key)
		return error_set(err, EINVAL, "there is no setting %s", name);
	rc = settings_parse(key, text, &value, err);
	if (rc)
		return rc;
	if (!kymo__process_ready())
		return error_set(err, EAGAIN, "recording is off; call kymo_enable() first");
	settings_load(key, kymo__process.control, &old);
	if (settings_equal(key, &old, &value))
		return 0;
	settings_store(key, kymo__process.control, &value);
	settings_format(key, &old, old_text, sizeof(old_text));
	settings_format(key, &value, new_text, sizeof(new_text));
	kymo__config_row(key->name, old_text, new_text, by);
	return 0;
}
