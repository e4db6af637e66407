#include "collect/symbols/jit_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"

#define FILE_MOST (64u << 20)
#define READ_BYTES (64u << 10) /* at once */
#define ENTRIES_MOST (1u << 20)
#define NAME_MOST 512

struct jit_entry {
	uint64_t start, bytes;
	uint32_t name; /* offset in names */
	uint32_t order;
};

struct jit_map {
	struct jit_entry *entries; /* by start, then by order */
	size_t count, room;
	char *names; /* each ends with a 0 */
};

/* ---- text ------------------------------------------------------------------------------------ */

/* "7f0000001000 40 name of a function": hexadecimal, without 0x in most files. */
static bool parse_line(char *line, struct jit_entry *out, char **out_name)
{
	char *end;

	errno = 0;
	out->start = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return false;
	line = end + 1;
	out->bytes = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || errno || !out->bytes || !end[1] ||
	    out->start > UINT64_MAX - out->bytes)
		return false;
	*out_name = end + 1;
	return true;
}

/* Control characters are escaped where they are printed; a broken UTF-8 text is not a name. */
static void cut_name(char *name)
{
	size_t bytes = strnlen(name, NAME_MOST);

	while (bytes && bytes == NAME_MOST && ((unsigned char)name[bytes] & 0xc0) == 0x80)
		bytes--;
	name[bytes] = '\0';
	for (char *at = name; *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
}

static int by_start(const void *a, const void *b)
{
	const struct jit_entry *one = a, *other = b;

	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	return one->order < other->order ? -1 : one->order > other->order;
}

static void parse_all(struct jit_map *map)
{
	char *line = map->names, *next, *name;

	for (; line && *line && map->count < ENTRIES_MOST; line = next) {
		struct jit_entry entry = { .order = (uint32_t)map->count };

		next = strchr(line, '\n');
		if (!next)
			break; /* the last line is still being written */
		*next++ = '\0';
		if (!parse_line(line, &entry, &name))
			continue;
		cut_name(name);
		entry.name = (uint32_t)(name - map->names);
		if (!grow((void **)&map->entries, &map->room, map->count, sizeof(entry)))
			break;
		map->entries[map->count++] = entry;
	}
	if (map->count)
		qsort(map->entries, map->count, sizeof(*map->entries), by_start);
}

struct jit_map *jit_map_parse(const char *text, size_t bytes)
{
	struct jit_map *map = calloc(1, sizeof(*map));

	if (map)
		map->names = malloc(bytes + 1);
	if (!map || !map->names) {
		free(map);
		return NULL;
	}
	memcpy(map->names, text, bytes);
	map->names[bytes] = '\0';
	parse_all(map);
	return map;
}

void jit_map_free(struct jit_map *map)
{
	if (!map)
		return;
	free(map->entries);
	free(map->names);
	free(map);
}

/* Entries may overlap, as code is compiled again: a few before the last one are looked at. */
#define LOOK_BACK 32
const char *jit_map_find(const struct jit_map *map, uint64_t address, uint64_t *out_start)
{
	const struct jit_entry *found = NULL;
	size_t low = 0, high = map ? map->count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < LOOK_BACK && i < low; i++) {
		const struct jit_entry *entry = &map->entries[low - 1 - i];

		if (address - entry->start < entry->bytes &&
		    (!found || entry->order > found->order))
			found = entry;
	}
	if (found)
		*out_start = found->start;
	return found ? map->names + found->name : NULL;
}

/* ---- file ------------------------------------------------------------------------------------ */

static bool belongs_to(const struct stat *file, pid_t pid)
{
	char path[32];
	struct stat process;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (file->st_uid == geteuid())
		return true;
	return !stat(path, &process) && process.st_uid == file->st_uid;
}

/* The number that the process has in its own namespace. */
static pid_t own_pid(pid_t pid)
{
	char path[32], line[256];
	long found = pid;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "NSpid:", 6)) {
			const char *last = strrchr(line, '\t');

			found = last ? strtol(last + 1, NULL, 10) : pid;
		}
	if (file)
		fclose(file);
	return (pid_t)found;
}

/* The map of the process with that number, below a directory; -1: none. */
static int open_map_below(const char *directory, pid_t number)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/tmp/perf-%d.map", directory, (int)number);
	return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

static int open_map(pid_t pid)
{
	char directory[32]; /* the root of the process, which may be in a container */
	struct stat st;
	int fd;

	snprintf(directory, sizeof(directory), "/proc/%d/root", (int)pid);
	fd = open_map_below(directory, own_pid(pid));
	if (fd < 0) /* it has ended */
		fd = open_map_below("", pid);
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || !belongs_to(&st, pid))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Up to a NUL: behind it there is no text, but perhaps a hole. */
static size_t jit_map_read_text(int fd, char *text, size_t bytes)
{
	size_t got = 0;

	while (got < bytes) {
		size_t wanted = bytes - got < READ_BYTES ? bytes - got : READ_BYTES;
		ssize_t part = read(fd, text + got, wanted);
		const char *end = part > 0 ? memchr(text + got, '\0', (size_t)part) : NULL;

		if (end)
			return (size_t)(end - text);
		if (part <= 0)
			break;
		got += (size_t)part;
	}
	return got;
}

struct jit_map *jit_map_open(pid_t pid)
{
	struct jit_map *map = NULL;
	int fd = open_map(pid);
	struct stat st;
	size_t bytes;
	char *text;

	if (fd < 0 || fstat(fd, &st) || st.st_size <= 0)
		goto out;
	bytes = st.st_size < FILE_MOST ? (size_t)st.st_size : FILE_MOST;
	text = malloc(bytes);
	if (text)
		map = jit_map_parse(text, jit_map_read_text(fd, text, bytes));
	free(text);
out:
	if (fd >= 0)
		close(fd);
	return map;
}
