/* pprof profiles: whatever the bytes are, the reader stays within its window, every sample is
   counted once, and what it writes is a recording. */
#include <stdint.h>

#include "import/profiles/pprof.h"
#include "trace_checks.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	trace_checks_begin("pprof");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	pprof_is((const char *)data, bytes);
	trace_checks_read(data, bytes, pprof_read);
	return 0;
}
