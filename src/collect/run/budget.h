/* How much a run may hold: of memory, for each process, and of disk, for the whole run. */
#ifndef KYMO_COLLECT_RUN_BUDGET_H
#define KYMO_COLLECT_RUN_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define BUDGET_MEMORY_BYTES (1ull << 30)
#define BUDGET_DISK_BYTES (4ull << 30)

struct budget {
	uint64_t memory_bytes;
	uint64_t disk_bytes;
};

/* "1G" is of memory; "mem=1G", "disk=4G" and "mem=1G,disk=4G" say which. K, M, G, T are powers of
   1,024; a bare number is bytes. What the text does not name stays as it is in *budget, also on
   error. */
int budget_parse(const char *text, struct budget *budget, struct kymo_error *err);
/* As libkymo in the program and budget_parse() read it. */
void budget_format(const struct budget *budget, char *out, size_t out_bytes);

#endif
