/*
 * What the fuzz targets share: a small sound recording in memory, edited by the fuzzer's bytes. So
 * each input is near something that parses, and no corpus is needed to get past the magic words.
 *
 *	input	edit ...	file 1 byte, kind 1 byte, place 2 bytes, then as the kind says
 */
#ifndef KYMO_FUZZ_EDITS_H
#define KYMO_FUZZ_EDITS_H

#include "../tests/unit/handmade.h"

struct edits {
	const uint8_t *at, *end;
};

static inline uint64_t edits_take(struct edits *edits, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes && edits->at < edits->end; i++)
		value |= (uint64_t)*edits->at++ << 8 * i;
	return value;
}

/* In pieces of memory of exactly that length, so that a look beyond is seen. */
static inline void edits_cut(struct run_files_blob *file, size_t bytes)
{
	void *shorter;

	if (bytes >= file->bytes)
		return;
	shorter = malloc(bytes ? bytes : 1);
	memcpy(shorter, file->data, bytes);
	free((void *)(uintptr_t)file->data);
	file->data = shorter;
	file->bytes = bytes;
}

static inline void edits_set(struct run_files_blob *file, size_t place, uint64_t value,
			     size_t bytes)
{
	unsigned char *data = (unsigned char *)(uintptr_t)file->data;

	for (size_t i = 0; i < bytes && place + i < file->bytes; i++)
		data[place + i] = (unsigned char)(value >> 8 * i);
}

static inline void edits_one(struct edits *edits, struct run_files_blob *file)
{
	uint64_t kind = edits_take(edits, 1);
	size_t place = (size_t)edits_take(edits, 2);

	switch (kind % 6) {
	case 0: edits_set(file, place, edits_take(edits, 1), 1); break;
	case 1: edits_set(file, place & ~(size_t)3, edits_take(edits, 4), 4); break;
	case 2: edits_set(file, place & ~(size_t)7, edits_take(edits, 8), 8); break;
	case 3:
		edits_set(file, place & ~(size_t)7, UINT64_C(1) << edits_take(edits, 1) % 64, 8);
		break;
	case 4: edits_set(file, place & ~(size_t)7, -edits_take(edits, 1), 8); break;
	default: edits_cut(file, place); break;
	}
}

/* Applies all edits to files [first, count). */
static inline void edits_apply(struct handmade *made, size_t first, const uint8_t *data,
			       size_t bytes)
{
	struct edits edits = { data, data + bytes };

	while (edits.at < edits.end && made->count > first)
		edits_one(&edits,
			  &made->files[first + edits_take(&edits, 1) % (made->count - first)]);
}

/* A sentence, or a recording that can be walked. */
static inline void edits_finish(int rc, struct recording *recording, const struct kymo_error *err)
{
	if (rc) {
		if (!err->code || !err->text[0])
			abort();
		return;
	}
	handmade_walk(recording);
	store_close(recording);
}

#endif
