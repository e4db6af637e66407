#include "cmds/cmds.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/files/paths.h"
#include "store/job.h"
#include "store/store.h"
#include "tables/tables.h"
#include "views/term/format.h"
#include "views/term/text.h"

struct removed {
	size_t count;
	uint64_t bytes;
};

/* The size that kymo ls shows, or that of a file it does not list. */
static uint64_t rm_bytes_of(const struct store_entry *entries, size_t count, const char *path)
{
	char *whole = realpath(path, NULL);
	uint64_t bytes = 0;
	struct stat st;

	if (whole && !stat(whole, &st) && S_ISREG(st.st_mode))
		bytes = (uint64_t)st.st_size;
	for (size_t i = 0; whole && i < count; i++)
		if (!strcmp(entries[i].path, whole))
			bytes = entries[i].bytes;
	free(whole);
	return bytes;
}

static int check_packed(void *context)
{
	const struct tables_options options = { 0 };
	struct tables *tables = NULL;
	struct kymo_error err = { 0 }, why = { 0 };
	const char *path = context;

	if (tables_open(path, &options, &tables, &why)) {
		error_set(&err, EINVAL, "cannot remove %s: not a kymo recording (%s)", path,
			  why.text);
		return cmds_fail("rm", &err);
	}
	tables_close(tables);
	return CMDS_OK;
}

/* A packed recording is a DuckDB database. Only its tables show that a database is one. */
static int rm_check(const char *path)
{
	if (store_kind(path, NULL) != STORE_PACKED)
		return CMDS_OK;
	return cmds_guarded("rm", check_packed, (void *)path);
}

static void print_removed(const char *path, const struct store_removed *also, uint64_t bytes)
{
	text_line(stderr, "kymo: removed %s%s%s, %s", path, also->other[0] ? " and " : "",
		  also->other, format_bytes((double)bytes).text);
	if (also->kept[0])
		text_line(stderr,
			  "kymo: kept %s: it does not name %s as its other directory; kymo rm "
			  "removes it by its path",
			  also->kept, path);
}

static int remove_job(const char *path, uint64_t bytes, struct removed *removed)
{
	struct kymo_error err = { 0 };
	size_t count;

	if (job_remove(path, &count, &err))
		return cmds_fail("rm", &err);
	text_line(stderr, "kymo: removed the job %s, %zu recording%s, %s", path, count,
		  count == 1 ? "" : "s", format_bytes((double)bytes).text);
	removed->count += count;
	removed->bytes += bytes;
	return CMDS_OK;
}

static int remove_one(const char *path, uint64_t bytes, struct removed *removed)
{
	struct kymo_error err = { 0 };
	struct store_removed also;

	if (store_kind(path, NULL) == STORE_JOB)
		return remove_job(path, bytes, removed);
	if (rm_check(path))
		return CMDS_FAILED;
	if (store_remove_both(path, &also, &err))
		return cmds_fail("rm", &err);
	print_removed(path, &also, bytes);
	removed->count++;
	removed->bytes += bytes;
	return CMDS_OK;
}

/* Packed files and snapshots were made on purpose, and are removed only by name. */
static bool is_chosen(const struct store_entry *entry, bool everywhere)
{
	if (entry->kind != STORE_DIRECTORY || entry->state == STORE_LIVE || entry->unreadable[0] ||
	    entry->foreign)
		return false;
	return everywhere || paths_in_roots(entry->path);
}

static int remove_dead(const struct store_entry *entries, size_t count, bool everywhere,
		       struct removed *removed)
{
	int status = CMDS_OK;

	for (size_t i = 0; i < count; i++)
		if (is_chosen(&entries[i], everywhere) &&
		    remove_one(entries[i].path, entries[i].bytes, removed))
			status = CMDS_FAILED;
	return status;
}

static int remove_words(const struct cmds_args *args, const struct store_entry *entries,
			size_t count, struct removed *removed)
{
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];
	int status = CMDS_OK;

	for (size_t i = 0; i < args->word_count; i++) {
		if (store_resolve_only(args->words[i], path, sizeof(path), &err))
			status = cmds_fail("rm", &err);
		else if (remove_one(path, rm_bytes_of(entries, count, path), removed))
			status = CMDS_FAILED;
	}
	return status;
}

static int remove_all(const struct cmds_args *args, bool dead, bool everywhere)
{
	struct store_entry *entries = NULL;
	struct removed removed = { 0 };
	struct kymo_error err = { 0 };
	size_t count = 0;
	int status;

	if (store_list(&entries, &count, &err))
		return cmds_fail("rm", &err);
	status = dead ? remove_dead(entries, count, everywhere, &removed)
		      : remove_words(args, entries, count, &removed);
	if (removed.count != 1 && (dead || removed.count))
		fprintf(stderr, "kymo: removed %s recordings, %s\n",
			format_count(removed.count).text, format_bytes((double)removed.bytes).text);
	free(entries);
	return status;
}

int cmd_rm(int argc, char **argv)
{
	const struct cmds_option *option;
	bool dead = false, everywhere = false;
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "rm", argc, argv);
	while ((option = cmds_next(&args, &status))) {
		dead = true;
		everywhere = everywhere || !strcmp(option->name, "all-dead");
	}
	if (status >= 0)
		return status;
	if (dead && args.word_count)
		return cmds_wrong("rm", "use either targets or --dead, not both");
	if (!dead && !args.word_count)
		return cmds_wrong("rm", "no recording given; use kymo rm TARGET or kymo rm --dead "
					"(kymo ls lists recordings)");
	return remove_all(&args, dead, everywhere);
}
