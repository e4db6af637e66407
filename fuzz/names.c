/* Names and their text, threads, the control page and the run file. Half of the inputs bring the
   text themselves. */
#include "edits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* names: entries as they come; text: all of the input. */
static void bring_text(struct handmade *made, const uint8_t *data, size_t bytes)
{
	struct run_files_blob *names = handmade_find(made, "p10-77/names");
	struct run_files_blob *text = handmade_find(made, "p10-77/text");
	struct kymo_name_entry *entries = (void *)((char *)(uintptr_t)names->data +
						   sizeof(struct kymo_names_head));
	size_t used = sizeof(struct kymo_text_head) + bytes;
	char *longer = calloc(1, used);

	memcpy(longer, text->data, sizeof(struct kymo_text_head));
	memcpy(longer + sizeof(struct kymo_text_head), data, bytes);
	free((void *)(uintptr_t)text->data);
	text->data = longer;
	text->bytes = used;
	for (int i = 1; i <= 3; i++) {
		entries[i].text_offset = sizeof(struct kymo_text_head) +
					 bytes * (size_t)(i - 1) / 3;
		entries[i].name_bytes = (uint32_t)(bytes / 6);
		entries[i].file_bytes = (uint32_t)(bytes / 6);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct handmade made = { 0 };
	struct kymo_error err = { 0 };
	struct recording *recording;

	handmade_run(&made);
	handmade_control(&made, "p10-77", 10);
	handmade_names(&made, "p10-77", handmade_words);
	handmade_threads(&made, "p10-77", 11);
	handmade_control(&made, "p12-77.2", 12);
	handmade_names(&made, "p12-77.2", handmade_words);
	if (bytes && data[0] % 2)
		bring_text(&made, data + 1, bytes - 1);
	else if (bytes)
		edits_apply(&made, 0, data + 1, bytes - 1);
	edits_finish(handmade_open_memory(&made, &recording, &err), recording, &err);
	handmade_free(&made);
	return 0;
}
