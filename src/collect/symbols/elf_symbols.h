/* Functions of an ELF file by address, from its symbol table. Texts are read when needed. */
#ifndef KYMO_COLLECT_SYMBOLS_ELF_SYMBOLS_H
#define KYMO_COLLECT_SYMBOLS_ELF_SYMBOLS_H

#include "collect/symbols/elf_image.h"

#define ELF_SYMBOLS_NAME_BYTES 4096

struct elf_symbol {
	uint64_t address;
	uint32_t bytes; /* 0: not known */
	uint32_t name; /* offset of its text */
	uint8_t rank; /* among those at one address, the highest is used */
};

struct elf_symbols {
	struct elf_symbol *list; /* by address, one for each */
	size_t count;
	struct elf_image_section names;
	bool dynamic; /* exported functions only */
};

/* Reads the table (.symtab, else .dynsym). Without one, or with a damaged one, it is empty. */
void elf_symbols_load(struct elf_symbols *symbols, const struct elf_image *image);
void elf_symbols_fini(struct elf_symbols *symbols);
/* The function that contains the address; NULL: none. */
const struct elf_symbol *elf_symbols_find(const struct elf_symbols *symbols, uint64_t address);
/* Its name, without a version ("@@GLIBC_2.34") and without what a compiler adds (".isra.0"). */
void elf_symbols_name(const struct elf_symbols *symbols, const struct elf_image *image,
		      const struct elf_symbol *symbol, char *out, size_t out_bytes);

#endif
