/* Traces of other tools, plain or compressed: whatever they hold, the importer reads within its
   window, every event is counted once, and what it writes is a recording. */
#include <stdint.h>

#include "trace_checks.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	trace_checks_begin("trace");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	trace_checks_read(data, bytes, import_events);
	return 0;
}
