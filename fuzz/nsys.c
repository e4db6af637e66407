/* SQLite files: what SQLite makes of the bytes is read as in the child of kymo import, and the JSON
   that comes of it is a trace. SQLite itself is not instrumented. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/nsys/nsys.h"
#include "import/nsys/sqlite_api.h"
#include "trace_checks.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char file_path[600];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct kymo_error err = { 0 };

	(void)argc;
	(void)argv;
	snprintf(file_path, sizeof(file_path), "%s/file.sqlite", trace_checks_begin("nsys"));
	if (sqlite_api_load(&err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	return 0;
}

static bool put_bytes(const uint8_t *data, size_t bytes)
{
	FILE *file = fopen(file_path, "we");
	bool ok = file && fwrite(data, 1, bytes, file) == bytes;

	return file && !fclose(file) && ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct kymo_error damage = { 0 }, err = { 0 };
	int out = memfd_create("trace", MFD_CLOEXEC);
	struct stat status;
	char *json;

	if (out >= 0 && put_bytes(data, bytes) && !nsys_write(out, file_path, &damage, &err) &&
	    !fstat(out, &status) && status.st_size > 0) {
		json = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, out, 0);
		if (json == MAP_FAILED)
			abort();
		/* A row of any values is an event of a whole trace. */
		if (trace_checks_read((const uint8_t *)json, (size_t)status.st_size, import_events))
			abort();
		munmap(json, (size_t)status.st_size);
	}
	if (out >= 0)
		close(out);
	return 0;
}
