/* Profiles of speedscope: whatever they hold, the importer reads within its window, every event is
   counted once, and what it writes is a recording. fuzz/trace.c calls the same reader: this target
   has seeds of its own. */
#include <stdint.h>

#include "trace_checks.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	trace_checks_begin("speedscope");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	trace_checks_read(data, bytes, import_events);
	return 0;
}
