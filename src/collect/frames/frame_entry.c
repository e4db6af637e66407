#include "collect/frames/frame_entry.h"

#include <dwarf.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define INDEX_MOST (64u << 20)
#define INDEXES_MOST (256u << 20) /* of all files: each may have an index of holes */
#define UNINDEXED_MOST 200000 /* descriptions that are read without an index */
#define SHT_UNWIND 0x70000001u /* of x86_64 */
#define PAIR_BYTES 8 /* of the index: two numbers of 4 bytes */

/* ---- encoded pointers ------------------------------------------------------------------------ */

uint64_t frame_entry_encoded(struct dwarf_bytes *bytes, const unsigned char *start, uint64_t base,
			     unsigned encoding)
{
	uint64_t here = base + (uint64_t)(bytes->at - start), value;

	switch (encoding & 15) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8: value = dwarf_fixed(bytes, 8); break;
	case DW_EH_PE_uleb128: value = dwarf_uleb(bytes); break;
	case DW_EH_PE_udata2: value = dwarf_fixed(bytes, 2); break;
	case DW_EH_PE_udata4: value = dwarf_fixed(bytes, 4); break;
	case DW_EH_PE_sleb128: value = (uint64_t)dwarf_sleb(bytes); break;
	case DW_EH_PE_sdata2: value = (uint64_t)dwarf_signed(bytes, 2); break;
	case DW_EH_PE_sdata4: value = (uint64_t)dwarf_signed(bytes, 4); break;
	default: bytes->failed = true; return 0;
	}
	return (encoding & 0x70) == DW_EH_PE_pcrel ? value + here : value;
}

/* ---- the index ------------------------------------------------------------------------------- */

static size_t indexes_bytes; /* one thread reads files */

static bool allocate_index(struct frame_table *table)
{
	size_t bytes = (size_t)table->index_count * PAIR_BYTES;

	if (bytes > INDEXES_MOST - indexes_bytes)
		return false;
	table->index = malloc(bytes + 1);
	table->index_bytes = table->index ? bytes : 0;
	indexes_bytes += table->index_bytes;
	return table->index;
}

void frame_entry_forget(struct frame_table *table)
{
	free(table->index);
	indexes_bytes -= table->index_bytes;
	table->index = NULL;
	table->index_bytes = 0;
}

