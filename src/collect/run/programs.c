#include "collect/run/programs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "collect/host/proc.h"

#define COMMAND_BYTES 4096 /* of a command line; the rest is not compared */
#define ANCESTORS_MOST 4096 /* the processes of one look may form no tree */

static bool is_of_this_user(pid_t pid)
{
	char path[48], text[4096];
	unsigned id[3];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return false;
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %u %u %u", &id[0], &id[1], &id[2]) == 3 &&
	       id[0] == getuid() && id[1] == getuid() && id[2] == getuid();
}

static bool is_kymo(pid_t pid)
{
	char path[48], file[4096];
	const char *name;
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	bytes = readlink(path, file, sizeof(file) - 1);
	file[bytes > 0 ? bytes : 0] = '\0';
	name = strrchr(file, '/');
	return name && !strcmp(name, "/kymo");
}

static bool leads_terminal(const struct proc_stat *stat)
{
	return stat->session == stat->pid && stat->terminal;
}

static int take_process(struct programs *programs, const struct programs_wanted *wanted, pid_t pid)
{
	struct program *program;
	struct proc_stat stat;

	if (!is_of_this_user(pid) || proc_stat(pid, &stat) || stat.state == 'Z' ||
	    stat.state == 'X')
		return 0;
	if (!grow((void **)&programs->list, &programs->room, programs->count,
		  sizeof(*programs->list)))
		return -ENOMEM;
	program = &programs->list[programs->count++];
	*program = (struct program){
		.pid = pid,
		.parent = stat.ppid,
		.starttime = stat.starttime,
		.kymo = is_kymo(pid),
		.apart = pid == 1 || (!wanted->pattern && leads_terminal(&stat)),
	};
	memcpy(program->name, stat.name, sizeof(program->name));
	return 0;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t one = ((const struct program *)a)->pid, other = ((const struct program *)b)->pid;

	return (one > other) - (one < other);
}

struct program *programs_find(const struct programs *programs, pid_t pid)
{
	const struct program key = { .pid = pid };

	return programs->count
		       ? bsearch(&key, programs->list, programs->count, sizeof(key), compare_pids)
		       : NULL;
}

static void set_own_apart(const struct programs *programs)
{
	struct program *program = programs_find(programs, getpid());

	for (int i = 0; program && i < ANCESTORS_MOST; i++) {
		program->apart = true;
		program = programs_find(programs, program->parent);
	}
}

int programs_look(struct programs *programs, const struct programs_wanted *wanted)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	int rc = 0;

	programs->count = 0;
	while (directory && !rc && (entry = readdir(directory)))
		if (isdigit((unsigned char)entry->d_name[0]))
			rc = take_process(programs, wanted, (pid_t)strtol(entry->d_name, NULL, 10));
	if (directory)
		closedir(directory);
	if (programs->count)
		qsort(programs->list, programs->count, sizeof(*programs->list), compare_pids);
	set_own_apart(programs);
	return rc;
}

static bool command_line_matches(pid_t pid, const regex_t *pattern)
{
	char path[48], text[COMMAND_BYTES];
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	bytes = proc_read(path, text, sizeof(text));
	if (bytes <= 0)
		return false; /* a thread of the kernel, or a process that ends */
	for (ssize_t i = 0; i + 1 < bytes; i++)
		if (!text[i])
			text[i] = ' ';
	return !pattern || !regexec(pattern, text, 0, NULL, 0);
}

bool programs_is_wanted(const struct programs *programs, const struct program *program,
			const struct programs_wanted *wanted)
{
	const struct program *of = program;

	if (program->apart || (wanted->since && program->starttime < wanted->since))
		return false;
	for (int i = 0; of && i < ANCESTORS_MOST; i++) {
		if (of->kymo || of->watched)
			return false;
		of = programs_find(programs, of->parent);
	}
	return command_line_matches(program->pid, wanted->pattern);
}

void programs_fini(struct programs *programs)
{
	free(programs->list);
	memset(programs, 0, sizeof(*programs));
}
