#include "base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <kymo/atomic.h>

#define SECONDS_MOST 86400u
#define SECONDS_LEAST_NS 100000u /* a shorter period is a mistake, or an attack on our CPU time */
#define TRIES 8 /* to read a text that is being written */

#define AT(member) offsetof(struct kymo_control, member)
#define BYTES(member) sizeof(((struct kymo_control *)0)->member)

const struct settings_key settings_keys[] = {
	{ "sample_rate", SETTINGS_SECONDS, SETTINGS_COLLECTOR, AT(sample_period_ns), 1, 0, "0.1",
	  "seconds between Python stack samples, or adaptive; 0: off" },
	{ "system_rate", SETTINGS_SECONDS, SETTINGS_COLLECTOR, AT(system_period_ns), 0, 0, "1",
	  "seconds between rows of system metrics; 0: off" },
	{ "zones", SETTINGS_SWITCH, SETTINGS_PROGRAM, AT(on), KYMO_ON_ZONES, 0, "on",
	  "zones, regions, marks, counters, steps and user tables" },
	{ "python", SETTINGS_SWITCH, SETTINGS_PROGRAM, AT(on), KYMO_ON_PYTHON, 0, "off",
	  "every Python call" },
	{ "gc", SETTINGS_SWITCH, SETTINGS_PROGRAM, AT(on), KYMO_ON_GC, 0, "off",
	  "garbage collections of Python" },
	{ "torch", SETTINGS_SWITCH, SETTINGS_PROGRAM, AT(on), KYMO_ON_TORCH, 0, "off",
	  "forward and backward of torch modules, optimizer steps" },
	{ "torch_modules", SETTINGS_TEXT, SETTINGS_PROGRAM, AT(torch_modules), BYTES(torch_modules),
	  0, "", "modules to record, as a pattern: layers.*.attn" },
	{ "torch_every", SETTINGS_COUNT, SETTINGS_PROGRAM, AT(torch_every), 1, 1000000000, "1",
	  "record modules in every Nth step" },
	{ "device", SETTINGS_SWITCH, SETTINGS_PROGRAM, AT(on), KYMO_ON_DEVICE, 0, "off",
	  "operations of devices" },
	{ "memory", SETTINGS_SWITCH, SETTINGS_PROGRAM, AT(on), KYMO_ON_ALLOC, 0, "off",
	  "allocations" },
	{ "memory_exact", SETTINGS_SWITCH, SETTINGS_PROGRAM, AT(on), KYMO_ON_ALLOC_EXACT, 0, "off",
	  "every allocation instead of samples" },
	{ "watch", SETTINGS_TEXT, SETTINGS_PROGRAM, AT(watch), BYTES(watch), 0, "",
	  "variables to record: loss@train_step,lr@train_step" },
	{ "locals", SETTINGS_FLAG, SETTINGS_COLLECTOR, AT(locals), 0, 0, "off",
	  "samples may read local variables" },
	{ "ring_rows", SETTINGS_COUNT, SETTINGS_NEW_STREAMS, AT(ring_rows), 1, 100000000, "10000",
	  "rows per stream with keep=flight" },
	{ "keep", SETTINGS_KEEP, SETTINGS_NEW_STREAMS, AT(keep), 0, 0, "flight",
	  "flight: the last ring_rows; all: within the budget" },
	{ "torch_ops", SETTINGS_EVERY, SETTINGS_PROGRAM, AT(torch_ops), 0, SETTINGS_OPS_EVERY,
	  "off", "torch operators in every Nth step, or all; on: 64" },
	{ "python_limit", SETTINGS_COUNT, SETTINGS_PROGRAM, AT(python_limit), 0, 1000000, "0",
	  "millionths of the time for Python calls; 0: no limit" },
	{ 0 },
};

/* ---- names ----------------------------------------------------------------------------------- */

const char *settings_bare_name(const char *name)
{
	static const char *const prefixes[] = { "kymo.", "probing." };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return name + strlen(prefixes[i]);
	return name;
}

