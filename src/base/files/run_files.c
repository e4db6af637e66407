#include "base/files/run_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/page_memory.h"

#define TMPFS_MAGIC 0x01021994

/* ---- names ------------------------------------------------------------------------------- */

/* Decimal without sign or leading zeros; NULL: none, or larger than `most`. */
static const char *parse_number(const char *at, uint64_t most, uint64_t *out)
{
	uint64_t value = 0;

	if (*at < '0' || *at > '9' || (*at == '0' && at[1] >= '0' && at[1] <= '9'))
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (value > (most - (uint64_t)(*at - '0')) / 10)
			return NULL;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	*out = value;
	return at;
}

static enum run_files_kind parse_stream(const char *name, struct run_files_item *out)
{
	uint64_t number;
	const char *at = *name == 's' ? parse_number(name + 1, UINT32_MAX, &number) : NULL;

	if (!at || *at++ != '.')
		return RUN_FILES_FOREIGN;
	out->id = (uint32_t)number;
	if (!strcmp(at, "head"))
		return RUN_FILES_HEAD;
	if (!strcmp(at, "totals"))
		return RUN_FILES_TOTALS;
	at = parse_number(at, INT64_MAX, &out->sequence);
	return at && !*at ? RUN_FILES_SEGMENT : RUN_FILES_FOREIGN;
}

enum run_files_kind run_files_parse(const char *name, struct run_files_item *out)
{
	static const char *const fixed[] = { "control", "names", "text",
					     "threads" }; /* as enum run_files_kind */

	memset(out, 0, sizeof(*out));
	out->kind = RUN_FILES_FOREIGN;
	if (strlen(name) >= sizeof(out->name))
		return out->kind;
	strcpy(out->name, name);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (!strcmp(name, fixed[i]))
			return out->kind = (enum run_files_kind)i;
	return out->kind = parse_stream(name, out);
}

bool run_files_is_process(const char *name, struct run_files_process *out)
{
	uint64_t pid, starttime, life = 1;
	const char *at = *name == 'p' ? parse_number(name + 1, INT32_MAX, &pid) : NULL;

	at = at && *at == '-' ? parse_number(at + 1, INT64_MAX, &starttime) : NULL;
	if (at && *at == '.')
		at = parse_number(at + 1, UINT32_MAX, &life);
	if (!at || *at)
		return false;
	if (out)
		*out = (struct run_files_process){ (int32_t)pid, (uint32_t)life, starttime };
	return true;
}

/* ---- directories ------------------------------------------------------------------------- */

static void source_init(struct run_files *source)
{
	const struct readat none = READAT_NONE;

	memset(source, 0, sizeof(*source));
	source->dirs[0] = source->dirs[1] = -1;
	source->snapshot = none;
}

static int open_regular(int dir, const char *path, struct readat *out)
{
	struct stat st;
	int fd = openat(dir, path, RUN_FILES_OPEN_FLAGS);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	out->memory = NULL;
	out->fd = fd;
	out->whole = out->owned = true;
	out->offset = out->bytes = 0;
	return 0;
}

int run_files_run_of(int dir, struct kymo_run_file *run)
{
	struct readat file = READAT_NONE;
	int rc = open_regular(dir, "run", &file);

	if (!rc)
		rc = readat_head(&file, KYMO_MAGIC_RUN, run, sizeof(*run), "run", NULL);
	readat_close(&file);
	run->peer[sizeof(run->peer) - 1] = '\0';
	return rc;
}

static bool same_run(const struct kymo_run_file *a, const struct kymo_run_file *b)
{
	return a->epoch.ticks == b->epoch.ticks && a->epoch.realtime_ns == b->epoch.realtime_ns &&
	       a->supervisor_pid == b->supervisor_pid &&
	       a->supervisor_starttime == b->supervisor_starttime;
}

static bool on_tmpfs(int dir)
{
	struct statfs fs;

	return !fstatfs(dir, &fs) && (unsigned long)fs.f_type == TMPFS_MAGIC;
}

