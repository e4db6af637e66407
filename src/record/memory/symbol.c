/* Names of functions, from the symbols in the object's file: once per address, by an index of the
   file. */
#include "record/memory/memory.h"

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

#include <kymo/atomic.h>

#define FILES 128
#define PAGE_BITS 12
#define PAGES_MOST (1u << 22) /* 16 GiB of code */
#define BACK_MOST 256 /* a function may begin at most this many pages earlier: 1 MiB */

/* A file that stays mapped; the program has it mapped anyway. */
static struct file {
	uint64_t known; /* the link map + 1 while it is being read, + 2 when done; 0: free */
	uint64_t base;
	const Elf64_Sym *symbols;
	const char *names;
	uint64_t symbol_count, name_bytes;
	/* Functions by the page they begin in: first[page] .. first[page + 1] of order. */
	uint32_t *first, *order;
	uint64_t pages;
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

static bool symbol_fits(uint64_t offset, uint64_t bytes, uint64_t all)
{
	return offset <= all && bytes <= all - offset;
}

static void read_symbols(struct file *file, const char *image, size_t bytes)
{
	const Elf64_Ehdr *head = (const void *)image;
	const Elf64_Shdr *sections = (const void *)(image + head->e_shoff), *found = NULL;

	if (memcmp(image, ELFMAG, SELFMAG) || head->e_shentsize != sizeof(*sections) ||
	    head->e_shoff % 8 ||
	    !symbol_fits(head->e_shoff, head->e_shnum * sizeof(*sections), bytes))
		return;
	for (unsigned i = 0; i < head->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB ||
		    (sections[i].sh_type == SHT_DYNSYM && !found))
			found = &sections[i];
	if (!found || found->sh_link >= head->e_shnum || found->sh_offset % 8 ||
	    !symbol_fits(found->sh_offset, found->sh_size, bytes) ||
	    !symbol_fits(sections[found->sh_link].sh_offset, sections[found->sh_link].sh_size,
			 bytes))
		return;
	file->symbols = (const void *)(image + found->sh_offset);
	file->symbol_count = found->sh_size / sizeof(Elf64_Sym);
	file->names = image + sections[found->sh_link].sh_offset;
	file->name_bytes = sections[found->sh_link].sh_size;
}

static bool is_function(const struct file *file, const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx &&
	       symbol->st_value >> PAGE_BITS < PAGES_MOST && symbol->st_name < file->name_bytes;
}

static uint32_t *numbers(uint64_t count)
{
	long at = syscall(SYS_mmap, NULL, count * sizeof(uint32_t), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);

	return at < 0 && at > -4096 ? NULL : (uint32_t *)at;
}

/* A counting sort by page in two passes: a library may have half a million symbols. */
static void sort_symbols(struct file *file)
{
	uint64_t highest = 0;

	for (uint64_t i = 0; i < file->symbol_count; i++)
		if (is_function(file, &file->symbols[i]) && file->symbols[i].st_value > highest)
			highest = file->symbols[i].st_value;
	file->pages = (highest >> PAGE_BITS) + 1;
	file->first = numbers(file->pages + 2);
	file->order = numbers(file->symbol_count + 1);
	if (!file->first || !file->order || file->symbol_count > UINT32_MAX) {
		file->pages = 0;
		return;
	}
	for (uint64_t i = 0; i < file->symbol_count; i++)
		if (is_function(file, &file->symbols[i]))
			file->first[(file->symbols[i].st_value >> PAGE_BITS) + 2]++;
	for (uint64_t page = 2; page < file->pages + 2; page++)
		file->first[page] += file->first[page - 1];
	for (uint64_t i = 0; i < file->symbol_count; i++)
		if (is_function(file, &file->symbols[i]))
			file->order[file->first[(file->symbols[i].st_value >> PAGE_BITS) + 1]++] =
				(uint32_t)i;
}

static void symbol_read_file(struct file *file, const struct link_map *object)
{
	const char *image;
	size_t bytes;

	file->base = object->l_addr;
	file->symbol_count = 0;
	image = map_file(object->l_name[0] ? object->l_name : "/proc/self/exe", &bytes);
	if (!image)
		return;
	read_symbols(file, image, bytes);
	if (file->symbol_count)
		sort_symbols(file);
}

static const struct file *file_of(const struct link_map *object)
{
	uint64_t word = (uint64_t)(uintptr_t)object;
	uint32_t at = (uint32_t)((word >> 4) * 0x9E3779B97F4A7C15ull >> 57);

	for (unsigned i = 0; i < FILES; i++, at = (at + 1) % FILES) {
		uint64_t known = kymo__load_acquire(&files[at].known);

		if (known == word + 2 && files[at].base == object->l_addr)
			return &files[at];
		if (!known && kymo__cas_acquire_acquire(&files[at].known, &known, word + 1)) {
			symbol_read_file(&files[at], object);
			kymo__store_release(&files[at].known, word + 2);
			return &files[at];
		}
	}
	return NULL;
}

/* The last function that begins at or before the address and covers it. */
static const Elf64_Sym *nearest_in(const struct file *file, uint64_t page, uint64_t address)
{
	const Elf64_Sym *best = NULL;

	for (uint32_t i = file->first[page]; i < file->first[page + 1]; i++) {
		const Elf64_Sym *symbol = &file->symbols[file->order[i]];

		if (symbol->st_value <= address &&
		    (!symbol->st_size || address - symbol->st_value < symbol->st_size) &&
		    (!best || symbol->st_value > best->st_value))
			best = symbol;
	}
	return best;
}

static const Elf64_Sym *nearest(const struct file *file, uint64_t address)
{
	uint64_t page = address >> PAGE_BITS;
	const Elf64_Sym *best = NULL;

	if (!file->pages)
		return NULL;
	if (page >= file->pages)
		page = file->pages - 1;
	for (unsigned back = 0; !best && back < BACK_MOST; back++, page--) {
		best = nearest_in(file, page, address);
		if (!page)
			break;
	}
	return best;
}

static void symbol_copy(char *out, size_t out_bytes, const char *text, size_t most)
{
	size_t bytes = strnlen(text, most < out_bytes - 1 ? most : out_bytes - 1);

	memcpy(out, text, bytes);
	out[bytes] = '\0';
}

/* Whether a terminated text lies there in the string table. */
static bool is_text(const struct file *file, uint64_t at)
{
	return file->names[at] && memchr(file->names + at, '\0', file->name_bytes - at);
}

static void symbol_path_of(const struct link_map *object, char *out, size_t out_bytes)
{
	long got = 0;

	if (object->l_name[0]) {
		symbol_copy(out, out_bytes, object->l_name, PATH_MAX);
		return;
	}
	got = syscall(SYS_readlink, "/proc/self/exe", out, out_bytes - 1);
	out[got > 0 ? got : 0] = '\0';
}

/* If there is none: the file name and the offset. */
static const char *make_name(uintptr_t address, const struct link_map *object, const char *path,
			     char *made, size_t made_bytes)
{
	const char *slash = strrchr(path, '/');

	snprintf(made, made_bytes, "%s+0x%lx", slash ? slash + 1 : path,
		 (unsigned long)(address - object->l_addr));
	return made;
}

const char *memory_symbol(uintptr_t address, char *made, size_t made_bytes, char *path,
			  size_t path_bytes)
{
	struct dl_find_object object;
	const Elf64_Sym *symbol = NULL;
	const struct file *file;

	path[0] = '\0';
	if (_dl_find_object((void *)address, &object)) {
		snprintf(made, made_bytes, "0x%lx", (unsigned long)address);
		return made;
	}
	symbol_path_of(object.dlfo_link_map, path, path_bytes);
	file = file_of(object.dlfo_link_map);
	if (file)
		symbol = nearest(file, address - file->base);
	if (symbol && is_text(file, symbol->st_name))
		return file->names + symbol->st_name;
	return make_name(address, object.dlfo_link_map, path, made, made_bytes);
}
