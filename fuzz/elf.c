/* Symbols and sections of ELF files, which are libraries of other programs. Inputs that begin with
   the magic are taken raw, others are edits of a small file. */
#include <elf.h>

#include "edits.h"

#include "collect/native/elfsym.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A header, one segment, five sections, a symbol in each of two tables, and their names. */
struct small_elf {
	Elf64_Ehdr head;
	Elf64_Phdr part;
	Elf64_Shdr sections[5];
	Elf64_Sym dynamic[2], symbols[2];
	char names[64];
};

static Elf64_Shdr small_section(uint32_t type, size_t offset, size_t bytes, uint32_t link)
{
	return (Elf64_Shdr){ .sh_name = 16,
			     .sh_type = type,
			     .sh_addr = 0x4000,
			     .sh_offset = offset,
			     .sh_size = bytes,
			     .sh_link = link };
}

static void make_elf(struct handmade *made)
{
	struct small_elf *elf = handmade_file(made, "elf", sizeof(*elf));
	static const char names[64] = "\0_PyRuntime\0\0\0\0\0.PyRuntime\0kymo_control";

	memcpy(elf->head.e_ident, ELFMAG, SELFMAG);
	elf->head.e_ident[EI_CLASS] = ELFCLASS64;
	elf->head.e_ident[EI_DATA] = ELFDATA2LSB;
	elf->head.e_phoff = offsetof(struct small_elf, part);
	elf->head.e_phnum = 1;
	elf->head.e_phentsize = sizeof(Elf64_Phdr);
	elf->head.e_shoff = offsetof(struct small_elf, sections);
	elf->head.e_shnum = 5;
	elf->head.e_shentsize = sizeof(Elf64_Shdr);
	elf->head.e_shstrndx = 3;
	elf->part = (Elf64_Phdr){ .p_type = PT_LOAD, .p_filesz = sizeof(*elf), .p_vaddr = 0x1000 };
	elf->sections[1] = small_section(SHT_DYNSYM, offsetof(struct small_elf, dynamic),
					 sizeof(elf->dynamic), 3);
	elf->sections[2] = small_section(SHT_SYMTAB, offsetof(struct small_elf, symbols),
					 sizeof(elf->symbols), 3);
	elf->sections[3] = small_section(SHT_STRTAB, offsetof(struct small_elf, names),
					 sizeof(elf->names), 0);
	elf->dynamic[1] = (Elf64_Sym){ .st_name = 27, .st_shndx = 1, .st_value = 0x1234 };
	elf->symbols[1] = (Elf64_Sym){ .st_name = 1, .st_shndx = 1, .st_value = 0x5678 };
	memcpy(elf->names, names, sizeof(names));
}

/* The memory is exactly as long as the file, unlike a map, so that a byte too far is found. */
static void ask_elf(const void *data, size_t bytes)
{
	const unsigned char *ident = data;
	struct elfsym elf = { data, bytes };
	uint64_t bias, sum = 0;

	if (bytes < sizeof(Elf64_Ehdr) || memcmp(ident, ELFMAG, SELFMAG) ||
	    ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
		return; /* elfsym_open() refuses these */
	sum += elfsym_find(&elf, "_PyRuntime") + elfsym_find(&elf, "kymo_control") +
	       elfsym_find(&elf, "none") + elfsym_section(&elf, ".PyRuntime");
	for (uint64_t offset = 0; offset < 3 * 4096; offset += 1024)
		sum += elfsym_bias(&elf, 0x7f0000000000, offset, &bias) ? bias : 0;
	if (sum == 1)
		abort(); /* the values are used */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct handmade made = { 0 };

	if (bytes >= SELFMAG && !memcmp(data, ELFMAG, SELFMAG)) {
		memcpy(handmade_file(&made, "elf", bytes), data, bytes);
	} else {
		make_elf(&made);
		edits_apply(&made, 0, data, bytes);
	}
	ask_elf(made.files[0].data, made.files[0].bytes);
	handmade_free(&made);
	return 0;
}
