#include "collect/wait/wait_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/host/proc.h"

int wait_call_parse(const char *text, struct wait_call *out)
{
	char *at;

	memset(out, 0, sizeof(*out));
	if (!strncmp(text, "running", 7))
		return 1;
	out->number = strtol(text, &at, 10);
	if (at == text)
		return -EINVAL;
	for (int i = 0; i < 6 && out->number >= 0; i++)
		out->argument[i] = strtoull(at, &at, 16);
	out->sp = strtoull(at, &at, 16);
	out->pc = strtoull(at, &at, 16);
	return 0;
}

int wait_call_read(pid_t pid, pid_t tid, struct wait_call *out)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	return proc_read(path, text, sizeof(text)) > 0 ? wait_call_parse(text, out) : -EACCES;
}
