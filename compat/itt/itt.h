/*
 * libkymo_itt.so: a collector for Intel's ITT API. Programs that are marked with it contain a
 * static part, which loads the library of INTEL_LIBITTNOTIFY64 at the first call and passes its
 * table of functions to __itt_api_init(). Each library of a program has such a part, and calls
 * it.
 *
 *	itt_api.c     the entry, the table
 *	itt_names.c   domains and strings, and the ids of their names
 *	itt_tasks.c   tasks, overlapped tasks, regions, frames, events
 *	itt_values.c  metadata, counters, markers, threads, time
 *
 * The structs are those of the ABI, version 3, as far as they are used.
 */
#ifndef KYMO_ITT_H
#define KYMO_ITT_H

#include <kymo/kymo.h>

struct itt_domain {
	volatile int flags; /* 0: disabled; the program checks it */
	const char *name;
	void *name_wide;
	int extra1; /* extra fields are the collector's; here: a number for KYMO_OPEN_* flags */
	void *extra2; /* here: the id of a name without a place */
	struct itt_domain *next;
};

struct itt_string {
	const char *text;
	void *text_wide;
	int extra1; /* the id of the name in the domain extra2; 0: not known yet; atomic */
	const void *extra2; /* the first domain in which it was used; atomic */
	struct itt_string *next;
};

struct itt_id {
	unsigned long long d1, d2, d3; /* all 0: none */
};

enum itt_type {
	ITT_U64 = 1,
	ITT_S64,
	ITT_U32,
	ITT_S32,
	ITT_U16,
	ITT_S16,
	ITT_FLOAT,
	ITT_DOUBLE,
};

struct itt_counter; /* opaque to the program */
struct itt_clock; /* a clock of the program: its times are not used */

/* A row of the collector's table: a name without its prefix __itt_, and the function. */
struct itt_function {
	const char *name;
	void *function;
};
extern const struct itt_function itt_tasks[], itt_values[]; /* each ends with NULL */

struct itt_domain *itt_domain_create(const char *name);
struct itt_string *itt_string_create(const char *text);
/* The id of the name; 0 while recording is off. string NULL: the domain's own name. */
uint32_t itt_name_slow(const struct itt_domain *domain, struct itt_string *string);
uint32_t itt_name(const char *text, const char *domain);

static inline uint32_t itt_name_of(const struct itt_domain *domain, struct itt_string *string)
{
	if (KYMO__LIKELY(string && kymo__load_acquire(&string->extra2) == domain &&
			 kymo__load_relaxed(&string->extra1)))
		return (uint32_t)kymo__load_relaxed(&string->extra1);
	return itt_name_slow(domain, string);
}

/* The range of an open overlapped task, region or frame; 0: none. */
uint64_t itt_range_of(struct itt_id id);

#endif
