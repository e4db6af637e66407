#include "itt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 1024
#define VALUES_MOST 64u

/* ---- metadata: the text "KEY=VALUE" of a task ------------------------------------------------ */

static bool is_none(struct itt_id id)
{
	return !id.d1 && !id.d2 && !id.d3;
}

/* Of the overlapped task or region with that id; any other id is that of the current task. */
static void itt_values_add_text(struct itt_id id, const char *text, size_t bytes)
{
	uint64_t range = is_none(id) ? 0 : itt_range_of(id);

	if (range)
		kymo_range_text(range, text, bytes);
	else
		kymo_zone_text(text, bytes);
}

static const char *itt_values_key(const struct itt_string *key)
{
	return key && key->text ? key->text : "";
}

static void metadata_str_add(const struct itt_domain *domain, struct itt_id id,
			     struct itt_string *key, const char *data, size_t bytes)
{
	char text[TEXT_BYTES];
	int length;

	(void)domain;
	if (!data || !kymo_enabled())
		return;
	bytes = bytes ? strnlen(data, bytes) : strlen(data);
	length = snprintf(text, sizeof(text), "%s=%.*s", itt_values_key(key),
			  (int)(bytes < TEXT_BYTES ? bytes : TEXT_BYTES), data);
	if (length > 0)
		itt_values_add_text(id, text,
				    (size_t)length < sizeof(text) ? (size_t)length
								  : sizeof(text) - 1);
}

static size_t itt_values_bytes(int type)
{
	switch (type) {
	case ITT_U64:
	case ITT_S64:
	case ITT_DOUBLE: return 8;
	case ITT_U32:
	case ITT_S32:
	case ITT_FLOAT: return 4;
	case ITT_U16:
	case ITT_S16: return 2;
	default: return 0;
	}
}

#define ITT_READ(kind) \
	__extension__({ \
		kind value_; \
		memcpy(&value_, at, sizeof(value_)); \
		value_; \
	})

static int print_value(char *out, size_t bytes, int type, const void *at)
{
	switch (type) {
	case ITT_U64: return snprintf(out, bytes, "%" PRIu64, ITT_READ(uint64_t));
	case ITT_S64: return snprintf(out, bytes, "%" PRId64, ITT_READ(int64_t));
	case ITT_U32: return snprintf(out, bytes, "%" PRIu32, ITT_READ(uint32_t));
	case ITT_S32: return snprintf(out, bytes, "%" PRId32, ITT_READ(int32_t));
	case ITT_U16: return snprintf(out, bytes, "%u", (unsigned int)ITT_READ(uint16_t));
	case ITT_S16: return snprintf(out, bytes, "%d", (int)ITT_READ(int16_t));
	case ITT_FLOAT: return snprintf(out, bytes, "%.9g", (double)ITT_READ(float));
	case ITT_DOUBLE: return snprintf(out, bytes, "%.17g", ITT_READ(double));
	default: return 0;
	}
}

static double number_of(int type, const void *at)
{
	switch (type) {
	case ITT_S64: return (double)ITT_READ(int64_t);
	case ITT_U32: return (double)ITT_READ(uint32_t);
	case ITT_S32: return (double)ITT_READ(int32_t);
	case ITT_U16: return (double)ITT_READ(uint16_t);
	case ITT_S16: return (double)ITT_READ(int16_t);
	case ITT_FLOAT: return (double)ITT_READ(float);
	case ITT_DOUBLE: return ITT_READ(double);
	default: return (double)ITT_READ(uint64_t);
	}
}

static void metadata_add(const struct itt_domain *domain, struct itt_id id, struct itt_string *key,
			 int type, size_t count, const void *data)
{
	char text[TEXT_BYTES];
	int used;

	(void)domain;
	if (!data || !itt_values_bytes(type) || !kymo_enabled())
		return;
	used = snprintf(text, sizeof(text), "%.512s=", itt_values_key(key));
	for (size_t i = 0; i < count && i < VALUES_MOST && used < TEXT_BYTES - 64; i++) {
		if (i)
			text[used++] = ',';
		used += print_value(text + used, sizeof(text) - (size_t)used, type,
				    (const char *)data + i * itt_values_bytes(type));
	}
	itt_values_add_text(id, text, (size_t)used);
}

/* ---- counters -------------------------------------------------------------------------------- */

struct itt_counter {
	const char *name, *domain;
	uint32_t id; /* 0: not known yet; atomic */
	int type;
	uint64_t sum; /* of inc and dec; atomic */
	struct itt_counter *next;
};

static struct itt_counter *counters; /* as the lists of itt_names.c */

static struct itt_counter *counter_new(const char *name, const char *domain, int type)
{
	struct itt_counter *counter = calloc(1, sizeof(*counter));
	char *own_name = strdup(name), *own_domain = strdup(domain);

	if (!counter || !own_name || !own_domain) {
		free(counter);
		free(own_name);
		free(own_domain);
		return NULL;
	}
	counter->type = type;
	counter->name = own_name;
	counter->domain = own_domain;
	return counter;
}

static struct itt_counter *counter_create_typed(const char *name, const char *domain, int type)
{
	struct itt_counter *counter;

