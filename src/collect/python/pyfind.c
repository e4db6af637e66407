#include "collect/python/pyfind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collect/native/elfsym.h"
#include "collect/native/maps.h"
#include "collect/native/process_memory.h"

/* Addresses found in a file, cached because a program may start hundreds of workers. */
struct known_file {
	uint64_t device, inode;
	int64_t changed_ns;
	uint64_t runtime, version; /* addresses in the file; 0: none */
	bool used;
};
#define KNOWN_FILES 32
static __thread struct known_file known_files[KNOWN_FILES];
static __thread unsigned known_next;

#define FILES_MOST 1024 /* of a process that are searched; extension modules are among them */

struct search {
	pid_t pid;
	uint64_t inode_seen[FILES_MOST];
	size_t seen_count;
	bool first; /* the next row with a file is the program */
	uint64_t runtime, version; /* addresses in the process */
	char path[MAPS_PATH_BYTES];
	int error; /* errno of the last file that could not be opened */
};

static bool may_contain_python(const struct search *search, const struct maps_row *row)
{
	const char *base = strrchr(row->path, '/');

	if (!base)
		return false;
	return search->first || strstr(base, "python");
}

static bool is_seen(struct search *search, const struct maps_row *row)
{
	for (size_t i = 0; i < search->seen_count; i++)
		if (search->inode_seen[i] == row->inode)
			return true;
	if (search->seen_count == FILES_MOST)
		return true;
	search->inode_seen[search->seen_count++] = row->inode;
	return false;
}

static void pyfind_symbols(struct known_file *known, const struct elfsym *elf)
{
	known->runtime = elfsym_find(elf, "_PyRuntime");
	if (!known->runtime)
		known->runtime = elfsym_section(elf, ".PyRuntime");
	known->version = known->runtime ? elfsym_find(elf, "Py_Version") : 0;
}

static struct known_file *find_known_file(const struct stat *st)
{
	int64_t changed = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
	struct known_file *known;

	for (size_t i = 0; i < KNOWN_FILES; i++)
		if (known_files[i].used && known_files[i].inode == st->st_ino &&
		    known_files[i].device == st->st_dev && known_files[i].changed_ns == changed)
			return &known_files[i];
	known = &known_files[known_next++ % KNOWN_FILES];
	*known = (struct known_file){ .device = st->st_dev,
				      .inode = st->st_ino,
				      .changed_ns = changed };
	return known;
}

static int pyfind_look_at(void *context, const struct maps_row *row)
{
	struct search *search = context;
	char path[MAPS_PATH_BYTES + 64];
	struct known_file *known;
	struct elfsym elf;
	uint64_t bias;
	struct stat st;
	int rc;

	if (row->path[0] != '/' || !may_contain_python(search, row) || is_seen(search, row))
		return 0;
	search->first = false;
	if (process_memory_late())
		return -ETIMEDOUT;
	maps_file(search->pid, row, path, sizeof(path));
	rc = stat(path, &st) ? -errno : elfsym_open(&elf, path);
	if (rc) {
		search->error = -rc;
		return 0;
	}
	known = find_known_file(&st);
	if (!known->used) {
		pyfind_symbols(known, &elf);
		known->used = true;
	}
	if (known->runtime && elfsym_bias(&elf, row->start, row->offset, &bias)) {
		search->runtime = known->runtime + bias;
		search->version = known->version ? known->version + bias : 0;
		snprintf(search->path, sizeof(search->path), "%s", row->path);
	}
	elfsym_close(&elf);
	return search->runtime != 0;
}

/* The version from a name such as "libpython3.10.so.1.0" or "python3.10", for a Python without
   Py_Version. */
static uint32_t version_by_name(const char *path)
{
	const char *at = strstr(path, "python3.");
	long minor = at ? strtol(at + 8, NULL, 10) : 0;

	return minor > 0 && minor < 64 ? 0x03000000u | (uint32_t)minor << 16 : 0;
}

static int not_supported(uint32_t version, pid_t pid, struct kymo_error *err)
{
	if (!version)
		return error_set(err, ENOTSUP,
				 "cannot find the version of Python in process %d; 3.%d to 3.%d "
				 "are supported",
				 (int)pid, PYLAYOUT_OLDEST, PYLAYOUT_NEWEST);
	return error_set(err, ENOTSUP, "process %d runs Python %u.%u; 3.%d to 3.%d are supported",
			 (int)pid, version >> 24, version >> 16 & 0xff, PYLAYOUT_OLDEST,
			 PYLAYOUT_NEWEST);
}

static int take_layout(pid_t pid, struct pyfind *out, struct kymo_error *err)
{
	int minor = (int)(out->version >> 16 & 0xff);
	const struct pylayout *layout = pylayout_find(minor);
	unsigned char described[PYLAYOUT_DEBUG_BYTES];
	int rc;

	if (out->version >> 24 != 3 || !layout || minor > PYLAYOUT_NEWEST)
		return not_supported(out->version, pid, err);
	out->layout = *layout;
	if (minor < 13)
		return 0;
	rc = process_memory_read(pid, out->runtime, described, sizeof(described));
	if (rc)
		return process_memory_refused(err, pid, -rc);
	if (pylayout_describe(&out->layout, described, sizeof(described)))
		return error_set(err, ENOTSUP,
				 "the Python of process %d has another layout than 3.%d", (int)pid,
				 minor);
	return ((const uint64_t *)(const void *)described)[2]
		       ? error_set(err, ENOTSUP,
				   "process %d runs a free-threaded Python, which is not supported",
				   (int)pid)
		       : 0;
}

int pyfind_process(pid_t pid, struct pyfind *out, struct kymo_error *err)
{
	struct search search = { .pid = pid, .first = true };
	uint64_t word = 0;
	int rc = maps_each(pid, pyfind_look_at, &search);

	memset(out, 0, sizeof(*out));
	if (rc < 0)
		return process_memory_refused(err, pid, rc == -ENOENT ? ESRCH : -rc);
	if (!search.runtime) {
		if (search.error == EACCES || search.error == EPERM)
			return process_memory_refused(err, pid, search.error);
		return error_set(err, ENOENT, "process %d has no Python", (int)pid);
	}
	out->runtime = search.runtime;
	rc = search.version ? process_memory_read(pid, search.version, &word, sizeof(word)) : 0;
	if (rc)
		return process_memory_refused(err, pid, -rc);
	out->version = word ? (uint32_t)word : version_by_name(search.path);
	return take_layout(pid, out, err);
}
