/* Streams: heads, rings, chains and totals; the files that a scan and the totals come from. */
#include "edits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct handmade made = { 0 };
	struct kymo_error err = { 0 };
	struct recording *recording;
	size_t first;

	handmade_all(&made);
	for (first = 0; !strstr(made.files[first].path, "/s"); first++)
		;
	edits_apply(&made, first, data, bytes);
	edits_finish(handmade_open_memory(&made, &recording, &err), recording, &err);
	handmade_free(&made);
	return 0;
}
