/* The limits of a run: memory for each process, disk space for the whole run. */
#ifndef KYMO_COLLECT_BUDGET_H
#define KYMO_COLLECT_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define BUDGET_MEMORY_BYTES (1ull << 30)
#define BUDGET_DISK_BYTES (4ull << 30)

struct budget {
	uint64_t memory_bytes;
	uint64_t disk_bytes;
};

/* "1G" is memory; "mem=1G", "disk=4G" and "mem=1G,disk=4G" name the limit. K, M, G, T are powers of
   1,024; a bare number is bytes. Limits that the text does not name, and all limits on error, keep
   their value in *budget. */
int budget_parse(const char *text, struct budget *budget, struct kymo_error *err);
/* In the form that libkymo and budget_parse() read. */
void budget_format(const struct budget *budget, char *out, size_t out_bytes);

#endif
