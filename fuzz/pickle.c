/* Pickles of flight-recorder dumps, and what they hold: whatever the bytes are, nothing but plain
   data is read, JSON comes of it within its limits, and every entry is counted once. */
#include <stdint.h>
#include <stdlib.h>

#include "import/flight/flight.h"
#include "import/flight/pickle.h"
#include "trace_checks.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	trace_checks_begin("pickle");
	return 0;
}

/* What the reader writes is one JSON value, with nothing after it. */
static void check_json(const uint8_t *data, size_t bytes)
{
	struct kymo_error err = { 0 };
	struct buf json = { 0 };
	struct json_scan scan = { 0 };

	if (!pickle_to_json((const char *)data, bytes, &json, &err)) {
		buf_fill(&json, '\0', JSON_SCAN_PADDING);
		buf_char(&json, '\0');
		scan.at = json.data;
		scan.end = json.data + json.used - JSON_SCAN_PADDING;
		if (*scan.at == '{' || *scan.at == '[') {
			if (!json_scan_skip(&scan) || scan.at + 1 != scan.end)
				abort();
		}
	} else if (!err.code || !err.text[0]) {
		abort();
	}
	buf_fini(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	check_json(data, bytes);
	trace_checks_read(data, bytes, flight_read_pickle);
	return 0;
}
