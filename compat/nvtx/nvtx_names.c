#include "nvtx.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MOST 4096u /* of a domain; then digits become '#' */
#define FOLDED_MOST 8192u /* then all names are one */
#define STRINGS_MOST 65536u /* of a domain */
#define DOMAINS_MOST 4096u
#define CATEGORIES_MOST 65536u
#define NAME_BYTES 1024u /* of longer texts this much is the name */
#define NUMBER_BITS 0x1ffffffu
#define BUCKETS 8192u
#define RECENT_BITS 10u

struct nvtx_category {
	struct nvtx_category *next;
	uint32_t number;
	char name[];
};

struct name_entry {
	struct name_entry *next;
	const struct nvtx_domain *domain;
	uint32_t category, epoch, hash, id, bytes;
	char text[];
};

/* Lists without a lock: entries are added at the front and stay. Two threads that add one text at
   once may add it twice, with the same id. */
struct nvtx_domain nvtx_default_domain = { .name = "", .number = 1 };
static struct nvtx_domain *domains;
static uint32_t domain_count = 1, category_count;
static struct nvtx_string *strings[BUCKETS];
static struct name_entry *names[BUCKETS];
/* By the address of a text: programs pass the same literals again. */
static struct name_entry *recent[1u << RECENT_BITS];

#define NAMES_ADD(list, entry) \
	do { \
		(entry)->next = kymo__load_relaxed(list); \
		while (!kymo__cas_weak_release((list), &(entry)->next, (entry))) \
			; \
	} while (0)

static uint32_t nvtx_names_hash(const char *text, size_t bytes)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return hash;
}

/* ---- domains ---- */

static struct nvtx_domain *domain_new(const char *name)
{
	struct nvtx_domain *domain = calloc(1, sizeof(*domain));

	if (!domain)
		return NULL;
	domain->name = strdup(name);
	if (!domain->name) {
		free(domain);
		return NULL;
	}
	/* Domains that share a number end each other's ranges if they do not nest. */
	domain->number = kymo__add_fetch_relaxed(&domain_count, 1) & NUMBER_BITS;
	NAMES_ADD(&domains, domain);
	return domain;
}

/* NULL, as a handle, is the default domain. */
struct nvtx_domain *nvtx_domain_create(const char *name)
{
	struct nvtx_domain *domain;

	name = name ? name : "";
	for (domain = kymo__load_acquire(&domains); domain; domain = domain->next)
		if (!strcmp(domain->name, name))
			return domain;
	return kymo__load_relaxed(&domain_count) < DOMAINS_MOST ? domain_new(name) : NULL;
}

/* ---- categories ---- */

/* The latest name of a number is the first in the list. */
void nvtx_category_name(struct nvtx_domain *domain, uint32_t category, const char *name)
{
	struct nvtx_category *entry;
	size_t bytes = name ? strnlen(name, NAME_BYTES) : 0;

	if (!name || kymo__add_fetch_relaxed(&category_count, 1) > CATEGORIES_MOST)
		return;
	domain = nvtx_domain_of(domain);
	entry = calloc(1, sizeof(*entry) + bytes + 1);
	if (!entry)
		return;
	entry->number = category;
	memcpy(entry->name, name, bytes);
	NAMES_ADD(&domain->categories, entry);
	kymo__add_fetch_relaxed(&domain->epoch, 1);
}

void nvtx_place(struct nvtx_text *out, const struct nvtx_domain *domain, uint32_t category)
{
	const struct nvtx_category *entry = kymo__load_acquire(&domain->categories);

	nvtx_text_init(out);
	nvtx_text_add(out, domain->name, strlen(domain->name));
	while (entry && entry->number != category)
		entry = entry->next;
	if (!category && !entry)
		return;
	if (out->bytes)
		nvtx_text_add(out, "/", 1);
	if (entry)
		nvtx_text_add(out, entry->name, strlen(entry->name));
	else
		nvtx_text_print(out, "%u", category);
}

