/* Names of functions, from the symbols in the object's file: once for each address, so a walk over all of them will do. */
#include "memory/memory.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES 128

/* A file that is mapped for good; the program has it mapped anyway. */
static struct file {
	uint64_t known; /* the link map + 1 while it is being read, + 2 when done; 0: free */
	uint64_t base;
	const Elf64_Sym *symbols;
	const char *names;
	uint64_t symbol_count, name_bytes;
} files[FILES];

static const char *map_file(const char *path, size_t *out_bytes)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), at = -1;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat((int)fd, &st) && st.st_size > (off_t)sizeof(Elf64_Ehdr))
		at = syscall(SYS_mmap, NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0L);
	syscall(SYS_close, fd);
	if (at < 0 && at > -4096)
		return NULL;
	*out_bytes = (size_t)st.st_size;
	return (const char *)at;
}

static bool fits(uint64_t offset, uint64_t bytes, uint64_t all)
{
	return offset <= all && bytes <= all - offset;
}

static void read_symbols(struct file *file, const char *image, size_t bytes)
{
	const Elf64_Ehdr *head = (const void *)image;
	const Elf64_Shdr *sections = (const void *)(image + head->e_shoff), *found = NULL;

	if (memcmp(image, ELFMAG, SELFMAG) || head->e_shentsize != sizeof(*sections) ||
	    head->e_shoff % 8 || !fits(head->e_shoff, head->e_shnum * sizeof(*sections), bytes))
		return;
	for (unsigned i = 0; i < head->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB ||
		    (sections[i].sh_type == SHT_DYNSYM && !found))
			found = &sections[i];
	if (!found || found->sh_link >= head->e_shnum || found->sh_offset % 8 ||
	    !fits(found->sh_offset, found->sh_size, bytes) ||
	    !fits(sections[found->sh_link].sh_offset, sections[found->sh_link].sh_size, bytes))
		return;
	file->symbols = (const void *)(image + found->sh_offset);
	file->symbol_count = found->sh_size / sizeof(Elf64_Sym);
	file->names = image + sections[found->sh_link].sh_offset;
	file->name_bytes = sections[found->sh_link].sh_size;
}

static void read_file(struct file *file, const struct link_map *object)
{
	const char *image;
	size_t bytes;

	file->base = object->l_addr;
	file->symbol_count = 0;
	image = map_file(object->l_name[0] ? object->l_name : "/proc/self/exe", &bytes);
	if (image)
		read_symbols(file, image, bytes);
}

static const struct file *file_of(const struct link_map *object)
{
	uint64_t word = (uint64_t)(uintptr_t)object;
	uint32_t at = (uint32_t)((word >> 4) * 0x9E3779B97F4A7C15ull >> 57);

	for (unsigned i = 0; i < FILES; i++, at = (at + 1) % FILES) {
		uint64_t known = __atomic_load_n(&files[at].known, __ATOMIC_ACQUIRE);

		if (known == word + 2 && files[at].base == object->l_addr)
			return &files[at];
		if (!known && __atomic_compare_exchange_n(&files[at].known, &known, word + 1, false,
							  __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
			read_file(&files[at], object);
			__atomic_store_n(&files[at].known, word + 2, __ATOMIC_RELEASE);
			return &files[at];
		}
	}
	return NULL;
}

static const Elf64_Sym *nearest(const struct file *file, uint64_t address)
{
	const Elf64_Sym *best = NULL;

	for (uint64_t i = 0; i < file->symbol_count; i++) {
		const Elf64_Sym *symbol = &file->symbols[i];

		if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx &&
		    symbol->st_value <= address && symbol->st_name < file->name_bytes &&
		    (!symbol->st_size || address - symbol->st_value < symbol->st_size) &&
		    (!best || symbol->st_value > best->st_value))
			best = symbol;
	}
	return best;
}

static void copy(char *out, size_t out_bytes, const char *text, size_t most)
{
	size_t bytes = strnlen(text, most < out_bytes - 1 ? most : out_bytes - 1);

	memcpy(out, text, bytes);
	out[bytes] = '\0';
}

static void path_of(const struct link_map *object, char *out, size_t out_bytes)
{
	long got = 0;

	if (object->l_name[0]) {
		copy(out, out_bytes, object->l_name, PATH_MAX);
		return;
	}
	got = syscall(SYS_readlink, "/proc/self/exe", out, out_bytes - 1);
	out[got > 0 ? got : 0] = '\0';
}

void memory_symbol(uintptr_t address, char *name, size_t name_bytes, char *path, size_t path_bytes)
{
	struct dl_find_object object;
	const Elf64_Sym *symbol = NULL;
	const struct file *file;
	const char *slash;

	name[0] = path[0] = '\0';
	if (_dl_find_object((void *)address, &object)) {
		snprintf(name, name_bytes, "0x%lx", (unsigned long)address);
		return;
	}
	path_of(object.dlfo_link_map, path, path_bytes);
	file = file_of(object.dlfo_link_map);
	if (file)
		symbol = nearest(file, address - file->base);
	if (symbol)
		copy(name, name_bytes, file->names + symbol->st_name,
		     file->name_bytes - symbol->st_name);
	if (name[0])
		return;
	slash = strrchr(path, '/');
	snprintf(name, name_bytes, "%s+0x%lx", slash ? slash + 1 : path,
		 (unsigned long)(address - object.dlfo_link_map->l_addr));
}
