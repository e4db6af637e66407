#include "collect/host/host_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/schema.h"
#include "collect/host/proc.h"
#include "record/record.h"

#define UNCHANGED_LOOKS 5u /* before the pause doubles */
#define PAGES_MOST (1ull << 48)

uint64_t host_memory_parse(const char *statm)
{
	unsigned long long pages;
	char *end;

	strtoull(statm, &end, 10); /* the address space */
	if (end == statm || *end != ' ')
		return 0;
	pages = strtoull(end, NULL, 10);
	return pages < PAGES_MOST ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static bool is_change(uint64_t before, uint64_t now)
{
	return (before > now ? before - now : now - before) >= HOST_MEMORY_STEP_BYTES;
}

bool host_memory_note(struct host_memory *memory, pid_t pid, uint64_t rss_bytes, uint64_t now_ns)
{
	struct schema_host_memory_row row;
	uint64_t since_ns = memory->read_ns && now_ns > memory->read_ns ? now_ns - memory->read_ns
									: 0;

	if (!rss_bytes)
		return false;
	memory->read_ns = now_ns;
	if (!is_change(memory->rss_bytes, rss_bytes))
		return false;
	memset(&row, 0, sizeof(row));
	row.ts_ticks = kymo_ticks();
	row.pid = pid;
	row.rss_bytes = memory->rss_bytes = rss_bytes;
	row.since_ns = since_ns;
	kymo__append(SCHEMA_HOST_MEMORY, &row);
	return true;
}

bool host_memory_look(struct host_memory *memory, pid_t pid, uint64_t now_ns)
{
	char path[48], text[128];

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	return proc_read(path, text, sizeof(text)) > 0 &&
	       host_memory_note(memory, pid, host_memory_parse(text), now_ns);
}

uint64_t host_memory_pause(uint64_t age_ns, uint64_t unchanged)
{
	uint64_t pause_ns = age_ns < HOST_MEMORY_FIRST_FOR_NS ? HOST_MEMORY_FIRST_NS
							      : HOST_MEMORY_NS;
	uint64_t most_ns = age_ns < HOST_MEMORY_FIRST_FOR_NS ? HOST_MEMORY_NS
							     : HOST_MEMORY_SLOWEST_NS;

	for (uint64_t left = unchanged / UNCHANGED_LOOKS; left && pause_ns < most_ns; left--)
		pause_ns *= 2;
	return pause_ns < most_ns ? pause_ns : most_ns;
}
