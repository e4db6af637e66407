/* Texts of the kernel, and of whoever can make it show something else: names of threads, interfaces
   and groups. The first byte says which parser. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "collect/host/cgroup.h"
#include "collect/host/host.h"
#include "collect/host/proc.h"
#include "collect/host/host_threads.h"

static void parse_settings(const char *text)
{
	struct settings_value value;
	char out[SETTINGS_TEXT_BYTES];

	for (const struct settings_key *key = settings_keys; key->name; key++)
		if (!settings_parse(key, text, &value, NULL))
			settings_format(key, &value, out, sizeof(out));
}

static void parse(uint8_t which, const char *text)
{
	struct cgroup_pressure pressure;
	struct cgroup_paths paths;
	struct host_cpu cpu;
	struct proc_stat stat;
	struct host_threads_schedule schedule;
	uint64_t one, other;
	char name[16];

	switch (which % 8) {
	case 0: proc_parse_stat(text, &stat); break;
	case 1: host_parse_cpu(text, &cpu); break;
	case 2: host_parse_interface(text, name, sizeof(name), &one, &other); break;
	case 3: host_threads_parse_schedstat(text, &schedule); break;
	case 4: cgroup_parse_paths(text, &paths); break;
	case 5: cgroup_parse_pressure(text, &pressure); break;
	case 6: cgroup_parse_cpu_max(text); break;
	default: parse_settings(text); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text;

	if (!bytes || bytes > 65536)
		return 0;
	text = malloc(bytes); /* exactly: what reads beyond the NUL is found */
	if (!text)
		return 0;
	memcpy(text, data + 1, bytes - 1);
	text[bytes - 1] = '\0';
	parse(data[0], text);
	free(text);
	return 0;
}