static void read_index(struct frame_table *table)
{
	const struct elf_image *image = table->image;
	uint64_t offset, left, bytes = image->frame_index_bytes;
	struct dwarf_bytes head;
	unsigned char start[64];
	size_t got, skipped;

	table->index_address = image->frame_index_address;
	if (!bytes || bytes > INDEX_MOST ||
	    !elf_image_offset(image, table->index_address, &offset, &left))
		return;
	got = elf_image_read(image, offset, start, sizeof(start) < bytes ? sizeof(start) : bytes);
	head = (struct dwarf_bytes){ start, start + got, got < 12 };
	/* Version 1, and a table of pairs relative to this section, as all linkers write it. */
	if (head.failed || start[0] != 1 || start[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return;
	dwarf_skip(&head, 4);
	frame_entry_encoded(&head, start, table->index_address, start[1]);
	table->index_count = (uint32_t)frame_entry_encoded(&head, start, table->index_address,
							   start[2]);
	skipped = (size_t)(head.at - start);
	if (head.failed || table->index_count > (bytes - skipped) / PAIR_BYTES)
		table->index_count = 0;
	if (!allocate_index(table) || elf_image_read(image, offset + skipped, table->index,
						     (size_t)table->index_count * PAIR_BYTES) !=
					      (size_t)table->index_count * PAIR_BYTES)
		table->index_count = 0;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

/* Nearly all are shorter than 512 bytes. */
bool frame_entry_read(const struct frame_table *table, uint64_t address, struct frame_entry *out)
{
	uint64_t offset, left;
	uint32_t length;
	size_t got;

	if (!elf_image_offset(table->image, address, &offset, &left))
		return false;
	got = elf_image_read(table->image, offset, out->bytes, left < 512 ? left : 512);
	if (got < 4)
		return false;
	memcpy(&length, out->bytes, 4);
	if (!length || length > FRAME_ENTRY_MOST || length > left - 4)
		return false; /* the end, or one of more than 4 GB */
	if (length <= got - 4)
		memmove(out->bytes, out->bytes + 4, length);
	else if (elf_image_read(table->image, offset + 4, out->bytes, length) != length)
		return false;
	out->count = length;
	out->address = address + 4;
	return true;
}

/* "zPLR": a length, then what the letters stand for. */
static void read_augmentation(struct frame_kind *kind, struct dwarf_bytes *bytes,
			      const char *letters, const unsigned char *start)
{
	uint64_t length = dwarf_uleb(bytes);
	struct dwarf_bytes data = *bytes;

	dwarf_skip(bytes, length);
	kind->augmented = true;
	for (letters++; *letters && !bytes->failed; letters++) {
		if (*letters == 'R')
			kind->pointer_encoding = (unsigned)dwarf_fixed(&data, 1);
		else if (*letters == 'P')
			frame_entry_encoded(&data, start, 0, (unsigned)dwarf_fixed(&data, 1));
		else if (*letters == 'L')
			dwarf_fixed(&data, 1);
		else if (*letters == 'S')
			kind->signal = true;
	}
}

bool frame_entry_kind(const struct frame_entry *entry, struct frame_kind *out)
{
	struct dwarf_bytes bytes = { entry->bytes, entry->bytes + entry->count, false };
	const char *letters;
	unsigned version;

	*out = (struct frame_kind){ .pointer_encoding = DW_EH_PE_absptr };
	if (dwarf_fixed(&bytes, 4) != 0)
		return false; /* not a CIE */
	version = (unsigned)dwarf_fixed(&bytes, 1);
	letters = (const char *)bytes.at;
	if ((version != 1 && version != 3) || !memchr(letters, 0, dwarf_left(&bytes)))
		return false;
	dwarf_skip(&bytes, strlen(letters) + 1);
	out->code_factor = dwarf_uleb(&bytes);
	out->data_factor = dwarf_sleb(&bytes);
	out->return_register = version == 1 ? dwarf_fixed(&bytes, 1) : dwarf_uleb(&bytes);
	if (letters[0] == 'z')
		read_augmentation(out, &bytes, letters, entry->bytes);
	else if (letters[0])
		return false;
	out->program = bytes;
	return !bytes.failed && out->return_register < FRAME_REGISTERS;
}

/* ---- finding a description ------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	int32_t one, other;

	memcpy(&one, a, sizeof(one));
	memcpy(&other, b, sizeof(other));
	return one < other ? -1 : one > other;
}

/* Where the function of a description begins; false: it is the kind of others, or damaged. */
static bool read_start(const struct frame_table *table, const struct frame_entry *function,
		       struct frame_entry *common, uint64_t *out)
{
	struct dwarf_bytes bytes = { function->bytes + 4, function->bytes + function->count,
				     function->count < 4 };
	struct frame_kind kind;
	uint32_t back;

	memcpy(&back, function->bytes, 4);
	if (bytes.failed || !back || back > function->address ||
	    !frame_entry_read(table, function->address - back, common) ||
	    !frame_entry_kind(common, &kind))
		return false;
	*out = frame_entry_encoded(&bytes, function->bytes, function->address,
				   kind.pointer_encoding);
	return !bytes.failed;
}

static bool put_pair(struct frame_table *table, size_t *room, uint64_t start, uint64_t description)
{
	int64_t pair[2] = { (int64_t)(start - table->index_address),
			    (int64_t)(description - table->index_address) };
	int32_t words[2] = { (int32_t)pair[0], (int32_t)pair[1] };

	if (pair[0] != words[0] || pair[1] != words[1])
		return true; /* too far away for the index */
	if (!grow((void **)&table->index, room, table->index_count, PAIR_BYTES))
		return false;
	memcpy(table->index + (size_t)table->index_count++ * PAIR_BYTES, words, sizeof(words));
	return true;
}

/* Programs that are linked statically have no index: all descriptions are read once. */
static void make_index(struct frame_table *table)
{
	struct frame_entry *entries = malloc(2 * sizeof(*entries));
	struct elf_image_section section;
	size_t room = 0, read = 0;
	uint64_t at, start;

	if (entries &&
	    (elf_image_section(table->image, SHT_PROGBITS, ".eh_frame", &section) ||
	     elf_image_section(table->image, SHT_UNWIND, ".eh_frame", &section)) &&
	    section.bytes <= INDEX_MOST) {
		frame_entry_forget(table);
		table->index_address = section.address;
		for (at = section.address; at - section.address < section.bytes;
		     at += entries[0].count + 4) {
			if (read++ >= UNINDEXED_MOST || !frame_entry_read(table, at, &entries[0]))
				break;
			if (read_start(table, &entries[0], &entries[1], &start) &&
			    !put_pair(table, &room, start, at))
				break;
		}
	}
	if (table->index_count)
		qsort(table->index, table->index_count, PAIR_BYTES, by_place);
	free(entries);
}

static uint64_t index_word(const struct frame_table *table, uint32_t pair, unsigned which)
{
	int32_t value;

	memcpy(&value, table->index + (size_t)pair * PAIR_BYTES + which * sizeof(value),
	       sizeof(value));
	return table->index_address + (uint64_t)(int64_t)value;
}

uint64_t frame_entry_find(struct frame_table *table, uint64_t address)
{
	uint32_t low = 0, high;

	if (!table->loaded) {
		table->loaded = true;
		read_index(table);
		if (!table->index_count)
			make_index(table);
	}
	high = table->index_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (index_word(table, middle, 0) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? index_word(table, low - 1, 1) : 0;
}
