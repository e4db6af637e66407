/*
 * Entries of .eh_frame: the description of a function (FDE), and the kind that it refers to (CIE).
 * Bytes of a file are untrusted.
 */
#ifndef KYMO_COLLECT_FRAMES_FRAME_ENTRY_H
#define KYMO_COLLECT_FRAMES_FRAME_ENTRY_H

#include "collect/frames/dwarf_bytes.h"
#include "collect/frames/frame_rules.h"

#define FRAME_ENTRY_MOST 65536

struct frame_entry {
	unsigned char bytes[FRAME_ENTRY_MOST];
	size_t count; /* of bytes, without the length before them */
	uint64_t address; /* of bytes[0] */
};

struct frame_kind {
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t return_register;
	unsigned pointer_encoding;
	bool augmented, signal;
	struct dwarf_bytes program;
};

/* An encoded pointer. base: the address of `start`, the first of the bytes. */
uint64_t frame_entry_encoded(struct dwarf_bytes *bytes, const unsigned char *start, uint64_t base,
			     unsigned encoding);
/* Reads an entry without its length. */
bool frame_entry_read(const struct frame_table *table, uint64_t address, struct frame_entry *out);
/* False: not a CIE, or one that is not understood. */
bool frame_entry_kind(const struct frame_entry *entry, struct frame_kind *out);
/* The address of the description that may cover an address; 0: none. */
uint64_t frame_entry_find(struct frame_table *table, uint64_t address);
/* Frees the index. */
void frame_entry_forget(struct frame_table *table);

#endif
