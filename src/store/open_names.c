/* Merges the names and threads of all processes into one list each. */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "base/page_memory.h"
#include "store/recording_inside.h"
#include "base/utf8.h"

/* ---- one list of names ------------------------------------------------------------------- */

static uint64_t hash_name(const struct store_name *name)
{
	uint64_t hash = intern_hash_number(name->instance,
					   (uint64_t)name->line << 32 | name->source);

	hash = intern_hash(hash, name->text, name->text_bytes);
	return intern_hash(hash, name->file, name->file_bytes);
}

/* Name 0 stands for none and is not in the index, so a name has its number there + 1. */
static bool same_name(const void *names, uint32_t number, const void *wanted)
{
	const struct store_name *a = (const struct store_name *)names + number + 1, *b = wanted;

	return a->text_bytes == b->text_bytes && a->file_bytes == b->file_bytes &&
	       a->line == b->line && a->source == b->source && a->instance == b->instance &&
	       !memcmp(a->text, b->text, a->text_bytes) && !memcmp(a->file, b->file, a->file_bytes);
}

static const char *repaired(struct arena *arena, const char *text, size_t bytes,
			    uint32_t *out_bytes)
{
	size_t room = utf8_repaired_bytes(text, bytes) + 1;
	char *copy = bytes ? arena_take(arena, room) : NULL;

	*out_bytes = copy ? (uint32_t)utf8_repair(text, bytes, copy, room) : 0;
	return copy ? copy : "";
}

uint32_t open_names_unify(struct recording *recording, const struct store_name *name)
{
	struct inside *inside = inside_of(recording);
	uint64_t hash = hash_name(name);
	uint32_t number = intern_find(&inside->name_index, hash, same_name, recording->names, name);
	void *names;

	if (number != INTERN_NONE)
		return number + 1;
	names = inside_grow(recording, recording->names, recording->name_count, &inside->name_room,
			    sizeof(*name));
	if (!names)
		return 0;
	recording->names = names;
	number = intern_add(&inside->name_index, hash);
	if (number == INTERN_NONE) {
		inside->no_memory = true;
		return 0;
	}
	recording->names[recording->name_count++] = *name;
	return number + 1;
}

/* ---- a process's names ------------------------------------------------------------------- */

/* A whole file copied into pages; *out_bytes 0: none. */
static char *open_names_copy_file(const struct run_files *source, const char *directory,
				  const char *name, uint64_t most, struct readat *file,
				  size_t *out_bytes)
{
	char path[RUN_FILES_PATH_BYTES * 2];
	uint64_t size;
	char *bytes;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	*out_bytes = 0;
	if (run_files_file(source, path, file, NULL))
		return NULL;
	size = readat_size(file);
	if (size > most)
		size = most;
	bytes = page_memory_take((size_t)size);
	if (!bytes)
		return NULL;
	/* Truncated meanwhile: the rest stays zero; pages are freed by their full length. */
	readat_copy_stored(file, 0, bytes, (size_t)size);
	*out_bytes = (size_t)size;
	return bytes;
}

static bool head_holds(struct recording *recording, const char *directory, const char *name,
		       const struct readat *file, const char *magic)
{
	struct kymo_names_head head; /* common to names, text and threads */
	struct kymo_error err = { 0 };
	char label[RUN_FILES_PATH_BYTES * 2];

	snprintf(label, sizeof(label), "%s/%s", directory, name);
	if (!readat_head(file, magic, &head, sizeof(head), label, &err))
		return true;
	inside_say(recording, "%s", err.text);
	return false;
}

static uint64_t entries_there(const char *bytes, size_t byte_count, size_t entry_bytes,
			      uint64_t most)
{
	uint64_t count, fit;

	if (byte_count < sizeof(struct kymo_names_head))
		return 0;
	memcpy(&count, bytes + offsetof(struct kymo_names_head, count), sizeof(count));
	fit = (byte_count - sizeof(struct kymo_names_head)) / entry_bytes;
	if (count > fit)
		count = fit;
	return count < most ? count : most;
}

/* The texts of a process. Each name has its own bytes, so all names together have at most those
   that are stored; a file whose names share bytes is made to fill the memory of its readers. */
struct texts {
	const char *bytes;
	size_t byte_count;
	uint64_t left; /* stored bytes that no name has taken */
	uint64_t damaged; /* names that point outside, or that share bytes */
};

static uint64_t stored_bytes(const struct readat *file, uint64_t end)
{
	uint64_t from, to, sum = 0;

	for (uint64_t at = 0; readat_stored(file, at, end, &from, &to); at = to)
		sum += to - from;
	return sum;
}

/* 0 for an entry that is not ready or damaged. */
static uint32_t read_name(struct recording *recording, const struct kymo_name_entry *entry,
			  struct texts *texts)
{
	struct inside *inside = inside_of(recording);
	struct store_name name = { 0 };
	uint64_t bytes = (uint64_t)entry->name_bytes + entry->file_bytes;
	const char *text;

	if (entry->ready != 1)
		return 0;
	if (entry->name_bytes > KYMO_NAME_BYTES_MAX || entry->file_bytes > KYMO_NAME_BYTES_MAX ||
	    entry->text_offset > texts->byte_count ||
	    bytes > texts->byte_count - entry->text_offset || bytes > texts->left) {
		texts->damaged++;
		return 0;
	}
	texts->left -= bytes;
	text = texts->bytes + entry->text_offset;
	name.text = repaired(&inside->arena, text, entry->name_bytes, &name.text_bytes);
	name.file = repaired(&inside->arena, text + entry->name_bytes, entry->file_bytes,
			     &name.file_bytes);
	name.line = entry->line;
	name.source = entry->source;
	name.instance = entry->instance;
	return open_names_unify(recording, &name);
}

