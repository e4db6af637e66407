#include "collect/perf/address_space.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/grow.h"
#include "collect/native/maps.h"
#include "collect/symbols/jit_map.h"

#define MAPPINGS_MOST 65536 /* of a process */
#define MODULES_MOST 65536
#define REFRESH_NS 200000000ull
#define FREE_FILES 128u

/* ---- files ----------------------------------------------------------------------------------- */

static int take_vdso(void *context, const struct maps_row *row)
{
	struct module *module = context;

	if (strcmp(row->path, "[vdso]") != 0)
		return 0;
	module->open = !elf_image_open_memory(&module->image, (const void *)(uintptr_t)row->start,
					      (size_t)(row->end - row->start));
	return 1;
}

/* The kernel maps the same code into every process, so this process's own is read. */
static void open_vdso(struct module *module)
{
	maps_each(getpid(), take_vdso, module);
}

/* Overlay file systems, of containers, show another device in maps than in stat, and with some
   options another inode, too. */
static bool is_overlay(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static bool is_same_file(const struct module *module, int fd)
{
	struct stat st;

	return !module->inode || (!fstat(fd, &st) && (uint64_t)st.st_ino == module->inode) ||
	       is_overlay(fd);
}

/* Files stay open, and a program may map very many: some descriptors stay free for the recording.
   Numbers are given out from the lowest. */
static int open_if_few(const char *path)
{
	int fd = maps_open_regular(path);
	struct rlimit limit;

	if (fd >= 0 && !getrlimit(RLIMIT_NOFILE, &limit) &&
	    limit.rlim_cur - (rlim_t)fd <= FREE_FILES && limit.rlim_cur > 2 * FREE_FILES) {
		close(fd);
		return -EMFILE;
	}
	return fd;
}

/* A process that has ended has no root any more; its files are usually ours. */
static int open_path(const struct module *module)
{
	char path[MAPS_PATH_BYTES + 32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)module->pid, module->path);
	fd = open_if_few(path);
	return fd >= 0 ? fd : open_if_few(module->path);
}

static void open_file(struct module *module)
{
	int fd = open_path(module);

	if (fd < 0)
		return;
	if (!is_same_file(module, fd)) {
		close(fd);
		return;
	}
	module->open = !elf_image_open(&module->image, fd);
}

/* Debian, Fedora and others install debug information by build id. */
static void open_debug(struct module *module)
{
	char path[128] = "/usr/lib/debug/.build-id/";
	size_t at = strlen(path);
	int fd;

	if (module->image.build_id_bytes < 4)
		return;
	for (unsigned i = 0; i < module->image.build_id_bytes; i++)
		at += (size_t)snprintf(path + at, sizeof(path) - at, "%02x%s",
				       module->image.build_id[i], i ? "" : "/");
	snprintf(path + at, sizeof(path) - at, ".debug");
	fd = open_if_few(path);
	if (fd >= 0 && elf_image_open(&module->debug, fd))
		module->debug.fd = -1;
}

static bool has_debug_lines(const struct elf_image *image)
{
	struct elf_image_section section;

	return elf_image_section(image, SHT_PROGBITS, ".debug_line", &section) ||
	       elf_image_section(image, SHT_PROGBITS, ".zdebug_line", &section);
}

bool module_open(struct module *module)
{
	if (module->tried)
		return module->open;
	module->tried = true;
	module->image.fd = module->debug.fd = -1;
	if (!strcmp(module->path, "[vdso]"))
		open_vdso(module);
	else if (module->path[0] == '/')
		open_file(module);
	if (!module->open)
		return false;
	frame_table_init(&module->frames, &module->image);
	if (module->image.fd >= 0)
		open_debug(module);
	module->has_lines = has_debug_lines(&module->image) ||
			    (module->debug.fd >= 0 && has_debug_lines(&module->debug));
	return true;
}

const struct elf_image *module_symbol_image(const struct module *module)
{
	return module->debug.fd >= 0 ? &module->debug : &module->image;
}

const struct elf_symbols *module_symbols(struct module *module)
{
	struct elf_image_section table;

	if (!module->symbols_tried) {
		module->symbols_tried = true;
		/* A separate file without symbols is of no use for names. */
		if (module->debug.fd >= 0 &&
		    !elf_image_section(&module->debug, SHT_SYMTAB, NULL, &table))
			elf_image_close(&module->debug);
		elf_symbols_load(&module->symbols, module_symbol_image(module));
	}
	return &module->symbols;
}

