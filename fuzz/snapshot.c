/* Snapshots: the list of files in one, and through it everything else. Inputs that begin with the
   magic are taken raw. */
#include "edits.h"

#include "base/files/snapshot_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The files of a small recording, one after another, and their list. */
static void pack(const struct handmade *made, struct run_files_blob *out)
{
	size_t bytes = sizeof(struct kymo_snapshot_head), at = bytes;
	struct kymo_snapshot_head *head;
	struct kymo_snapshot_entry *entry;

	for (size_t i = 0; i < made->count; i++)
		bytes += (made->files[i].bytes + 63) & ~(size_t)63;
	out->bytes = bytes + made->count * sizeof(*entry);
	head = calloc(1, out->bytes);
	out->data = head;
	handmade_head(head, KYMO_MAGIC_SNAPSHOT, sizeof(*head));
	head->toc_offset = bytes;
	head->count = made->count;
	entry = (void *)((char *)head + bytes);
	for (size_t i = 0; i < made->count; i++, entry++) {
		memcpy(entry->path, made->files[i].path, sizeof(entry->path));
		entry->offset = at;
		entry->bytes = made->files[i].bytes;
		memcpy((char *)head + at, made->files[i].data, made->files[i].bytes);
		at += (made->files[i].bytes + 63) & ~(size_t)63;
	}
}

static void open_bytes(const void *data, size_t bytes)
{
	struct kymo_error err = { 0 };
	struct recording *recording = NULL;
	struct run_files source;
	int rc = run_files_open_snapshot(&source, data, bytes, &err);

	if (!rc)
		rc = inside_open(&source, "in memory", 1, &recording, &err);
	edits_finish(rc, recording, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct handmade made = { 0 };
	struct handmade packed = { .count = 2 };
	struct run_files_blob *whole = &packed.files[0], *list = &packed.files[1];
	const struct kymo_snapshot_head *head;

	if (bytes >= 8 && !memcmp(data, KYMO_MAGIC_SNAPSHOT, 8)) {
		open_bytes(data, bytes);
		return 0;
	}
	handmade_all(&made);
	pack(&made, whole);
	head = whole->data;
	/* Edits go to the list of files as often as to all the rest. */
	list->bytes = (size_t)head->count * sizeof(struct kymo_snapshot_entry);
	list->data = malloc(list->bytes);
	memcpy((void *)(uintptr_t)list->data, (const char *)whole->data + head->toc_offset,
	       list->bytes);
	edits_apply(&packed, 0, data, bytes);
	if (whole->bytes >= sizeof(*head)) {
		head = whole->data;
		if (head->toc_offset < whole->bytes &&
		    list->bytes <= whole->bytes - head->toc_offset)
			memcpy((char *)(uintptr_t)whole->data + head->toc_offset, list->data,
			       list->bytes);
	}
	open_bytes(whole->data, whole->bytes);
	handmade_free(&packed);
	handmade_free(&made);
	return 0;
}