/* ---- names ---- */

static struct name_entry *name_find(const struct nvtx_domain *domain, uint32_t category,
				    uint32_t epoch, const char *text, size_t bytes, uint32_t hash)
{
	struct name_entry *entry = kymo__load_acquire(&names[hash % BUCKETS]);

	for (; entry; entry = entry->next)
		if (entry->hash == hash && entry->domain == domain && entry->category == category &&
		    entry->epoch == epoch && entry->bytes == bytes &&
		    !memcmp(entry->text, text, bytes))
			return entry;
	return NULL;
}

static uint32_t name_intern(const struct nvtx_domain *domain, uint32_t category, const char *text,
			    size_t bytes)
{
	struct nvtx_text place;

	nvtx_place(&place, domain, category);
	return kymo_name_full(text, bytes, place.text, place.bytes, 0, KYMO_SOURCE_NVTX, 0);
}

/* NULL: no memory, or the table of names is full. */
static struct name_entry *name_add(struct nvtx_domain *domain, uint32_t category, uint32_t epoch,
				   const char *text, size_t bytes, uint32_t hash)
{
	uint32_t id = name_intern(domain, category, text, bytes);
	struct name_entry *entry = id ? calloc(1, sizeof(*entry) + bytes + 1) : NULL;

	if (!entry)
		return NULL;
	*entry = (struct name_entry){ .domain = domain,
				      .category = category,
				      .epoch = epoch,
				      .hash = hash,
				      .id = id,
				      .bytes = (uint32_t)bytes };
	memcpy(entry->text, text, bytes);
	NAMES_ADD(&names[hash % BUCKETS], entry);
	kymo__add_fetch_relaxed(&domain->names, 1);
	return entry;
}

/* A row of digits becomes one '#'. */
static size_t fold_digits(const char *text, size_t bytes, char *out)
{
	size_t count = 0;

	for (size_t i = 0; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9')
			out[count++] = text[i];
		else if (!count || out[count - 1] != '#')
			out[count++] = '#';
	}
	return count;
}

/* The entry of a text; adds it while the domain has fewer than `most` names. */
static struct name_entry *name_get(struct nvtx_domain *domain, uint32_t category, const char *text,
				   size_t bytes, uint32_t most)
{
	uint32_t epoch = kymo__load_relaxed(&domain->epoch);
	uint32_t hash = nvtx_names_hash(text, bytes) ^ category * 2654435761u;
	struct name_entry *entry = name_find(domain, category, epoch, text, bytes, hash);

	if (entry || kymo__load_relaxed(&domain->names) >= most)
		return entry;
	return name_add(domain, category, epoch, text, bytes, hash);
}

/* Interned at the first event of a domain, so that there is an id when the table is full. */
static uint32_t name_other(struct nvtx_domain *domain)
{
	static const char text[] = "(other names)";
	uint32_t id = kymo__load_relaxed(&domain->other);

	if (!id) {
		id = name_intern(domain, 0, text, sizeof(text) - 1);
		kymo__store_relaxed(&domain->other, id);
	}
	return id;
}

static struct nvtx_name name_slow(struct nvtx_domain *domain, uint32_t category, const char *text,
				  struct name_entry **out_entry)
{
	size_t bytes = strnlen(text, NAME_BYTES);
	uint32_t other = name_other(domain);
	struct name_entry *entry = name_get(domain, category, text, bytes, NAMES_MOST);
	struct nvtx_name name = { entry ? entry->id : 0, NULL };
	char folded[NAME_BYTES];

	if (text[bytes]) /* longer than a name */
		name.whole = text;
	else
		*out_entry = entry;
	if (entry)
		return name;
	entry = name_get(domain, category, folded, fold_digits(text, bytes, folded), FOLDED_MOST);
	name.id = entry ? entry->id : other;
	name.whole = text;
	return name;
}