const struct settings_key *settings_find(const char *name)
{
	name = settings_bare_name(name);
	for (const struct settings_key *key = settings_keys; key->name; key++)
		if (!strcmp(key->name, name))
			return key;
	return NULL;
}

void settings_variable(const struct settings_key *key, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "KYMO_%s", key->name);
	for (char *c = out; *c; c++)
		*c = (char)toupper((unsigned char)*c);
}

/* ---- texts to values and back ---- */

/* Digits and a fraction after a point, in any locale; nanoseconds. False: not a number. */
static bool parse_decimal(const char *text, uint64_t *out_ns)
{
	uint64_t whole = 0, fraction = 0, place = 1000000000u;
	bool digits = false;

	for (; isdigit((unsigned char)*text) && whole <= SECONDS_MOST; text++, digits = true)
		whole = whole * 10 + (uint64_t)(*text - '0');
	if (*text == '.')
		for (text++; isdigit((unsigned char)*text); text++, digits = true) {
			place /= 10;
			fraction += (uint64_t)(*text - '0') * place;
		}
	*out_ns = whole * 1000000000u + fraction;
	return digits && !*text && *out_ns <= SECONDS_MOST * 1000000000ull;
}

static int parse_seconds(const struct settings_key *key, const char *text, uint64_t *out,
			 struct kymo_error *err)
{
	if (key->detail && !strcasecmp(text, "adaptive")) {
		*out = SETTINGS_ADAPTIVE;
		return 0;
	}
	if (!parse_decimal(text, out))
		return error_set(err, EINVAL,
				 "expected a number of seconds from 0 (off) to %u, for example 0.1",
				 SECONDS_MOST);
	if (*out && *out < SECONDS_LEAST_NS)
		return error_set(err, EINVAL,
				 "the shortest period is 0.0001 seconds; 0 turns it off");
	return 0;
}

static int parse_switch(const char *text, uint64_t *out, struct kymo_error *err)
{
	static const char *const words[] = { "off", "on", "0", "1", "false", "true", "no", "yes" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(words[i], text)) {
			*out = i % 2;
			return 0;
		}
	return error_set(err, EINVAL, "expected on or off");
}

static int parse_count(const struct settings_key *key, const char *text, uint64_t *out,
		       struct kymo_error *err)
{
	size_t digits = strspn(text, "0123456789");

	*out = digits && digits < 12 ? strtoull(text, NULL, 10) : 0;
	if (text[digits] || *out < key->detail || *out > key->most)
		return error_set(err, EINVAL, "expected a whole number from %u to %u", key->detail,
				 key->most);
	return 0;
}

static int parse_every(const struct settings_key *key, const char *text, uint64_t *out,
		       struct kymo_error *err)
{
	size_t digits = strspn(text, "0123456789");

	if (!strcasecmp(text, "off") || !strcasecmp(text, "on") || !strcasecmp(text, "all")) {
		*out = !strcasecmp(text, "on") ? key->most : !strcasecmp(text, "all");
		return 0;
	}
	*out = digits && digits < 10 ? strtoull(text, NULL, 10) : UINT64_MAX;
	if (text[digits] || *out > 1000000)
		return error_set(err, EINVAL,
				 "expected off, on, all or a number of steps, at most "
				 "1000000");
	return 0;
}

static int parse_keep(const char *text, uint64_t *out, struct kymo_error *err)
{
	*out = !strcasecmp(text, "all") ? KYMO_KEEP_ALL : KYMO_KEEP_FLIGHT;
	if (*out == KYMO_KEEP_FLIGHT && strcasecmp(text, "flight") != 0)
		return error_set(err, EINVAL, "expected all or flight");
	return 0;
}

static int parse_text(const struct settings_key *key, const char *text, struct settings_value *out,
		      struct kymo_error *err)
{
	size_t bytes = strlen(text);

	if (bytes >= key->detail)
		return error_set(err, EINVAL, "expected at most %u bytes", key->detail - 1);
	for (size_t i = 0; i < bytes; i++)
		if (iscntrl((unsigned char)text[i]))
			return error_set(err, EINVAL, "expected a text without control characters");
	memcpy(out->text, text, bytes);
	return 0;
}

