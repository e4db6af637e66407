/*
 * Traces that commands take directly: imported once into $XDG_CACHE_HOME/kymo/imports, which only
 * this user can access. The name of an entry is a hash of kymo's version and of the files' paths,
 * sizes, times and inodes: a changed file is imported again. The oldest entries are removed beyond
 * CACHE_ENTRIES or CACHE_BYTES, except those used within the last ten minutes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files/dir_names.h"
#include "base/files/safe_path.h"
#include "base/grow.h"
#include "base/intern.h"
#include "import/import.h"
#include "store/store.h"

#define CACHE_ENTRIES 64u
#define CACHE_BYTES (UINT64_C(8) << 30)
#define IN_USE_SECONDS 600

static int open_cache(struct safe_dir *dir, struct kymo_error *err)
{
	const char *given = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	char path[KYMO_PATH_BYTES];

	if (given && *given == '/')
		snprintf(path, sizeof(path), "%s/kymo/imports", given);
	else if (home && *home == '/')
		snprintf(path, sizeof(path), "%s/.cache/kymo/imports", home);
	else
		return error_set(err, ENOENT,
				 "no place for the cache: set XDG_CACHE_HOME, or use kymo import");
	return safe_dir_open(dir, path, SAFE_DIR_MAKE | SAFE_DIR_OWN, err);
}

/* ---- bounding ------------------------------------------------------------------------------ */

struct cache_entry {
	char name[64];
	uint64_t bytes;
	time_t used;
};

struct cache_list {
	int dir; /* the cache, or an entry while its bytes are added */
	struct cache_entry *list;
	size_t count, room;
	uint64_t bytes;
};