struct nvtx_name nvtx_name_of(struct nvtx_domain *domain, uint32_t category, const char *text)
{
	const uint64_t mixed = (uintptr_t)text * 0x9e3779b97f4a7c15ull;
	struct name_entry **slot = &recent[mixed >> (64 - RECENT_BITS)];
	struct name_entry *entry = kymo__load_acquire(slot), *found = NULL;
	struct nvtx_name name = { 0, NULL };

	if (KYMO__LIKELY(entry && entry->domain == domain && entry->category == category &&
			 entry->epoch == kymo__load_relaxed(&domain->epoch) &&
			 !strcmp(entry->text, text))) {
		name.id = entry->id;
		return name;
	}
	name = name_slow(domain, category, text, &found);
	if (found)
		kymo__store_release(slot, found);
	return name;
}

/* Marks and counters share the limits of the domain's ranges. */
const char *nvtx_name_text(struct nvtx_domain *domain, const char *text, struct nvtx_text *folded)
{
	struct nvtx_name name = nvtx_name_of(domain, 0, text);
	size_t bytes = strnlen(text, NAME_BYTES);

	if (!name.whole)
		return text;
	if (name.id == kymo__load_relaxed(&domain->other))
		return "(other names)";
	nvtx_text_init(folded);
	folded->bytes = fold_digits(text, bytes, folded->text);
	folded->text[folded->bytes] = '\0';
	return folded->text;
}

/* ---- registered strings ---- */

static struct nvtx_string *string_find(const struct nvtx_domain *domain, const char *text,
				       uint32_t hash)
{
	struct nvtx_string *string = kymo__load_acquire(&strings[hash % BUCKETS]);

	for (; string; string = string->next)
		if (string->hash == hash && string->domain == domain && !strcmp(string->text, text))
			return string;
	return NULL;
}

static struct nvtx_string *string_get(struct nvtx_domain *domain, const char *text, size_t bytes)
{
	uint32_t hash = nvtx_names_hash(text, bytes);
	struct nvtx_string *string = string_find(domain, text, hash);

	if (string)
		return string;
	string = calloc(1, sizeof(*string) + bytes + 1);
	if (!string)
		return NULL;
	string->domain = domain;
	string->hash = hash;
	string->magic = NVTX_STRING_MAGIC;
	string->bytes = (uint32_t)bytes;
	memcpy(string->text, text, bytes);
	NAMES_ADD(&strings[hash % BUCKETS], string);
	kymo__add_fetch_relaxed(&domain->strings, 1);
	return string;
}

/* Beyond the limit, texts that differ in digits share a handle. */
struct nvtx_string *nvtx_string_register(struct nvtx_domain *domain, const char *text)
{
	size_t bytes = text ? strnlen(text, NVTX_TEXT_BYTES - 1) : 0;
	struct nvtx_text cut;

	if (!text)
		return NULL;
	domain = nvtx_domain_of(domain);
	nvtx_text_init(&cut);
	if (kymo__load_relaxed(&domain->strings) < STRINGS_MOST) {
		nvtx_text_add(&cut, text, bytes);
	} else if (kymo__load_relaxed(&domain->strings) < 2 * STRINGS_MOST) {
		cut.bytes = fold_digits(text, bytes, cut.text);
		cut.text[cut.bytes] = '\0';
	} else {
		nvtx_text_print(&cut, "(other names)");
	}
	return string_get(domain, cut.text, cut.bytes);
}

struct nvtx_name nvtx_name_of_string(struct nvtx_string *string, uint32_t category)
{
	const uint32_t epoch = kymo__load_relaxed(&string->domain->epoch);
	struct nvtx_name name = { nvtx_cached_id(string, category), NULL };

	if (name.id)
		return name;
	name = nvtx_name_of(string->domain, category, string->text);
	if (name.id && !name.whole) {
		kymo__store_relaxed(&string->cached, (uint64_t)category << 32 | name.id);
		kymo__store_relaxed(&string->epoch, epoch);
	}
	return name;
}