	name = name ? name : "";
	domain = domain ? domain : "";
	for (counter = kymo__load_acquire(&counters); counter; counter = counter->next)
		if (counter->type == type && !strcmp(counter->name, name) &&
		    !strcmp(counter->domain, domain))
			return counter;
	counter = counter_new(name, domain, type);
	if (!counter)
		return NULL;
	counter->next = kymo__load_relaxed(&counters);
	while (!kymo__cas_weak_release(&counters, &counter->next, counter))
		;
	return counter;
}

static struct itt_counter *counter_create(const char *name, const char *domain)
{
	return counter_create_typed(name, domain, ITT_U64);
}

static void counter_write(struct itt_counter *counter, double value)
{
	uint32_t id = kymo__load_relaxed(&counter->id);

	if (!id) {
		id = itt_name(counter->name, counter->domain);
		kymo__store_relaxed(&counter->id, id);
	}
	kymo_counter_id(id, value);
}

static void counter_set(struct itt_counter *counter, const void *value)
{
	if (counter && value && kymo_enabled())
		counter_write(counter, number_of(counter->type, value));
}

static void counter_set_ex(struct itt_counter *counter, struct itt_clock *clock,
			   unsigned long long at, const void *value)
{
	(void)clock;
	(void)at;
	counter_set(counter, value);
}

/* Counted while recording is off, too. */
static void counter_add(struct itt_counter *counter, unsigned long long delta)
{
	uint64_t sum;

	if (!counter)
		return;
	sum = kymo__add_fetch_relaxed(&counter->sum, delta);
	if (kymo_enabled())
		counter_write(counter, (double)(int64_t)sum);
}

static void counter_subtract(struct itt_counter *counter, unsigned long long delta)
{
	counter_add(counter, 0 - delta);
}

static void counter_inc(struct itt_counter *counter)
{
	counter_add(counter, 1);
}

static void counter_dec(struct itt_counter *counter)
{
	counter_add(counter, ~0ull);
}

static void counter_add_v3(const struct itt_domain *domain, struct itt_string *name,
			   unsigned long long delta)
{
	if (domain)
		counter_add(counter_create(itt_values_key(name), domain->name), delta);
}

static void counter_subtract_v3(const struct itt_domain *domain, struct itt_string *name,
				unsigned long long delta)
{
	counter_add_v3(domain, name, 0 - delta);
}

static void counter_inc_v3(const struct itt_domain *domain, struct itt_string *name)
{
	counter_add_v3(domain, name, 1);
}

static void counter_dec_v3(const struct itt_domain *domain, struct itt_string *name)
{
	counter_add_v3(domain, name, ~0ull);
}

/* ---- markers, threads, time ------------------------------------------------------------------ */

static void itt_marker(const struct itt_domain *domain, struct itt_id id, struct itt_string *name,
		       int scope)
{
	(void)id;
	(void)scope;
	if (domain && kymo_enabled())
		kymo_mark(itt_values_key(name), domain->name);
}

static void marker_ex(const struct itt_domain *domain, struct itt_clock *clock,
		      unsigned long long at, struct itt_id id, struct itt_string *name, int scope)
{
	(void)clock;
	(void)at;
	itt_marker(domain, id, name, scope);
}

static void thread_set_name(const char *name)
{
	kymo_thread_name(name);
}

static int thr_name_set(const char *name, int bytes)
{
	(void)bytes;
	kymo_thread_name(name);
	return 0;
}

static unsigned long long get_timestamp(void)
{
	return kymo__ticks();
}

/* OpenCV alone asks for it, and marks nothing without. With it, OpenCV prints a warning on skipped
   events when the program ends: so only on request. */
static const char *api_version(void)
{
	const char *wanted = getenv("KYMO_OPENCV");

	return wanted && !strcmp(wanted, "on") ? "kymo, ITT API 3" : NULL;
}

const struct itt_function itt_values[] = {
	{ "domain_create", (void *)itt_domain_create },
	{ "string_handle_create", (void *)itt_string_create },
	{ "metadata_add", (void *)metadata_add },
	{ "metadata_str_add", (void *)metadata_str_add },
	{ "counter_create", (void *)counter_create },
	{ "counter_create_typed", (void *)counter_create_typed },
	{ "counter_set_value", (void *)counter_set },
	{ "counter_set_value_ex", (void *)counter_set_ex },
	{ "counter_inc", (void *)counter_inc },
	{ "counter_dec", (void *)counter_dec },
	{ "counter_inc_delta", (void *)counter_add },
	{ "counter_dec_delta", (void *)counter_subtract },
	{ "counter_inc_v3", (void *)counter_inc_v3 },
	{ "counter_dec_v3", (void *)counter_dec_v3 },
	{ "counter_inc_delta_v3", (void *)counter_add_v3 },
	{ "counter_dec_delta_v3", (void *)counter_subtract_v3 },
	{ "marker", (void *)itt_marker },
	{ "marker_ex", (void *)marker_ex },
	{ "thread_set_name", (void *)thread_set_name },
	{ "thr_name_set", (void *)thr_name_set },
	{ "get_timestamp", (void *)get_timestamp },
	{ "api_version", (void *)api_version },
	{ NULL, NULL },
};
