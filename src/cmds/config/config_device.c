#include "cmds/config/config_device.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALLED "kymo_device_" /* what a program imports that records devices by itself */
#define HEADS_MOST 64
#define ENTRIES_MOST 256
#define NAMES_BYTES_MOST (8u << 20)

bool config_device_is(const struct settings_key *key, const struct settings_value *value)
{
	return value->number && !strcmp(key->name, "device");
}

/* ---- names that an ELF file imports ---------------------------------------------------------- */

struct elf_names {
	int fd;
	Elf64_Phdr heads[HEADS_MOST];
	size_t head_count;
};

static bool read_at(int fd, void *out, size_t bytes, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, out, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool read_heads(struct elf_names *elf)
{
	Elf64_Ehdr head;

	if (!read_at(elf->fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr))
		return false;
	elf->head_count = head.e_phnum < HEADS_MOST ? head.e_phnum : HEADS_MOST;
	return read_at(elf->fd, elf->heads, elf->head_count * sizeof(Elf64_Phdr), head.e_phoff);
}

/* Where in the file the bytes of an address are; false: nowhere. */
static bool find_offset(const struct elf_names *elf, uint64_t address, uint64_t *out)
{
	for (size_t i = 0; i < elf->head_count; i++) {
		const Elf64_Phdr *head = &elf->heads[i];

		if (head->p_type != PT_LOAD || address < head->p_vaddr ||
		    address - head->p_vaddr >= head->p_filesz)
			continue;
		*out = head->p_offset + (address - head->p_vaddr);
		return true;
	}
	return false;
}

/* The place and the size of the names of dynamic symbols. */
static bool find_names(const struct elf_names *elf, uint64_t *out_offset, uint64_t *out_bytes)
{
	Elf64_Dyn entries[ENTRIES_MOST];
	uint64_t address = 0;
	size_t count = 0;

	for (size_t i = 0; i < elf->head_count && !count; i++)
		if (elf->heads[i].p_type == PT_DYNAMIC) {
			count = elf->heads[i].p_filesz / sizeof(entries[0]);
			count = count < ENTRIES_MOST ? count : ENTRIES_MOST;
			if (!read_at(elf->fd, entries, count * sizeof(entries[0]),
				     elf->heads[i].p_offset))
				return false;
		}
	*out_bytes = 0;
	for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_STRTAB)
			address = entries[i].d_un.d_ptr;
		if (entries[i].d_tag == DT_STRSZ)
			*out_bytes = entries[i].d_un.d_val;
	}
	return *out_bytes && find_offset(elf, address, out_offset);
}

static bool names_call(int fd)
{
	struct elf_names elf = { .fd = fd };
	uint64_t offset, bytes;
	char *names;
	bool found;

	if (!read_heads(&elf) || !find_names(&elf, &offset, &bytes))
		return false;
	bytes = bytes < NAMES_BYTES_MOST ? bytes : NAMES_BYTES_MOST;
	names = malloc(bytes);
	found = names && read_at(fd, names, bytes, offset) &&
		memmem(names, bytes, CALLED, strlen(CALLED));
	free(names);
	return found;
}

/* ---- files that the program has mapped ------------------------------------------------------- */

static bool file_calls(int32_t pid, const char *name)
{
	char path[KYMO_PATH_BYTES + 32];
	struct stat st;
	bool calls;
	int fd;

	/* Through its root, since it may have another one. */
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	calls = !fstat(fd, &st) && S_ISREG(st.st_mode) && names_call(fd);
	close(fd);
	return calls;
}

/* "7f00-7f10 r--p 00000000 fd:00 123 /usr/lib/x.so": the beginning of a file. libkymo itself
   defines these names. */
static bool line_calls(int32_t pid, char *line)
{
	unsigned long long offset;
	char *path = strchr(line, '/');

	if (!path || sscanf(line, "%*s %*s %llx", &offset) != 1 || offset)
		return false;
	path[strcspn(path, "\n")] = '\0';
	return strncmp(strrchr(path, '/') + 1, "libkymo.so", 10) != 0 && file_calls(pid, path);
}

bool config_device_can_apply(const struct kymo_control *control)
{
	char path[32], *line = NULL;
	size_t room = 0;
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)control->pid);
	maps = fopen(path, "re");
	if (!maps)
		return true;
	while (!found && getline(&line, &room, maps) > 0)
		found = line_calls(control->pid, line);
	free(line);
	fclose(maps);
	return found;
}

int config_device_refuse(const struct kymo_control *control, struct kymo_error *err)
{
	return error_set(err, ENOTSUP,
			 "device of pid %d cannot be turned on: nothing that it has loaded records "
			 "devices; start an OpenCL program with kymo run --device, or call "
			 "<kymo/device.h>",
			 control->pid);
}
