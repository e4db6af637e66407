/*
 * What is mapped where in each sampled process, from the records of the kernel, so that addresses
 * of a process that has ended can still be resolved; and the files, which processes share.
 */
#ifndef KYMO_COLLECT_PERF_ADDRESS_SPACE_H
#define KYMO_COLLECT_PERF_ADDRESS_SPACE_H

#include <sys/types.h>

#include "collect/symbols/elf_image.h"
#include "collect/symbols/elf_symbols.h"
#include "collect/frames/frame_rules.h"
#include "collect/perf/perf_record.h"

/* A file with code. Read when the first sample is in it. */
struct module {
	char *path; /* in the process's mount namespace */
	uint64_t device, inode;
	pid_t pid; /* a process that mapped it, whose mount namespace it is opened in */
	bool tried; /* opened, or failed to open */
	bool open;
	struct elf_image image;
	struct frame_table frames;
	bool symbols_tried;
	struct elf_symbols symbols;
	struct elf_image debug; /* a separate file with symbols; fd -1: none */
	bool has_lines; /* the file or its separate file has debug information */
	uint32_t number;
	uint32_t path_name; /* of kymo's names; 0: none yet */
	struct module *next;
};

struct mapping {
	uint64_t start, end, file_offset;
	struct module *module; /* NULL: memory without a file, such as compiled code */
};

struct address_space {
	pid_t pid;
	struct mapping *mappings; /* by address */
	size_t count, room;
	bool ended;
	uint64_t refreshed_ns; /* when /proc/PID/maps was read */
	struct jit_map *jit; /* names of compiled code; NULL: not looked for yet */
	bool jit_tried;
	uint64_t jit_next_ns; /* it is not read again before */
	struct address_space *next;
};

#define ADDRESS_SPACES_BUCKETS 1024
struct address_spaces {
	struct address_space *buckets[ADDRESS_SPACES_BUCKETS];
	struct module *files[ADDRESS_SPACES_BUCKETS]; /* by inode */
	uint32_t module_count;
};

void address_spaces_fini(struct address_spaces *spaces);
/* The space of a process, made if there is none; NULL: out of memory. */
struct address_space *address_spaces_get(struct address_spaces *spaces, pid_t pid);
struct address_space *address_spaces_find(struct address_spaces *spaces, pid_t pid);
/* Records that change spaces. */
void address_spaces_take(struct address_spaces *spaces, const struct perf_record *record);
/* Reads /proc/PID/maps: for a process that ran before, and where an address is in no mapping. */
void address_spaces_refresh(struct address_spaces *spaces, struct address_space *space,
			    uint64_t now_ns);
/* Frees the spaces of processes that have ended, and empty ones. */
void address_spaces_forget_ended(struct address_spaces *spaces);
/* NULL: nothing is mapped there. */
const struct mapping *address_space_at(const struct address_space *space, uint64_t address);
/* Opens the file of a module if it is the one that was mapped. */
bool module_open(struct module *module);
/* Its symbols are read on the first call. */
const struct elf_symbols *module_symbols(struct module *module);
/* The image that the symbols were read from. */
const struct elf_image *module_symbol_image(const struct module *module);
/* The address in the file of an address in the process; false: not in the file's segments. */
bool module_address(struct module *module, const struct mapping *mapping, uint64_t address,
		    uint64_t *out);

#endif
