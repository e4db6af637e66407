#include "itt.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096u

/* Lists without a lock: entries are added at the front and stay. Two threads that create one name
   at once may create it twice, with the same id. */
static struct itt_domain *domains;
static struct itt_string *strings[BUCKETS];
static uint32_t domain_count;

static uint32_t itt_names_hash(const char *text)
{
	uint32_t hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

struct itt_domain *itt_domain_create(const char *name)
{
	struct itt_domain *domain;

	name = name ? name : "";
	for (domain = kymo__load_acquire(&domains); domain; domain = domain->next)
		if (!strcmp(domain->name, name))
			return domain;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return NULL; /* the program's macros check it */
	domain->name = strdup(name);
	if (!domain->name) {
		free(domain);
		return NULL;
	}
	domain->flags = 1;
	/* 25 bits; domains that share a number end each other's tasks if they do not nest. */
	domain->extra1 = (int)(kymo__add_fetch_relaxed(&domain_count, 1) & 0x1ffffffu);
	domain->next = kymo__load_relaxed(&domains);
	while (!kymo__cas_weak_release(&domains, &domain->next, domain))
		;
	return domain;
}

struct itt_string *itt_string_create(const char *text)
{
	struct itt_string **bucket, *string;

	text = text ? text : "";
	bucket = &strings[itt_names_hash(text) % BUCKETS];
	for (string = kymo__load_acquire(bucket); string; string = string->next)
		if (!strcmp(string->text, text))
			return string;
	string = calloc(1, sizeof(*string));
	if (!string)
		return NULL;
	string->text = strdup(text);
	if (!string->text) {
		free(string);
		return NULL;
	}
	string->next = kymo__load_relaxed(bucket);
	while (!kymo__cas_weak_release(bucket, &string->next, string))
		;
	return string;
}

uint32_t itt_name(const char *text, const char *domain)
{
	return kymo_name_full(text, strlen(text), domain, strlen(domain), 0, KYMO_SOURCE_ITT, 0);
}

/* The name of tasks for which the table of names has no place; interned at the first task of the
   domain, while it has. */
static uint32_t itt_name_other(const struct itt_domain *domain, const char *in)
{
	void **kept = (void **)(uintptr_t)&domain->extra2; /* the collector's */
	uintptr_t id = (uintptr_t)kymo__load_relaxed(kept);

	if (!id) {
		id = itt_name("(other names)", in);
		kymo__store_relaxed(kept, (void *)id);
	}
	return (uint32_t)id;
}

/* The first domain keeps its id in the string; others look it up each time. */
uint32_t itt_name_slow(const struct itt_domain *domain, struct itt_string *string)
{
	const char *in = domain->name ? domain->name : "";
	uint32_t other = itt_name_other(domain, in);
	uint32_t id = itt_name(string && string->text ? string->text : in, in);
	const void *first = NULL;

	id = id ? id : other;
	if (!id || !string)
		return id;
	if (kymo__cas_acq_rel_acquire(&string->extra2, &first, (const void *)domain) ||
	    first == domain)
		kymo__store_relaxed(&string->extra1, (int)id);
	return id;
}
