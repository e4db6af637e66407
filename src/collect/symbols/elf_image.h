/*
 * An ELF file of a sampled program, or the kernel's vdso. Programs choose their files, so all of it
 * is untrusted: it is read with pread() or from memory, never mapped, and checked.
 */
#ifndef KYMO_COLLECT_SYMBOLS_ELF_IMAGE_H
#define KYMO_COLLECT_SYMBOLS_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_IMAGE_PARTS_MOST 64
#define ELF_IMAGE_BUILD_ID_MOST 20

/* A loaded segment. */
struct elf_image_part {
	uint64_t address, offset, bytes;
};

struct elf_image_section {
	uint64_t address, offset, bytes;
	uint32_t link; /* the section of its texts */
	uint64_t entry_bytes;
};

struct elf_image {
	int fd; /* -1: in memory */
	const unsigned char *memory;
	uint64_t bytes;
	struct elf_image_part parts[ELF_IMAGE_PARTS_MOST];
	size_t part_count;
	uint64_t frame_index_address; /* .eh_frame_hdr; 0: none */
	uint64_t frame_index_bytes;
	uint8_t build_id[ELF_IMAGE_BUILD_ID_MOST];
	uint8_t build_id_bytes;
};

/* Takes the descriptor. 0 or a negative errno; the descriptor is then closed. */
int elf_image_open(struct elf_image *image, int fd);
int elf_image_open_memory(struct elf_image *image, const void *memory, size_t bytes);
void elf_image_close(struct elf_image *image);
/* Reads up to `bytes`; returns the number of bytes read. */
size_t elf_image_read(const struct elf_image *image, uint64_t offset, void *out, size_t bytes);
/* The file offset of an address, and how many bytes follow it; false: not in the file. */
bool elf_image_offset(const struct elf_image *image, uint64_t address, uint64_t *out_offset,
		      uint64_t *out_left);
/* The address of a byte of the file that is mapped as code; false: in no segment. */
bool elf_image_address(const struct elf_image *image, uint64_t offset, uint64_t *out_address);
/* Finds a section by type (SHT_SYMTAB, …) and, if not NULL, by name. */
bool elf_image_section(const struct elf_image *image, uint32_t type, const char *name,
		       struct elf_image_section *out);
/* The section with that number, such as that of a symbol table's texts. */
bool elf_image_section_at(const struct elf_image *image, uint32_t number,
			  struct elf_image_section *out);

#endif
