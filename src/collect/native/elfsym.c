#include "collect/native/elfsym.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MOST (2ull << 30)

/* A table of `count` entries, or NULL if it exceeds the file. */
static const void *table(const struct elfsym *elf, uint64_t offset, uint64_t count, size_t entry)
{
	if (offset > elf->bytes || offset % 8 || count > (elf->bytes - offset) / entry)
		return NULL;
	return elf->map + offset;
}

static const Elf64_Ehdr *elfsym_header(const struct elfsym *elf)
{
	return (const void *)elf->map;
}

static bool is_supported(const struct elfsym *elf)
{
	const Elf64_Ehdr *head = elfsym_header(elf);

	return elf->bytes >= sizeof(*head) && !memcmp(head->e_ident, ELFMAG, SELFMAG) &&
	       head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_ident[EI_DATA] == ELFDATA2LSB;
}

/* A file that shrinks raises SIGBUS even in a private mapping. The files are libraries in use,
   which are replaced by rename. */
int elfsym_open(struct elfsym *elf, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	void *map;

	elf->map = NULL;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < 64 ||
	    (uint64_t)st.st_size > FILE_BYTES_MOST) {
		close(fd);
		return -ENOEXEC;
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return -errno;
	*elf = (struct elfsym){ map, (size_t)st.st_size };
	if (is_supported(elf))
		return 0;
	elfsym_close(elf);
	return -ENOEXEC;
}

void elfsym_close(struct elfsym *elf)
{
	if (elf->map)
		munmap((void *)elf->map, elf->bytes);
	elf->map = NULL;
}

static const Elf64_Shdr *sections(const struct elfsym *elf, size_t *out_count)
{
	const Elf64_Ehdr *head = elfsym_header(elf);

	*out_count = head->e_shentsize == sizeof(Elf64_Shdr) ? head->e_shnum : 0;
	return table(elf, head->e_shoff, *out_count, sizeof(Elf64_Shdr));
}

/* True if the string at `at` of the string section is `name`. */
static bool is_named(const struct elfsym *elf, const Elf64_Shdr *strings, uint64_t at,
		     const char *name)
{
	size_t length = strlen(name) + 1;

	if (strings->sh_offset > elf->bytes || strings->sh_size > elf->bytes - strings->sh_offset)
		return false;
	if (at > strings->sh_size || length > strings->sh_size - at)
		return false;
	return !memcmp(elf->map + strings->sh_offset + at, name, length);
}

static uint64_t find_in(const struct elfsym *elf, const Elf64_Shdr *all, size_t count,
			const Elf64_Shdr *section, const char *name)
{
	uint64_t symbol_count = section->sh_size / sizeof(Elf64_Sym);
	const Elf64_Sym *symbols = table(elf, section->sh_offset, symbol_count, sizeof(Elf64_Sym));

	if (!symbols || section->sh_link >= count)
		return 0;
	for (uint64_t i = 0; i < symbol_count; i++)
		if (symbols[i].st_shndx != SHN_UNDEF &&
		    is_named(elf, &all[section->sh_link], symbols[i].st_name, name))
			return symbols[i].st_value;
	return 0;
}

uint64_t elfsym_find(const struct elfsym *elf, const char *name)
{
	static const uint32_t kinds[] = { SHT_DYNSYM, SHT_SYMTAB };
	size_t count;
	const Elf64_Shdr *all = sections(elf, &count);
	uint64_t found = 0;

	for (size_t k = 0; all && !found && k < 2; k++)
		for (size_t i = 0; !found && i < count; i++)
			if (all[i].sh_type == kinds[k])
				found = find_in(elf, all, count, &all[i], name);
	return found;
}

uint64_t elfsym_section(const struct elfsym *elf, const char *name)
{
	size_t count, names = elfsym_header(elf)->e_shstrndx;
	const Elf64_Shdr *all = sections(elf, &count);

	for (size_t i = 0; all && names < count && i < count; i++)
		if (is_named(elf, &all[names], all[i].sh_name, name))
			return all[i].sh_addr;
	return 0;
}

bool elfsym_bias(const struct elfsym *elf, uint64_t start, uint64_t offset, uint64_t *out_bias)
{
	const Elf64_Ehdr *head = elfsym_header(elf);
	const Elf64_Phdr *parts = table(elf, head->e_phoff, head->e_phnum, sizeof(*parts));

	for (size_t i = 0; parts && i < head->e_phnum; i++) {
		uint64_t page = parts[i].p_offset & ~4095ull;

		if (parts[i].p_type != PT_LOAD || offset < page ||
		    offset - page >= parts[i].p_filesz + 4096)
			continue;
		*out_bias = start - (parts[i].p_vaddr & ~4095ull) - (offset - page);
		return true;
	}
	return false;
}