bool module_address(struct module *module, const struct mapping *mapping, uint64_t address,
		    uint64_t *out)
{
	uint64_t in_file;

	/* The vdso is mapped from its first byte. */
	if (module->image.memory) {
		*out = address - mapping->start + module->image.parts[0].address;
		return module->image.part_count > 0;
	}
	if (!elf_image_address(&module->image, mapping->file_offset, &in_file))
		return false;
	*out = in_file + (address - mapping->start);
	return true;
}

static void module_free(struct module *module)
{
	if (module->open) {
		frame_table_fini(&module->frames);
		elf_symbols_fini(&module->symbols);
		elf_image_close(&module->image);
		elf_image_close(&module->debug);
	}
	free(module->path);
	free(module);
}

/* ---- modules --------------------------------------------------------------------------------- */

struct mapped_file {
	const char *path;
	uint64_t device, inode;
};

static bool is_module(const struct module *module, const struct mapped_file *file)
{
	return module->inode == file->inode && module->device == file->device &&
	       !strcmp(module->path, file->path);
}

static struct module *module_of(struct address_spaces *spaces, const struct mapped_file *file,
				pid_t pid)
{
	struct module **bucket = &spaces->files[file->inode % ADDRESS_SPACES_BUCKETS];
	struct module *module = *bucket;

	while (module && !is_module(module, file))
		module = module->next;
	if (module) {
		if (!module->tried)
			module->pid = pid; /* the newest one is the likeliest to be alive */
		return module;
	}
	module = spaces->module_count < MODULES_MOST ? calloc(1, sizeof(*module)) : NULL;
	if (!module)
		return NULL;
	module->path = strdup(file->path);
	if (!module->path) {
		free(module);
		return NULL;
	}
	module->device = file->device;
	module->inode = file->inode;
	module->pid = pid;
	module->number = spaces->module_count++;
	module->next = *bucket;
	*bucket = module;
	return module;
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* The first mapping that ends after the address. */
static size_t first_after(const struct address_space *space, uint64_t address)
{
	size_t low = 0, high = space->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->mappings[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct mapping *address_space_at(const struct address_space *space, uint64_t address)
{
	size_t at = first_after(space, address);

	return at < space->count && space->mappings[at].start <= address ? &space->mappings[at]
									 : NULL;
}

/* Inserts before `at`. */
static bool address_space_insert(struct address_space *space, size_t at,
				 const struct mapping *mapping)
{
	if (space->count >= MAPPINGS_MOST ||
	    !grow((void **)&space->mappings, &space->room, space->count, sizeof(*mapping)))
		return false;
	memmove(&space->mappings[at + 1], &space->mappings[at],
		(space->count - at) * sizeof(*mapping));
	space->mappings[at] = *mapping;
	space->count++;
	return true;
}

/* A new mapping replaces what was there; a larger one keeps its other parts. */
static void put_mapping(struct address_space *space, const struct mapping *mapping)
{
	size_t at = first_after(space, mapping->start), until;
	struct mapping *old = at < space->count ? &space->mappings[at] : NULL;

	if (old && old->start < mapping->start) {
		struct mapping rest = *old;

		old->end = mapping->start;
		rest.file_offset += mapping->start - rest.start;
		rest.start = mapping->start;
		if (!address_space_insert(space, ++at, &rest))
			return;
	}
	for (until = at; until < space->count && space->mappings[until].end <= mapping->end;)
		until++;
	if (until < space->count && space->mappings[until].start < mapping->end) {
		struct mapping *last = &space->mappings[until];

		last->file_offset += mapping->end - last->start;
		last->start = mapping->end;
	}
	if (until > at) { /* the first of them is reused */
		space->mappings[at] = *mapping;
		memmove(&space->mappings[at + 1], &space->mappings[until],
			(space->count - until) * sizeof(*mapping));
		space->count -= until - at - 1;
	} else {
		address_space_insert(space, at, mapping);
	}
}

/* ---- spaces ---------------------------------------------------------------------------------- */

struct address_space *address_spaces_find(struct address_spaces *spaces, pid_t pid)
{
	struct address_space *space = spaces->buckets[(unsigned)pid % ADDRESS_SPACES_BUCKETS];

	while (space && space->pid != pid)
		space = space->next;
	return space;
}

struct address_space *address_spaces_get(struct address_spaces *spaces, pid_t pid)
{
	struct address_space *space = address_spaces_find(spaces, pid), **bucket;

	if (space)
		return space;
	space = calloc(1, sizeof(*space));
	if (!space)
		return NULL;
	bucket = &spaces->buckets[(unsigned)pid % ADDRESS_SPACES_BUCKETS];
	space->pid = pid;
	space->next = *bucket;
	*bucket = space;
	return space;
}

static void clear(struct address_space *space)
{
	jit_map_free(space->jit);
	space->jit = NULL;
	space->jit_tried = false;
	space->count = 0;
	space->refreshed_ns = 0;
}

static void address_space_free(struct address_space *space)
{
	clear(space);
	free(space->mappings);
	free(space);
}

static void take_mmap(struct address_spaces *spaces, const struct perf_record *record)
{
	struct address_space *space = address_spaces_get(spaces, record->pid);
	struct mapped_file file = { .path = record->mmap.path,
				    .device = record->mmap.device,
				    .inode = record->mmap.inode };
	struct mapping mapping = { .start = record->mmap.start,
				   .end = record->mmap.start + record->mmap.bytes,
				   .file_offset = record->mmap.file_offset };

	if (!space || mapping.end <= mapping.start)
		return;
	if (file.path[0] == '/' && strncmp(file.path, "//anon", 6) != 0)
		mapping.module = module_of(spaces, &file, record->pid);
	else if (!strcmp(file.path, "[vdso]"))
		mapping.module = module_of(spaces, &file, record->pid);
	put_mapping(space, &mapping);
}

/* A new process has a copy of its parent's mappings; a new thread shares them. */
static void take_fork(struct address_spaces *spaces, const struct perf_record *record)
{
	struct address_space *parent, *child;

	if (record->pid == record->fork.parent_pid)
		return;
	child = address_spaces_get(spaces, record->pid);
	parent = address_spaces_find(spaces, record->fork.parent_pid);
	if (!child)
		return;
	clear(child); /* the pid may have been used before */
	child->ended = false;
	for (size_t i = 0; parent && i < parent->count; i++)
		if (!address_space_insert(child, i, &parent->mappings[i]))
			break;
}

void address_spaces_take(struct address_spaces *spaces, const struct perf_record *record)
{
	struct address_space *space;

	if (record->kind == PERF_RECORD_OF_MMAP)
		take_mmap(spaces, record);
	else if (record->kind == PERF_RECORD_OF_FORK)
		take_fork(spaces, record);
	else if (record->kind == PERF_RECORD_OF_NAME && record->name.exec &&
		 (space = address_spaces_find(spaces, record->pid)))
		clear(space);
	else if (record->kind == PERF_RECORD_OF_EXIT && record->tid == record->pid &&
		 (space = address_spaces_find(spaces, record->pid)))
		space->ended = true;
}

struct refreshing {
	struct address_spaces *spaces;
	struct address_space *space;
};

static int take_row(void *context, const struct maps_row *row)
{
	struct refreshing *refreshing = context;
	struct mapped_file file = { .path = row->path };
	struct mapping mapping = { .start = row->start,
				   .end = row->end,
				   .file_offset = row->offset };

	if (row->mode[2] != 'x' || row->end <= row->start)
		return 0;
	file.inode = row->inode;
	file.device = row->device;
	if (row->path[0] == '/' || !strcmp(row->path, "[vdso]"))
		mapping.module = module_of(refreshing->spaces, &file, refreshing->space->pid);
	put_mapping(refreshing->space, &mapping);
	return refreshing->space->count >= MAPPINGS_MOST;
}

void address_spaces_refresh(struct address_spaces *spaces, struct address_space *space,
			    uint64_t now_ns)
{
	struct refreshing refreshing = { spaces, space };

	if (space->refreshed_ns && now_ns - space->refreshed_ns < REFRESH_NS)
		return;
	space->refreshed_ns = now_ns;
	maps_each(space->pid, take_row, &refreshing);
}

void address_spaces_forget_ended(struct address_spaces *spaces)
{
	for (size_t i = 0; i < ADDRESS_SPACES_BUCKETS; i++)
		for (struct address_space **at = &spaces->buckets[i]; *at;) {
			struct address_space *space = *at;

			/* One without mappings was asked for after its process had ended. */
			if (!space->ended && space->count) {
				at = &space->next;
				continue;
			}
			*at = space->next;
			address_space_free(space);
		}
}

void address_spaces_fini(struct address_spaces *spaces)
{
	for (size_t i = 0; i < ADDRESS_SPACES_BUCKETS; i++)
		for (struct address_space *space = spaces->buckets[i], *next; space; space = next) {
			next = space->next;
			address_space_free(space);
		}
	for (size_t i = 0; i < ADDRESS_SPACES_BUCKETS; i++)
		for (struct module *module = spaces->files[i], *next; module; module = next) {
			next = module->next;
			module_free(module);
		}
	memset(spaces, 0, sizeof(*spaces));
}