int settings_parse(const struct settings_key *key, const char *text, struct settings_value *out,
		   struct kymo_error *err)
{
	memset(out, 0, sizeof(*out));
	switch (key->type) {
	case SETTINGS_SECONDS: return parse_seconds(key, text, &out->number, err);
	case SETTINGS_SWITCH:
	case SETTINGS_FLAG: return parse_switch(text, &out->number, err);
	case SETTINGS_COUNT: return parse_count(key, text, &out->number, err);
	case SETTINGS_KEEP: return parse_keep(text, &out->number, err);
	case SETTINGS_EVERY: return parse_every(key, text, &out->number, err);
	case SETTINGS_TEXT: return parse_text(key, text, out, err);
	default: return error_set(err, EINVAL, "this key cannot be set");
	}
}

/* "0.1", "1", "86400": without trailing zeros, and with a point in any locale. */
static void format_seconds(uint64_t ns, char *out, size_t out_bytes)
{
	int length;

	if (ns == SETTINGS_ADAPTIVE) {
		snprintf(out, out_bytes, "adaptive");
		return;
	}
	length = snprintf(out, out_bytes, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
			  (unsigned long long)(ns % 1000000000u));

	for (length--; length > 0 && out[length] == '0'; length--)
		out[length] = '\0';
	if (length > 0 && out[length] == '.')
		out[length] = '\0';
}

static void format_every(uint64_t every, char *out, size_t out_bytes)
{
	if (every < 2)
		snprintf(out, out_bytes, "%s", every ? "all" : "off");
	else
		snprintf(out, out_bytes, "%llu", (unsigned long long)every);
}

void settings_format(const struct settings_key *key, const struct settings_value *value, char *out,
		     size_t out_bytes)
{
	switch (key->type) {
	case SETTINGS_SECONDS: format_seconds(value->number, out, out_bytes); break;
	case SETTINGS_SWITCH:
	case SETTINGS_FLAG: snprintf(out, out_bytes, "%s", value->number ? "on" : "off"); break;
	case SETTINGS_KEEP: snprintf(out, out_bytes, "%s", value->number ? "all" : "flight"); break;
	case SETTINGS_TEXT: snprintf(out, out_bytes, "%s", value->text); break;
	case SETTINGS_EVERY: format_every(value->number, out, out_bytes); break;
	default: snprintf(out, out_bytes, "%llu", (unsigned long long)value->number); break;
	}
}

bool settings_equal(const struct settings_key *key, const struct settings_value *a,
		    const struct settings_value *b)
{
	return key->type == SETTINGS_TEXT ? !strcmp(a->text, b->text) : a->number == b->number;
}

/* ---- the page ---- */

static void settings_copy_text(const struct settings_key *key, const struct kymo_control *control,
			       char *out)
{
	const char *from = (const char *)control + key->offset;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = kymo__load_acquire(&control->config_changes);

		for (uint32_t k = 0; k < key->detail; k++)
			out[k] = kymo__load_relaxed(from + k);
		kymo__fence_acquire();
		if (!(before & 1) && before == kymo__load_relaxed(&control->config_changes))
			break; /* otherwise takes what is there: the writer may have died */
	}
	out[key->detail - 1] = '\0';
}

static uint64_t load_number(const struct settings_key *key, const struct kymo_control *control)
{
	const char *at = (const char *)control + key->offset;
	uint32_t word;

	if (key->type == SETTINGS_SECONDS)
		return kymo__load_relaxed((const uint64_t *)(const void *)at);
	word = kymo__load_relaxed((const uint32_t *)(const void *)at);
	return key->type == SETTINGS_SWITCH ? (word & key->detail) != 0 : word;
}

void settings_load(const struct settings_key *key, const struct kymo_control *control,
		   struct settings_value *out)
{
	struct settings_value seen = { 0 };
	char text[SETTINGS_TEXT_BYTES + 32];

