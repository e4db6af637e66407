/* Where symbols and sections of an ELF file are, for files that nobody vouches for. */
#ifndef KYMO_COLLECT_NATIVE_ELFSYM_H
#define KYMO_COLLECT_NATIVE_ELFSYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elfsym {
	const unsigned char *map; /* NULL: not open */
	size_t bytes;
};

/* Maps a 64-bit little-endian ELF file. 0 or a negative errno. */
int elfsym_open(struct elfsym *elf, const char *path);
void elfsym_close(struct elfsym *elf);
/* The address that the file gives a symbol (from .dynsym, else .symtab); 0: there is none. */
uint64_t elfsym_find(const struct elfsym *elf, const char *name);
/* The address of a section by name; 0: there is none. */
uint64_t elfsym_section(const struct elfsym *elf, const char *name);
/* What is to be added to the file's addresses when byte `offset` of it is mapped at `start`. False:
   that byte is in no loaded part. */
bool elfsym_bias(const struct elfsym *elf, uint64_t start, uint64_t offset, uint64_t *out_bias);

#endif