static int cache_add_bytes(const char *name, void *context)
{
	struct cache_list *list = context;
	struct stat status;
	int inner;

	if (!strcmp(name, ".") || !strcmp(name, "..") ||
	    fstatat(list->dir, name, &status, AT_SYMLINK_NOFOLLOW))
		return 0;
	list->bytes += (uint64_t)status.st_blocks * 512;
	if (!S_ISDIR(status.st_mode))
		return 0;
	inner = openat(list->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (inner >= 0) {
		struct cache_list below = { .dir = inner };

		dir_names_each(inner, cache_add_bytes, &below);
		list->bytes += below.bytes;
		close(inner);
	}
	return 0;
}

static int cache_add_entry(const char *name, void *context)
{
	struct cache_list *list = context;
	struct cache_list inside = { .dir = -1 };
	struct stat status;

	if (name[0] == '.' || strlen(name) >= sizeof(list->list->name) ||
	    fstatat(list->dir, name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(status.st_mode) ||
	    !grow((void **)&list->list, &list->room, list->count, sizeof(*list->list)))
		return 0;
	inside.dir = openat(list->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (inside.dir < 0)
		return 0;
	dir_names_each(inside.dir, cache_add_bytes, &inside);
	close(inside.dir);
	strcpy(list->list[list->count].name, name);
	list->list[list->count].bytes = inside.bytes;
	list->list[list->count++].used = status.st_mtime;
	list->bytes += inside.bytes;
	return 0;
}

static int compare_used(const void *left, const void *right)
{
	const struct cache_entry *a = left, *b = right;

	return a->used < b->used ? -1 : a->used > b->used;
}

static void bound_cache(const struct safe_dir *dir)
{
	struct cache_list list = { .dir = dir->fd };
	size_t left;

	dir_names_each(dir->fd, cache_add_entry, &list);
	if (list.count)
		qsort(list.list, list.count, sizeof(*list.list), compare_used);
	left = list.count;
	for (size_t i = 0; i < list.count && (left > CACHE_ENTRIES || list.bytes > CACHE_BYTES);
	     i++) {
		char path[KYMO_PATH_BYTES + 80];

		if (time(NULL) - list.list[i].used < IN_USE_SECONDS)
			break;
		snprintf(path, sizeof(path), "%s/%s", dir->path, list.list[i].name);
		if (store_remove(path, NULL))
			continue;
		list.bytes -= list.list[i].bytes;
		left--;
	}
	free(list.list);
}

/* ---- finding ------------------------------------------------------------------------------- */

struct cache_key {
	uint64_t hash[2];
};

/* Another file, another state of it, or another order makes another key. */
static void cache_add_file(const char *file, void *context)
{
	struct cache_key *key = context;
	char real[PATH_MAX];
	struct stat status = { 0 };

	if (!realpath(file, real))
		snprintf(real, sizeof(real), "%s", file);
	if (stat(real, &status))
		status = (struct stat){ 0 };
	for (int i = 0; i < 2; i++) {
		uint64_t hash = intern_hash(key->hash[i], real, strlen(real));

		hash = intern_hash_number(hash, (uint64_t)status.st_size);
		hash = intern_hash_number(hash, (uint64_t)status.st_mtim.tv_sec);
		hash = intern_hash_number(hash, (uint64_t)status.st_mtim.tv_nsec);
		hash = intern_hash_number(hash, (uint64_t)status.st_ino);
		key->hash[i] = intern_hash_number(hash, (uint64_t)status.st_dev);
	}
}

static int cache_entry_name(const char *const *files, size_t count, char *out, size_t out_bytes,
			    struct kymo_error *err)
{
	struct cache_key key;
	int rc;

	for (int i = 0; i < 2; i++)
		key.hash[i] = intern_hash(i + 1, KYMO_VERSION, sizeof(KYMO_VERSION));
	rc = import_each_file(files, count, cache_add_file, &key, err);
	snprintf(out, out_bytes, "%016llx%016llx", (unsigned long long)key.hash[0],
		 (unsigned long long)key.hash[1]);
	return rc;
}

/* Imports into the cache; another process may do the same at this moment. */
static int fill_entry(const char *const *files, size_t count, const char *entry,
		      const struct import_options *how, struct kymo_error *err)
{
	struct import_options options = how ? *how : (struct import_options){ 0 };
	struct import_result result;
	struct kymo_error why = { 0 };
	int rc;

	options.output = entry;
	rc = import_files(files, count, &options, &result, &why);
	if (rc && store_kind(entry, NULL) == STORE_DIRECTORY)
		return 0;
	return rc ? error_set(err, -rc, "%s", why.text) : 0;
}

int import_resolve_files(const char *const *files, size_t count, char *out, size_t out_bytes,
			 const struct import_options *how, struct kymo_error *err)
{
	struct safe_dir dir = SAFE_DIR_NONE;
	char name[64], entry[KYMO_PATH_BYTES + 80];
	int rc = cache_entry_name(files, count, name, sizeof(name), err);

	if (!rc)
		rc = open_cache(&dir, err);
	if (rc)
		return rc;
	snprintf(entry, sizeof(entry), "%s/%s", dir.path, name);
	if (store_kind(entry, NULL) == STORE_DIRECTORY)
		utimensat(AT_FDCWD, entry, NULL, AT_SYMLINK_NOFOLLOW); /* it is in use */
	else
		rc = fill_entry(files, count, entry, how, err);
	if (!rc && strlen(entry) >= out_bytes)
		rc = error_set(err, ENAMETOOLONG, "%s is too long", entry);
	if (!rc)
		memcpy(out, entry, strlen(entry) + 1);
	bound_cache(&dir);
	safe_dir_close(&dir);
	return rc;
}

/* A directory that is no recording, with traces in it. */
static bool holds_traces(const char *path)
{
	struct cache_key ignored = { { 0 } };

	return !import_each_file(&path, 1, cache_add_file, &ignored, NULL);
}

int import_resolve(const char *target, char *out, size_t out_bytes,
		   const struct import_options *how, struct kymo_error *err)
{
	struct stat status;
	char real[PATH_MAX];
	const char *file = real;
	int rc = store_resolve(target, out, out_bytes, err);

	if (rc || stat(out, &status) || store_kind(out, NULL) != STORE_NONE ||
	    !(S_ISDIR(status.st_mode) ? holds_traces(out)
				      : S_ISREG(status.st_mode) && import_is_trace(out)))
		return rc;
	/* The recording keeps the path: relative ones mean nothing to the next caller. */
	if (!realpath(out, real))
		snprintf(real, sizeof(real), "%s", out);
	return import_resolve_files(&file, 1, out, out_bytes, how, err);
}
