/*
 * Names to ids: an append-only table in two mapped files (entries, text), bounded, shared by all
 * threads without a lock, usable in a signal handler. An entry is published (ready) before its id
 * is used. Two threads that add a new name at once may both add it; one id wins, and the duplicate
 * entry with the same text is harmless.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/atomic.h>

#include "record/record.h"

#define HASH_SLOTS (KYMO_NAMES_MAX * 2u)
#define ENTRIES_STEP (1024u * sizeof(struct kymo_name_entry))
#define TEXT_STEP (64u << 10)

static struct kymo__mapfile entries_file, text_file;
static uint32_t *hash_slots; /* private: id by hash; 0: free */

static struct kymo_names_head *names_head(void)
{
	return (struct kymo_names_head *)(void *)entries_file.base;
}

static struct kymo_name_entry *names_entry_at(uint32_t id)
{
	return (struct kymo_name_entry *)(void *)(entries_file.base +
						  sizeof(struct kymo_names_head)) +
	       id;
}

static struct kymo_text_head *text_head(void)
{
	return (struct kymo_text_head *)(void *)text_file.base;
}

static size_t round_up(size_t value, size_t step)
{
	return (value + step - 1) / step * step;
}

static int create_empty(size_t entry_bytes, size_t text_bytes)
{
	size_t reserve_entries = sizeof(struct kymo_names_head) +
				 KYMO_NAMES_MAX * sizeof(struct kymo_name_entry);
	int rc = kymo__mapfile_create(&entries_file, "names", reserve_entries, entry_bytes);

	if (!rc)
		rc = kymo__mapfile_create(&text_file, "text", KYMO_TEXT_BYTES_MAX, text_bytes);
	if (rc)
		return rc;
	return 0;
}

static void begun(void)
{
	kymo__mapfile_begun(text_head(), KYMO_MAGIC_TEXT, sizeof(struct kymo_text_head));
	kymo__mapfile_begun(names_head(), KYMO_MAGIC_NAMES, sizeof(struct kymo_names_head));
}

/* The parent keeps appending during the copy: only what was in use at the first look is copied. */
static int copy_of_parent(void)
{
	struct kymo__mapfile old_entries = entries_file, old_text = text_file;
	uint64_t count = kymo__load_acquire(&names_head()->count);
	uint64_t used = kymo__load_acquire(&text_head()->used);
	size_t entry_bytes = sizeof(struct kymo_names_head) +
			     count * sizeof(struct kymo_name_entry);
	int rc;

	memset(&entries_file, 0, sizeof(entries_file));
	memset(&text_file, 0, sizeof(text_file));
	rc = create_empty(round_up(entry_bytes, ENTRIES_STEP), round_up(used, TEXT_STEP));
	if (!rc) {
		size_t heads = sizeof(struct kymo_names_head);

		memcpy(entries_file.base + heads, old_entries.base + heads, entry_bytes - heads);
		memcpy(text_file.base + sizeof(struct kymo_text_head),
		       old_text.base + sizeof(struct kymo_text_head),
		       used - sizeof(struct kymo_text_head));
		names_head()->count = count;
		text_head()->used = used;
		begun();
	}
	kymo__mapfile_close(&old_entries);
	kymo__mapfile_close(&old_text);
	return rc;
}

