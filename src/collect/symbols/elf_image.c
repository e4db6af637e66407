#include "collect/symbols/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTIONS_MOST 4096
#define NOTES_MOST 4096
#define NAME_MOST 64

size_t elf_image_read(const struct elf_image *image, uint64_t offset, void *out, size_t bytes)
{
	size_t done = 0;

	if (offset > image->bytes)
		return 0;
	if (bytes > image->bytes - offset)
		bytes = (size_t)(image->bytes - offset);
	if (image->fd < 0) {
		memcpy(out, image->memory + offset, bytes);
		return bytes;
	}
	while (done < bytes) {
		ssize_t got = pread(image->fd, (char *)out + done, bytes - done,
				    (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

static bool read_whole(const struct elf_image *image, uint64_t offset, void *out, size_t bytes)
{
	return elf_image_read(image, offset, out, bytes) == bytes;
}

/* ---- headers --------------------------------------------------------------------------------- */

static bool elf_image_head(const struct elf_image *image, Elf64_Ehdr *head)
{
	return read_whole(image, 0, head, sizeof(*head)) &&
	       !memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_ident[EI_CLASS] == ELFCLASS64 &&
	       head->e_ident[EI_DATA] == ELFDATA2LSB;
}

/* Notes: name, kind and content, each filled up to 4 bytes. */
static void find_build_id(struct elf_image *image, const Elf64_Phdr *part)
{
	unsigned char notes[NOTES_MOST];
	size_t bytes = part->p_filesz < sizeof(notes) ? (size_t)part->p_filesz : sizeof(notes);
	size_t at = 0;
	Elf64_Nhdr note;

	bytes = elf_image_read(image, part->p_offset, notes, bytes);
	while (bytes - at >= sizeof(note)) {
		size_t name, content;

		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		content = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		if (name > bytes - at || content > bytes - at - name)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + at, "GNU", 4) && note.n_descsz <= ELF_IMAGE_BUILD_ID_MOST) {
			image->build_id_bytes = (uint8_t)note.n_descsz;
			memcpy(image->build_id, notes + at + name, note.n_descsz);
			return;
		}
		at += name + content;
	}
}

static void elf_image_take_part(struct elf_image *image, const Elf64_Phdr *part)
{
	if (part->p_type == PT_GNU_EH_FRAME) {
		image->frame_index_address = part->p_vaddr;
		image->frame_index_bytes = part->p_filesz;
	} else if (part->p_type == PT_NOTE && !image->build_id_bytes) {
		find_build_id(image, part);
	} else if (part->p_type == PT_LOAD && image->part_count < ELF_IMAGE_PARTS_MOST) {
		image->parts[image->part_count++] = (struct elf_image_part){ part->p_vaddr,
									     part->p_offset,
									     part->p_filesz };
	}
}

static int elf_image_read_head(struct elf_image *image)
{
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (!elf_image_head(image, &head) || head.e_phentsize != sizeof(part))
		return -ENOEXEC;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		if (head.e_phoff > image->bytes ||
		    !read_whole(image, head.e_phoff + i * sizeof(part), &part, sizeof(part)))
			return -ENOEXEC;
		elf_image_take_part(image, &part);
	}
	return 0;
}

int elf_image_open(struct elf_image *image, int fd)
{
	struct stat st;
	int rc;

	*image = (struct elf_image){ .fd = fd };
	rc = fstat(fd, &st) ? -errno : !S_ISREG(st.st_mode) ? -ENOEXEC : 0;
	if (!rc) {
		image->bytes = (uint64_t)st.st_size;
		rc = elf_image_read_head(image);
	}
	if (rc)
		elf_image_close(image);
	return rc;
}

int elf_image_open_memory(struct elf_image *image, const void *memory, size_t bytes)
{
	*image = (struct elf_image){ .fd = -1, .memory = memory, .bytes = bytes };
	return elf_image_read_head(image);
}

void elf_image_close(struct elf_image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	*image = (struct elf_image){ .fd = -1 };
}

/* ---- places ---------------------------------------------------------------------------------- */

bool elf_image_offset(const struct elf_image *image, uint64_t address, uint64_t *out_offset,
		      uint64_t *out_left)
{
	for (size_t i = 0; i < image->part_count; i++) {
		const struct elf_image_part *part = &image->parts[i];

		if (address < part->address || address - part->address >= part->bytes)
			continue;
		*out_offset = part->offset + (address - part->address);
		*out_left = part->bytes - (address - part->address);
		return true;
	}
	return false;
}

/* Segments are mapped in whole pages, so a mapped byte may be before the segment or after it. */
bool elf_image_address(const struct elf_image *image, uint64_t offset, uint64_t *out_address)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < image->part_count; i++) {
		const struct elf_image_part *part = &image->parts[i];
		uint64_t first = part->offset & ~(page - 1);

		if (offset < first || offset - first >= part->bytes + (part->offset - first))
			continue;
		*out_address = part->address - (part->offset - first) + (offset - first);
		return true;
	}
	return false;
}

/* ---- sections -------------------------------------------------------------------------------- */

static bool elf_image_has_name(const struct elf_image *image, const Elf64_Ehdr *head, uint32_t at,
			       const char *name)
{
	char text[NAME_MOST] = "";
	Elf64_Shdr names;
	uint64_t place = head->e_shoff + (uint64_t)head->e_shstrndx * sizeof(names);

	if (head->e_shstrndx >= head->e_shnum || !read_whole(image, place, &names, sizeof(names)) ||
	    names.sh_offset > image->bytes || at > image->bytes - names.sh_offset)
		return false;
	elf_image_read(image, names.sh_offset + at, text, sizeof(text) - 1);
	return !strcmp(text, name);
}

static bool elf_image_read_section(const struct elf_image *image, const Elf64_Ehdr *head,
				   uint32_t number, Elf64_Shdr *out)
{
	return number < head->e_shnum && head->e_shnum <= SECTIONS_MOST &&
	       head->e_shentsize == sizeof(*out) && head->e_shoff <= image->bytes &&
	       read_whole(image, head->e_shoff + (uint64_t)number * sizeof(*out), out,
			  sizeof(*out));
}

static bool elf_image_take_section(const struct elf_image *image, const Elf64_Shdr *section,
				   struct elf_image_section *out)
{
	if (section->sh_type == SHT_NOBITS || section->sh_offset > image->bytes ||
	    section->sh_size > image->bytes - section->sh_offset)
		return false;
	*out = (struct elf_image_section){ .address = section->sh_addr,
					   .offset = section->sh_offset,
					   .bytes = section->sh_size,
					   .link = section->sh_link,
					   .entry_bytes = section->sh_entsize };
	return true;
}

bool elf_image_section(const struct elf_image *image, uint32_t type, const char *name,
		       struct elf_image_section *out)
{
	Elf64_Ehdr head;
	Elf64_Shdr section;

	if (!elf_image_head(image, &head))
		return false;
	for (uint32_t i = 0; elf_image_read_section(image, &head, i, &section); i++)
		if (section.sh_type == type &&
		    (!name || elf_image_has_name(image, &head, section.sh_name, name)) &&
		    elf_image_take_section(image, &section, out))
			return true;
	return false;
}

bool elf_image_section_at(const struct elf_image *image, uint32_t number,
			  struct elf_image_section *out)
{
	Elf64_Ehdr head;
	Elf64_Shdr section;

	return elf_image_head(image, &head) &&
	       elf_image_read_section(image, &head, number, &section) &&
	       elf_image_take_section(image, &section, out);
}
