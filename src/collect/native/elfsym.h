/* Finds symbols and sections of untrusted ELF files. */
#ifndef KYMO_COLLECT_NATIVE_ELFSYM_H
#define KYMO_COLLECT_NATIVE_ELFSYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elfsym {
	int fd; /* -1: not open */
	uint64_t bytes;
};

/* Opens a 64-bit little-endian ELF file. 0 or a negative errno. */
int elfsym_open(struct elfsym *elf, const char *path);
void elfsym_close(struct elfsym *elf);
/* The address of a symbol in the file (from .dynsym, else .symtab); 0: none. */
uint64_t elfsym_find(const struct elfsym *elf, const char *name);
/* The address of a section by name; 0: none. */
uint64_t elfsym_section(const struct elfsym *elf, const char *name);
/* The difference between addresses in the process and in the file, if byte `offset` is mapped at
   `start`. False: the byte is in no loaded segment. */
bool elfsym_bias(const struct elfsym *elf, uint64_t start, uint64_t offset, uint64_t *out_bias);

#endif