int kymo__names_open(bool forked)
{
	int rc;

	if (forked && entries_file.base)
		return copy_of_parent();
	if (!hash_slots) {
		void *map = mmap(NULL, HASH_SLOTS * sizeof(uint32_t), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (map == MAP_FAILED)
			return -1;
		hash_slots = map;
	}
	rc = create_empty(sizeof(struct kymo_names_head) + ENTRIES_STEP, TEXT_STEP);
	if (rc)
		return rc;
	names_head()->count = 1; /* id 0: no name */
	text_head()->used = sizeof(struct kymo_text_head);
	begun();
	return 0;
}

size_t kymo__utf8_cut(const char *text, size_t bytes, size_t most)
{
	if (bytes <= most)
		return bytes;
	for (size_t back = 0; back < 4 && back < most; back++)
		if (((unsigned char)text[most - back] & 0xc0) != 0x80)
			return most - back;
	return most;
}

static uint64_t names_hash_of(const char *name, size_t name_bytes, const char *file,
			      size_t file_bytes, uint64_t extra)
{
	uint64_t hash = 14695981039346656037ull ^ extra * 0x9e3779b97f4a7c15ull;

	for (size_t i = 0; i < name_bytes; i++)
		hash = (hash ^ (unsigned char)name[i]) * 1099511628211ull;
	hash = (hash ^ 0xff) * 1099511628211ull;
	for (size_t i = 0; i < file_bytes; i++)
		hash = (hash ^ (unsigned char)file[i]) * 1099511628211ull;
	return hash ^ hash >> 29;
}

static bool entry_is(const struct kymo_name_entry *entry, const struct kymo_name_entry *wanted,
		     const char *name, const char *file)
{
	const char *text = text_file.base + entry->text_offset;

	return entry->name_bytes == wanted->name_bytes && entry->file_bytes == wanted->file_bytes &&
	       entry->line == wanted->line && entry->source == wanted->source &&
	       entry->instance == wanted->instance && !memcmp(text, name, entry->name_bytes) &&
	       !memcmp(text + entry->name_bytes, file, entry->file_bytes);
}

/* Allocates room for the text; 0: full. */
static uint64_t text_add(const char *name, const char *file, const struct kymo_name_entry *entry)
{
	uint64_t bytes = (uint64_t)entry->name_bytes + entry->file_bytes;
	uint64_t at = kymo__load_relaxed(&text_head()->used);

	do {
		if (at + bytes > KYMO_TEXT_BYTES_MAX ||
		    kymo__mapfile_grow(&text_file, "text", round_up(at + bytes, TEXT_STEP)))
			return 0;
	} while (!kymo__cas_relaxed(&text_head()->used, &at, at + bytes));
	memcpy(text_file.base + at, name, entry->name_bytes);
	memcpy(text_file.base + at + entry->name_bytes, file, entry->file_bytes);
	return at;
}

/* Whether there is room for the entry of that id. */
static bool entry_fits(uint64_t id)
{
	size_t need = round_up(sizeof(struct kymo_names_head) +
				       (id + 1) * sizeof(struct kymo_name_entry),
			       ENTRIES_STEP) +
		      sizeof(struct kymo_names_head);

	return id < KYMO_NAMES_MAX - 1 && !kymo__mapfile_grow(&entries_file, "names", need);
}

static uint32_t record_names_entry_take(void)
{
	uint64_t id = kymo__load_relaxed(&names_head()->count);

	do {
		if (!entry_fits(id))
			return 0;
	} while (!kymo__cas_relaxed(&names_head()->count, &id, id + 1));
	return (uint32_t)id;
}

static uint32_t names_add(const char *name, const char *file, const struct kymo_name_entry *wanted)
{
	struct kymo_name_entry *entry;
	/* Reserve the entry first: text without an entry would be lost at each attempt. */
	int kept_errno = errno; /* the program's */
	bool fits = entry_fits(kymo__load_relaxed(&names_head()->count));
	uint64_t at = fits ? text_add(name, file, wanted) : 0;
	uint32_t id = at ? record_names_entry_take() : 0;

	errno = kept_errno;
	if (!id) {
		kymo__fetch_add_relaxed(&kymo__process.control->names_full, 1);
		return 0;
	}
	entry = names_entry_at(id);
	*entry = *wanted;
	entry->text_offset = at;
	/* Published before any row can use it; pairs with the acquire in lookups and readers. */
	kymo__store_release(&entry->ready, 1);
	return id;
}

uint32_t kymo__intern(const char *name, size_t name_bytes, const char *file, size_t file_bytes,
		      uint32_t line, uint32_t source, uint32_t instance)
{
	struct kymo_name_entry wanted = { 0 };
	uint64_t hash;
	uint32_t mine = 0;

	if (!kymo__process_ready() || !hash_slots)
		return 0;
	file = file ? file : ""; /* memcmp() and memcpy() want a pointer, even for no bytes */
	wanted.name_bytes = (uint32_t)kymo__utf8_cut(name, name_bytes, KYMO_NAME_BYTES_MAX);
	wanted.file_bytes = (uint32_t)kymo__utf8_cut(file, file_bytes, KYMO_NAME_BYTES_MAX);
	wanted.line = line;
	wanted.source = source;
	wanted.instance = instance;
	hash = names_hash_of(name, wanted.name_bytes, file, wanted.file_bytes,
			     (uint64_t)line << 32 | (uint64_t)source << 28 | instance);
	for (uint32_t probe = 0; probe < HASH_SLOTS; probe++) {
		uint32_t *slot = &hash_slots[(hash + probe) & (HASH_SLOTS - 1)];
		uint32_t id = kymo__load_acquire(slot);

		if (!id) {
			if (!mine)
				mine = names_add(name, file, &wanted);
			if (!mine)
				return 0;
			if (kymo__cas_acq_rel_acquire(slot, &id, mine))
				return mine;
		}
		if (entry_is(names_entry_at(id), &wanted, name, file))
			return id;
	}
	return mine;
}

uint32_t kymo_name_full(const char *name, size_t name_bytes, const char *file, size_t file_bytes,
			uint32_t line, enum kymo_source source, uint32_t instance)
{
	if (!name)
		return 0;
	return kymo__intern(name, name_bytes, file ? file : "", file ? file_bytes : 0, line, source,
			    instance);
}

uint32_t kymo_name(const char *name)
{
	return name ? kymo__intern(name, strlen(name), "", 0, 0, KYMO_SOURCE_C, 0) : 0;
}

uint32_t kymo__site_id(struct kymo_site *site)
{
	const char *file = site->file ? site->file : "";
	const char *name = site->name ? site->name : "";
	uint32_t id = kymo__intern(name, strlen(name), file, strlen(file), site->line,
				   KYMO_SOURCE_C, 0);

	kymo__store_relaxed(&site->id, id);
	return id;
}