static void open_names_read_entries(struct recording *recording, struct store_process *process,
				    const char *directory, const char *names, size_t names_bytes,
				    struct texts *texts)
{
	uint64_t count = entries_there(names, names_bytes, sizeof(struct kymo_name_entry),
				       KYMO_NAMES_MAX);

	process->name_of = arena_take(&inside_of(recording)->arena,
				      (size_t)count * sizeof(*process->name_of));
	if (!process->name_of)
		return;
	process->name_count = (uint32_t)count;
	for (uint64_t id = 1; id < count; id++) {
		struct kymo_name_entry entry;

		memcpy(&entry, names + sizeof(struct kymo_names_head) + id * sizeof(entry),
		       sizeof(entry));
		if (entry.ready) /* an untouched page costs nothing */
			process->name_of[id] = read_name(recording, &entry, texts);
	}
	if (texts->damaged)
		inside_say(recording,
			   "%s/names: %llu names point outside of %s/text, or share its bytes, and "
			   "are left empty",
			   directory, (unsigned long long)texts->damaged, directory);
}

void open_names_read(struct recording *recording, uint32_t process, const char *directory)
{
	const struct run_files *source = &inside_of(recording)->source;
	struct readat names_file = READAT_NONE, text_file = READAT_NONE;
	size_t names_bytes, text_bytes;
	const uint64_t names_most = sizeof(struct kymo_names_head) +
				    (uint64_t)KYMO_NAMES_MAX * sizeof(struct kymo_name_entry);
	/* Entries first: their text is complete by then. */
	char *names = open_names_copy_file(source, directory, "names", names_most, &names_file,
					   &names_bytes);
	char *text = open_names_copy_file(source, directory, "text", KYMO_TEXT_BYTES_MAX,
					  &text_file, &text_bytes);
	struct texts texts = { text, text_bytes, stored_bytes(&text_file, text_bytes), 0 };

	if (names && text &&
	    head_holds(recording, directory, "names", &names_file, KYMO_MAGIC_NAMES) &&
	    head_holds(recording, directory, "text", &text_file, KYMO_MAGIC_TEXT))
		open_names_read_entries(recording, &recording->processes[process], directory, names,
					names_bytes, &texts);
	else if (!names || !text)
		inside_say(recording, "%s/%s is missing: its zones have no names", directory,
			   names ? "text" : "names");
	page_memory_give(names, names_bytes);
	page_memory_give(text, text_bytes);
	readat_close(&names_file);
	readat_close(&text_file);
}

/* ---- threads ----------------------------------------------------------------------------- */

static uint32_t open_names_add_thread(struct recording *recording, uint32_t process,
				      const struct kymo_thread_entry *entry)
{
	struct inside *inside = inside_of(recording);
	const struct store_clock *clock = &recording->processes[process].clock;
	struct store_thread *threads = inside_grow(recording, recording->threads,
						   recording->thread_count, &inside->thread_room,
						   sizeof(*threads));
	struct store_thread *thread;

	if (!threads)
		return 0;
	recording->threads = threads;
	thread = &threads[recording->thread_count];
	thread->process = process;
	thread->tid = entry->tid;
	thread->started_ns = store_clock_ns(clock, entry->started_ticks);
	thread->ended_ns = entry->ended_ticks ? store_clock_ns(clock, entry->ended_ticks) : -1;
	utf8_repair(entry->name, strnlen(entry->name, sizeof(entry->name)), thread->name,
		    sizeof(thread->name));
	return (uint32_t)recording->thread_count++;
}

static void read_threads(struct recording *recording, uint32_t process, const char *bytes,
			 size_t byte_count)
{
	struct store_process *to = &recording->processes[process];
	uint64_t count = entries_there(bytes, byte_count, sizeof(struct kymo_thread_entry),
				       KYMO_THREADS_MAX);

	to->thread_of = arena_take(&inside_of(recording)->arena,
				   (size_t)count * sizeof(*to->thread_of));
	if (!to->thread_of)
		return;
	to->thread_count = (uint32_t)count;
	for (uint64_t i = 1; i < count; i++) {
		struct kymo_thread_entry entry;

		memcpy(&entry, bytes + sizeof(struct kymo_threads_head) + i * sizeof(entry),
		       sizeof(entry));
		if (entry.ready == 1)
			to->thread_of[i] = open_names_add_thread(recording, process, &entry);
	}
}

void open_names_threads(struct recording *recording, uint32_t process, const char *directory)
{
	struct readat file = READAT_NONE;
	const uint64_t most = sizeof(struct kymo_threads_head) +
			      (uint64_t)KYMO_THREADS_MAX * sizeof(struct kymo_thread_entry);
	size_t byte_count;
	char *bytes = open_names_copy_file(&inside_of(recording)->source, directory, "threads",
					   most, &file, &byte_count);

	if (!bytes)
		inside_say(recording, "%s/threads is missing: its threads have no names",
			   directory);
	else if (head_holds(recording, directory, "threads", &file, KYMO_MAGIC_THREADS))
		read_threads(recording, process, bytes, byte_count);
	page_memory_give(bytes, byte_count);
	readat_close(&file);
}
