/*
 * The file is read by copying, never mapped: the program that it belongs to may truncate it at any
 * time, and a mapping would raise SIGBUS.
 */
#include "collect/native/elfsym.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/native/maps.h"
#include "collect/native/process_memory.h"

#define STRINGS_MOST (256u << 20) /* bytes of the names of a table */
#define SYMBOLS_MOST 8000000u /* of a table; the largest libraries have about a million */
#define SYMBOLS_AT_ONCE 8192u

/* Reads `count` entries at an offset; NULL: they exceed the file, or no memory. The caller frees
   them. */
static void *elfsym_read(const struct elfsym *elf, uint64_t offset, uint64_t count, size_t entry)
{
	size_t bytes, done = 0;
	char *out;

	if (offset > elf->bytes || count > (elf->bytes - offset) / entry)
		return NULL;
	bytes = (size_t)count * entry;
	out = malloc(bytes + 1);
	while (out && done < bytes) {
		ssize_t got = pread(elf->fd, out + done, bytes - done, (off_t)(offset + done));

		if (got <= 0) {
			free(out);
			return NULL;
		}
		done += (size_t)got;
	}
	return out;
}

static bool is_supported(const unsigned char *ident)
{
	return !memcmp(ident, ELFMAG, SELFMAG) && ident[EI_CLASS] == ELFCLASS64 &&
	       ident[EI_DATA] == ELFDATA2LSB;
}

static bool read_header(const struct elfsym *elf, Elf64_Ehdr *out)
{
	Elf64_Ehdr *head = elfsym_read(elf, 0, 1, sizeof(*head));

	if (!head)
		return false;
	*out = *head;
	free(head);
	return is_supported(out->e_ident);
}

int elfsym_open(struct elfsym *elf, const char *path)
{
	Elf64_Ehdr head;
	struct stat st;

	elf->fd = maps_open_regular(path);
	if (elf->fd < 0)
		return elf->fd;
	elf->bytes = fstat(elf->fd, &st) || st.st_size < 0 ? 0 : (uint64_t)st.st_size;
	if (read_header(elf, &head))
		return 0;
	elfsym_close(elf);
	return -ENOEXEC;
}

void elfsym_close(struct elfsym *elf)
{
	if (elf->fd >= 0)
		close(elf->fd);
	elf->fd = -1;
}

static Elf64_Shdr *read_sections(const struct elfsym *elf, const Elf64_Ehdr *head)
{
	if (head->e_shentsize != sizeof(Elf64_Shdr) || !head->e_shnum)
		return NULL;
	return elfsym_read(elf, head->e_shoff, head->e_shnum, sizeof(Elf64_Shdr));
}

/* The texts of a string section, which end with a 0 that is added here. */
static char *read_strings(const struct elfsym *elf, const Elf64_Shdr *section)
{
	char *out = section->sh_size > STRINGS_MOST
			    ? NULL
			    : elfsym_read(elf, section->sh_offset, section->sh_size, 1);

	if (out)
		out[section->sh_size] = '\0';
	return out;
}

static bool is_named(const char *strings, uint64_t bytes, uint64_t at, const char *name)
{
	return at < bytes && !strcmp(strings + at, name);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static uint64_t find_among(const Elf64_Sym *symbols, uint64_t count, const char *strings,
			   uint64_t bytes, const char *name)
{
	for (uint64_t i = 0; i < count; i++)
		if (symbols[i].st_shndx != SHN_UNDEF &&
		    is_named(strings, bytes, symbols[i].st_name, name))
			return symbols[i].st_value;
	return 0;
}

static uint64_t find_in(const struct elfsym *elf, const Elf64_Shdr *section,
			const Elf64_Shdr *names, const char *name)
{
	uint64_t left = section->sh_size / sizeof(Elf64_Sym), at = 0, found = 0;
	char *strings = read_strings(elf, names);

	if (left > SYMBOLS_MOST)
		left = SYMBOLS_MOST;
	while (strings && !found && left && !process_memory_late()) {
		uint64_t part = left < SYMBOLS_AT_ONCE ? left : SYMBOLS_AT_ONCE;
		Elf64_Sym *symbols = section->sh_offset > elf->bytes
					     ? NULL
					     : elfsym_read(elf, section->sh_offset + at, part,
							   sizeof(*symbols));

		if (!symbols)
			break;
		found = find_among(symbols, part, strings, names->sh_size, name);
		free(symbols);
		at += part * sizeof(*symbols);
		left -= part;
	}
	free(strings);
	return found;
}

/* A file has at most one section of each of these kinds; further ones are not searched. */
static const Elf64_Shdr *first_of(const Elf64_Shdr *all, size_t count, uint32_t kind)
{
	for (size_t i = 0; i < count; i++)
		if (all[i].sh_type == kind)
			return &all[i];
	return NULL;
}

uint64_t elfsym_find(const struct elfsym *elf, const char *name)
{
	static const uint32_t kinds[] = { SHT_DYNSYM, SHT_SYMTAB };
	Elf64_Ehdr head;
	Elf64_Shdr *all = read_header(elf, &head) ? read_sections(elf, &head) : NULL;
	uint64_t found = 0;

	for (size_t k = 0; all && !found && k < 2; k++) {
		const Elf64_Shdr *section = first_of(all, head.e_shnum, kinds[k]);

		if (section && section->sh_link < head.e_shnum)
			found = find_in(elf, section, &all[section->sh_link], name);
	}
	free(all);
	return found;
}

uint64_t elfsym_section(const struct elfsym *elf, const char *name)
{
	Elf64_Ehdr head;
	Elf64_Shdr *all = read_header(elf, &head) ? read_sections(elf, &head) : NULL;
	const Elf64_Shdr *names = all && head.e_shstrndx < head.e_shnum ? &all[head.e_shstrndx]
									: NULL;
	char *strings = names ? read_strings(elf, names) : NULL;
	uint64_t found = 0;

	for (size_t i = 0; strings && !found && i < head.e_shnum; i++)
		if (is_named(strings, names->sh_size, all[i].sh_name, name))
			found = all[i].sh_addr;
	free(strings);
	free(all);
	return found;
}

/* ---- addresses ------------------------------------------------------------------------------- */

bool elfsym_bias(const struct elfsym *elf, uint64_t start, uint64_t offset, uint64_t *out_bias)
{
	Elf64_Ehdr head;
	Elf64_Phdr *parts = read_header(elf, &head)
				    ? elfsym_read(elf, head.e_phoff, head.e_phnum, sizeof(*parts))
				    : NULL;
	bool found = false;

	for (size_t i = 0; parts && !found && i < head.e_phnum; i++) {
		uint64_t page = parts[i].p_offset & ~4095ull;

		if (parts[i].p_type != PT_LOAD || offset < page ||
		    offset - page >= parts[i].p_filesz + 4096)
			continue;
		*out_bias = start - (parts[i].p_vaddr & ~4095ull) - (offset - page);
		found = true;
	}
	free(parts);
	return found;
}