/* Of older versions, if both directories are on the same kind of file system: control files stay
   in the live directory until the very end. */
static size_t controls_in(const struct run_files *source, int which)
{
	struct run_files one = *source;
	struct run_files_list list = { 0 };
	size_t found = 0;

	one.dirs[0] = source->dirs[which];
	one.dirs[1] = -1;
	run_files_processes(&one, &list);
	for (size_t i = 0; i < list.count; i++) {
		char path[RUN_FILES_PATH_BYTES + 16];

		snprintf(path, sizeof(path), "%s/control", list.items[i].name);
		found += faccessat(one.dirs[0], path, F_OK, 0) == 0;
	}
	run_files_list_free(&list);
	return found;
}

/* half: of the file `run` in dirs[0]. */
static bool first_is_live(const struct run_files *source, uint32_t half)
{
	bool first = on_tmpfs(source->dirs[0]), second = on_tmpfs(source->dirs[1]);

	if (half == KYMO_HALF_LIVE || half == KYMO_HALF_DISK)
		return half == KYMO_HALF_LIVE;
	return first == second ? controls_in(source, 0) >= controls_in(source, 1) : first;
}

static void live_half_first(struct run_files *source, uint32_t half)
{
	char path[KYMO_PATH_BYTES];
	int dir = source->dirs[0];

	if (first_is_live(source, half))
		return;
	source->dirs[0] = source->dirs[1];
	source->dirs[1] = dir;
	memcpy(path, source->dir_paths[0], sizeof(path));
	memcpy(source->dir_paths[0], source->dir_paths[1], sizeof(path));
	memcpy(source->dir_paths[1], path, sizeof(path));
}

/* The other directory counts only if it belongs to the same run: `peer` may contain anything. */
static void open_peer(struct run_files *source)
{
	struct kymo_run_file run, other;
	struct stat mine, its;
	int dir;

	if (run_files_run_of(source->dirs[0], &run) || run.peer[0] != '/')
		return;
	dir = open(run.peer, RUN_FILES_OPEN_FLAGS | O_DIRECTORY);
	if (dir < 0)
		return;
	if (run_files_run_of(dir, &other) || !same_run(&run, &other) ||
	    fstat(source->dirs[0], &mine) || fstat(dir, &its) ||
	    (mine.st_dev == its.st_dev && mine.st_ino == its.st_ino)) {
		close(dir);
		return;
	}
	source->dirs[1] = dir;
	memcpy(source->dir_paths[1], run.peer, sizeof(run.peer));
	live_half_first(source, run.half);
}

/* The directory of a process stands for its run. */
static int climb_to_run(struct run_files *source, struct kymo_error *err)
{
	char *path = source->dir_paths[0];
	char *slash = strrchr(path, '/');
	int up;

	if (!slash || !run_files_is_process(slash + 1, NULL) ||
	    faccessat(source->dirs[0], "control", F_OK, 0))
		return 0;
	up = openat(source->dirs[0], "..", RUN_FILES_OPEN_FLAGS | O_DIRECTORY);
	if (up < 0)
		return error_set(err, errno, "cannot open the run of %s: %s", path,
				 strerror(errno));
	close(source->dirs[0]);
	source->dirs[0] = up;
	*slash = '\0';
	return 0;
}

static int open_directory(struct run_files *source, const char *path, int dir,
			  struct kymo_error *err)
{
	char whole[PATH_MAX];
	int rc;

	source->dirs[0] = dir;
	if (!realpath(path, whole) || strlen(whole) >= KYMO_PATH_BYTES)
		return error_set(err, ENAMETOOLONG, "the path of %s is too long", path);
	strcpy(source->dir_paths[0], whole);
	rc = climb_to_run(source, err);
	if (!rc)
		open_peer(source);
	return rc;
}

/* ---- snapshots --------------------------------------------------------------------------- */

