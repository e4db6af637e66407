/* Perfetto traces: whatever the bytes are, the reader stays within its window, every event is
   counted once, and what it writes is a recording. */
#include <stdint.h>

#include "import/perfetto/perfetto.h"
#include "trace_checks.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	trace_checks_begin("perfetto");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	perfetto_is((const char *)data, bytes);
	trace_checks_read(data, bytes, perfetto_read);
	return 0;
}
