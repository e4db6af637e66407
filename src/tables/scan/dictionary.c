#include "tables/scan/dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "base/schema.h"
#include "collect/native/demangle.h"
#include "tables/scan/scan.h"

/* One vector under construction; entries are NULL until they are set. */
struct filling {
	duckdb_vector vector;
	uint64_t *validity;
	void *data;
	size_t count;
};

static void set_valid(struct filling *filling, size_t at)
{
	filling->validity[at / 64] |= 1ull << (at % 64);
}

static void dictionary_set_text(struct filling *filling, size_t at, const char *text, size_t bytes)
{
	if (!bytes)
		return;
	duck.vector_assign_string_element_len(filling->vector, at, text, bytes);
	set_valid(filling, at);
}

static void dictionary_set_number(struct filling *filling, size_t at, int32_t value)
{
	((int32_t *)filling->data)[at] = value;
	set_valid(filling, at);
}

char *dictionary_demangled(const struct store_name *name)
{
	char *symbol, *plain;

	/* Functions, and kernels of CUDA. */
	if ((name->source != KYMO_SOURCE_C && name->source != KYMO_SOURCE_DEVICE) ||
	    !demangle_is_mangled(name->text, name->text_bytes))
		return NULL;
	symbol = strndup(name->text, name->text_bytes);
	plain = symbol ? demangle(symbol) : NULL;
	free(symbol);
	return plain;
}

static void fill_name_text(struct filling *filling, const struct recording *recording)
{
	/* Name 0 means "no name" and is NULL. */
	for (size_t i = 1; i < filling->count; i++) {
		const struct store_name *name = &recording->names[i];
		char *plain = dictionary_demangled(name);

		dictionary_set_text(filling, i, plain ? plain : name->text,
				    plain ? strlen(plain) : name->text_bytes);
		free(plain);
	}
}

static void fill_name_file(struct filling *filling, const struct recording *recording)
{
	for (size_t i = 1; i < filling->count; i++)
		dictionary_set_text(filling, i, recording->names[i].file,
				    recording->names[i].file_bytes);
}

static void fill_name_source(struct filling *filling, const struct recording *recording)
{
	const char *word;

	for (size_t i = 1; i < filling->count; i++) {
		word = schema_source_word(recording->names[i].source);
		dictionary_set_text(filling, i, word, strlen(word));
	}
}

static void fill_name_line(struct filling *filling, const struct recording *recording)
{
	for (size_t i = 1; i < filling->count; i++)
		if (recording->names[i].line && recording->names[i].line <= INT32_MAX)
			dictionary_set_number(filling, i, (int32_t)recording->names[i].line);
}

static void fill_name_instance(struct filling *filling, const struct recording *recording)
{
	for (size_t i = 1; i < filling->count; i++)
		if (recording->names[i].instance && recording->names[i].instance <= INT32_MAX)
			dictionary_set_number(filling, i, (int32_t)recording->names[i].instance);
}

static void fill_thread_name(struct filling *filling, const struct recording *recording)
{
	const struct store_thread *thread;

	for (size_t i = 1; i < recording->thread_count; i++) {
		thread = &recording->threads[i];
		dictionary_set_text(filling, i, thread->name,
				    strnlen(thread->name, sizeof(thread->name)));
	}
}

static void fill_thread_tid(struct filling *filling, const struct recording *recording)
{
	for (size_t i = 1; i < recording->thread_count; i++)
		dictionary_set_number(filling, i, recording->threads[i].tid);
}

static const struct {
	duckdb_type type;
	bool of_threads;
	void (*fill)(struct filling *filling, const struct recording *recording);
} kinds[SESSION_DICTIONARY_COUNT] = {
	[SESSION_NAME_TEXT] = { DUCKDB_TYPE_VARCHAR, false, fill_name_text },
	[SESSION_NAME_FILE] = { DUCKDB_TYPE_VARCHAR, false, fill_name_file },
	[SESSION_NAME_SOURCE] = { DUCKDB_TYPE_VARCHAR, false, fill_name_source },
	[SESSION_NAME_LINE] = { DUCKDB_TYPE_INTEGER, false, fill_name_line },
	[SESSION_NAME_INSTANCE] = { DUCKDB_TYPE_INTEGER, false, fill_name_instance },
	[SESSION_THREAD_NAME] = { DUCKDB_TYPE_VARCHAR, true, fill_thread_name },
	[SESSION_THREAD_TID] = { DUCKDB_TYPE_INTEGER, true, fill_thread_tid },
};

static duckdb_vector dictionary_build(const struct recording *recording,
				      enum session_dictionary which)
{
	duckdb_logical_type type = duck.create_logical_type(kinds[which].type);
	struct filling filling;

	filling.count = kinds[which].of_threads ? scan_thread_count(recording)
						: recording->name_count;
	/* At least one: rows without a name refer to entry 0. */
	if (!filling.count)
		filling.count = 1;
	filling.vector = duck.create_vector(type, filling.count);
	duck.destroy_logical_type(&type);
	if (!filling.vector)
		return NULL;
	duck.vector_ensure_validity_writable(filling.vector);
	filling.validity = duck.vector_get_validity(filling.vector);
	filling.data = duck.vector_get_data(filling.vector);
	memset(filling.validity, 0, (filling.count + 63) / 64 * 8);
	kinds[which].fill(&filling, recording);
	return filling.vector;
}

duckdb_vector dictionary_get(struct tables *tables, enum session_dictionary which)
{
	duckdb_vector vector;

	pthread_mutex_lock(&tables->dictionary_lock);
	if (!tables->dictionaries[which])
		tables->dictionaries[which] = dictionary_build(tables->recording, which);
	vector = tables->dictionaries[which];
	pthread_mutex_unlock(&tables->dictionary_lock);
	return vector;
}

void dictionary_fini(struct tables *tables)
{
	for (int i = 0; i < SESSION_DICTIONARY_COUNT; i++)
		if (tables->dictionaries[i])
			duck.destroy_vector(&tables->dictionaries[i]);
}