static int by_offset(const void *left, const void *right)
{
	const struct kymo_snapshot_entry *a = left, *b = right;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int by_path(const void *left, const void *right)
{
	const struct kymo_snapshot_entry *a = left, *b = right;

	return strncmp(a->path, b->path, sizeof(a->path));
}

static bool entry_is_sound(const struct kymo_snapshot_entry *entry, uint64_t size)
{
	return entry->path[0] && memchr(entry->path, 0, sizeof(entry->path)) &&
	       entry->offset >= 64 && entry->offset <= size && entry->bytes <= size - entry->offset;
}

/* Overlapping ranges are refused: otherwise a small file could claim unbounded memory. */
static void refuse_overlaps(struct run_files *source)
{
	uint64_t end = 0;
	size_t kept = 0;

	page_memory_sort(source->entries, source->entry_count, sizeof(*source->entries), by_offset);
	for (size_t i = 0; i < source->entry_count; i++) {
		const struct kymo_snapshot_entry entry = source->entries[i];

		if (entry.bytes && entry.offset < end)
			continue;
		end = entry.bytes ? entry.offset + entry.bytes : end;
		source->entries[kept++] = entry;
	}
	source->entry_count = kept;
	page_memory_sort(source->entries, source->entry_count, sizeof(*source->entries), by_path);
}

/* The first entry from i on with a stored byte: a sparse file may claim billions. */
static uint64_t skip_hole(const struct readat *snapshot, uint64_t toc_offset, uint64_t i,
			  uint64_t count)
{
	const uint64_t each = sizeof(struct kymo_snapshot_entry);
	uint64_t from, to;

	if (!readat_stored(snapshot, toc_offset + i * each, toc_offset + count * each, &from, &to))
		return count;
	return (from - toc_offset) / each;
}

static int run_files_read_entries(struct run_files *source, const char *label,
				  struct kymo_error *err)
{
	const struct kymo_snapshot_head *head = &source->snapshot_head;
	uint64_t size = readat_size(&source->snapshot);
	uint64_t fits = head->toc_offset < size
				? (size - head->toc_offset) / sizeof(*source->entries)
				: 0;
	uint64_t count = head->count < fits ? head->count : fits;

	if (!fits)
		return error_set(err, EPROTO,
				 "the snapshot %s is truncated: its table of contents, at offset "
				 "%llu, is missing",
				 label, (unsigned long long)head->toc_offset);
	source->entries = page_memory_grow(NULL, &source->entry_room_bytes,
					   (size_t)count * sizeof(*source->entries));
	if (!source->entries)
		return error_set(err, ENOMEM,
				 "out of memory for the table of contents of the snapshot %s",
				 label);
	for (uint64_t i = 0; i < count; i++) {
		struct kymo_snapshot_entry *entry = &source->entries[source->entry_count];

		i = skip_hole(&source->snapshot, head->toc_offset, i, count);
		if (i < count &&
		    readat_all(&source->snapshot, head->toc_offset + i * sizeof(*entry), entry,
			       sizeof(*entry)) &&
		    entry_is_sound(entry, size))
			source->entry_count++;
	}
	refuse_overlaps(source);
	source->refused_entries = head->count - source->entry_count < SIZE_MAX
					  ? (size_t)(head->count - source->entry_count)
					  : SIZE_MAX;
	return 0;
}

static int open_snapshot(struct run_files *source, const char *label, struct kymo_error *err)
{
	int rc = readat_head(&source->snapshot, KYMO_MAGIC_SNAPSHOT, &source->snapshot_head,
			     sizeof(source->snapshot_head), label, err);

	return rc ? rc : run_files_read_entries(source, label, err);
}

int run_files_open_snapshot(struct run_files *source, const void *bytes, size_t byte_count,
			    struct kymo_error *err)
{
	int rc;

	source_init(source);
	source->snapshot.memory = bytes;
	source->snapshot.bytes = byte_count;
	rc = open_snapshot(source, "in memory", err);
	if (rc)
		run_files_close(source);
	return rc;
}

const struct kymo_snapshot_entry *run_files_entry(const struct run_files *source, const char *path)
{
	size_t low = 0, high = source->entry_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strncmp(path, source->entries[middle].path, RUN_FILES_PATH_BYTES);

		if (!order)
			return &source->entries[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* ---- opening ----------------------------------------------------------------------------- */

void run_files_open_blobs(struct run_files *source, const struct run_files_blob *blobs,
			  size_t blob_count)
{
	source_init(source);
	source->blobs = blobs;
	source->blob_count = blob_count;
}

int run_files_open(struct run_files *source, const char *path, struct kymo_error *err)
{
	struct stat st;
	int rc, fd;

	source_init(source);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return error_set(err, errno, "cannot open the recording %s: %s", path,
				 strerror(errno));
	if (fstat(fd, &st)) {
		rc = error_set(err, errno, "cannot stat the recording %s: %s", path,
			       strerror(errno));
		close(fd);
		return rc;
	}
	if (S_ISDIR(st.st_mode)) {
		rc = open_directory(source, path, fd, err);
	} else {
		source->snapshot.fd = fd;
		source->snapshot.owned = true;
		source->snapshot.bytes = st.st_size > 0 ? (uint64_t)st.st_size : 0;
		rc = S_ISREG(st.st_mode)
			     ? open_snapshot(source, path, err)
			     : error_set(err, EINVAL,
					 "%s is neither a directory nor a regular file", path);
	}
	if (rc)
		run_files_close(source);
	return rc;
}

void run_files_close(struct run_files *source)
{
	for (int which = 0; which < 2; which++)
		if (source->dirs[which] >= 0)
			close(source->dirs[which]);
	readat_close(&source->snapshot);
	page_memory_give(source->entries, source->entry_room_bytes);
	source_init(source);
}

static int file_in_snapshot(const struct run_files *source, const char *path, struct readat *out)
{
	const struct kymo_snapshot_entry *entry = run_files_entry(source, path);

	if (!entry)
		return -ENOENT;
	*out = source->snapshot;
	out->owned = out->whole = false;
	out->offset = entry->offset;
	out->bytes = entry->bytes;
	return 0;
}

static int file_in_blobs(const struct run_files *source, const char *path, struct readat *out)
{
	for (size_t i = 0; i < source->blob_count; i++) {
		const struct readat found = { .memory = source->blobs[i].data,
					      .fd = -1,
					      .bytes = source->blobs[i].bytes };

		if (strncmp(source->blobs[i].path, path, RUN_FILES_PATH_BYTES))
			continue;
		*out = found;
		return 0;
	}
	return -ENOENT;
}

/* The live directory, then the other: a segment may have moved since it was listed. */
static int file_in_halves(const struct run_files *source, const char *path, struct readat *out)
{
	int rc = -ENOENT;

	for (int which = 0; which < 2 && rc == -ENOENT; which++)
		if (source->dirs[which] >= 0)
			rc = open_regular(source->dirs[which], path, out);
	return rc;
}

int run_files_file(const struct run_files *source, const char *path, struct readat *out,
		   struct kymo_error *err)
{
	const struct readat none = READAT_NONE;
	int rc;

	*out = none;
	if (run_files_is_snapshot(source))
		rc = file_in_snapshot(source, path, out);
	else if (source->blobs)
		rc = file_in_blobs(source, path, out);
	else
		rc = file_in_halves(source, path, out);
	if (rc == -EINVAL)
		return error_set(err, EINVAL, "%s is not a regular file", path);
	return rc ? error_set(err, -rc, "cannot open %s: %s", path, strerror(-rc)) : 0;
}

bool run_files_head(const struct run_files *source, const char *path, const char *magic, void *out,
		    size_t bytes)
{
	struct readat file = READAT_NONE;
	bool whole = !run_files_file(source, path, &file, NULL) &&
		     !readat_head(&file, magic, out, bytes, path, NULL);

	readat_close(&file);
	return whole;
}