	if (key->type == SETTINGS_TEXT)
		settings_copy_text(key, control, seen.text);
	else
		seen.number = load_number(key, control);
	settings_format(key, &seen, text, sizeof(text));
	if (settings_parse(key, text, out, NULL))
		settings_parse(key, key->initial, out, NULL);
}

static void store_word(const struct settings_key *key, uint32_t *word, uint32_t value)
{
	if (key->type != SETTINGS_SWITCH)
		kymo__store_release(word, value);
	else if (value)
		kymo__fetch_or_release(word, key->detail);
	else
		kymo__fetch_and_release(word, ~key->detail);
}

uint64_t settings_bit(const struct settings_key *key)
{
	return 1ull << (key - settings_keys);
}

void settings_store(const struct settings_key *key, struct kymo_control *control,
		    const struct settings_value *value)
{
	uint64_t *changes = &control->config_changes;
	uint64_t now = kymo__load_relaxed(changes) | 1;
	char *at = (char *)control + key->offset;

	kymo__store_relaxed(changes, now);
	kymo__fence_release();
	if (key->type == SETTINGS_TEXT)
		for (uint32_t i = 0; i < key->detail; i++)
			kymo__store_relaxed(at + i, value->text[i]);
	else if (key->type == SETTINGS_SECONDS)
		kymo__store_release((uint64_t *)(void *)at, value->number);
	else
		store_word(key, (uint32_t *)(void *)at, (uint32_t)value->number);
	kymo__fetch_or_relaxed(&control->config_changed, settings_bit(key));
	kymo__store_release(changes, now + 1);
}

/* KYMO_PYTHON has values that a switch does not (partial, lines, c-calls); the Python front end
   reads and checks them. */
static bool has_words_of_its_own(const struct settings_key *key)
{
	return !strcmp(key->name, "python");
}

static void set_from_environment(const struct settings_key *key, struct kymo_control *control,
				 void (*complain)(const char *sentence))
{
	struct kymo_error err = { 0 };
	struct settings_value value;
	char variable[48], initial[48] = "", sentence[512];
	const char *word;

	settings_variable(key, variable, sizeof(variable));
	word = secure_getenv(variable);
	if (!word || !*word)
		return;
	if (!settings_parse(key, word, &value, &err)) {
		settings_store(key, control, &value);
		return;
	}
	if (has_words_of_its_own(key))
		return;
	snprintf(initial, sizeof(initial), key->initial[0] ? "stays %s" : "stays empty",
		 key->initial);
	snprintf(sentence, sizeof(sentence), "%s=%.100s: %.200s; %s %s", variable, word, err.text,
		 key->name, initial);
	for (char *c = sentence; *c; c++)
		*c = iscntrl((unsigned char)*c) ? '?' : *c;
	complain(sentence);
}

void settings_begin(struct kymo_control *control, void (*complain)(const char *sentence))
{
	struct settings_value value;

	for (const struct settings_key *key = settings_keys; key->name; key++) {
		settings_parse(key, key->initial, &value, NULL);
		settings_store(key, control, &value);
		set_from_environment(key, control, complain);
	}
	control->config_changes = 0;
	control->config_changed = 0;
}

bool settings_is_set(const struct settings_key *key, const struct kymo_control *control)
{
	char variable[48];
	const char *word;

	if (kymo__load_relaxed(&control->config_changed) & settings_bit(key))
		return true;
	settings_variable(key, variable, sizeof(variable));
	word = secure_getenv(variable);
	return word && *word;
}

void settings_inherit(struct kymo_control *to, const struct kymo_control *from)
{
	struct settings_value value;

	for (const struct settings_key *key = settings_keys; key->name; key++)
		if (from->config_changed & settings_bit(key)) {
			settings_load(key, from, &value);
			settings_store(key, to, &value);
		}
	to->config_changes = 0;
}

void settings_copy(struct kymo_control *to, const struct kymo_control *from)
{
	struct settings_value value;

	for (const struct settings_key *key = settings_keys; key->name; key++) {
		settings_load(key, from, &value);
		settings_store(key, to, &value);
	}
	to->config_changes = 0;
	to->config_changed = from->config_changed;
}
