#include "collect/host/host_others.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

#include "base/buf.h"
#include "base/grow.h"
#include "base/utf8.h"
#include "collect/host/proc.h"

#define CROWDED_SHARE 10u /* a tenth of the time without a core */
#define BETWEEN_NS 500000000ull /* at least, between the two scans */
#define PAIR_EVERY_NS 5000000000ull
#define PROCESSES_MOST 8192u
#define NAMES_MOST 3u
#define LEAST_PART 10u /* a tenth of a core; less is not named */

/* CPU time of all processes of one name between the two scans. */
struct other_name {
	char name[64];
	uint64_t ticks;
	unsigned processes;
};

static bool is_of_program(const struct family *family, const struct proc_stat *stat)
{
	for (size_t i = 0; i < family->count; i++)
		if (family->members[i].pid == stat->pid &&
		    family->members[i].starttime == stat->starttime)
			return true;
	return stat->pid == getpid();
}

/* Calls each() for every process that does not belong to the program. */
static void each_other(const struct family *family,
		       void (*each)(void *context, const struct proc_stat *stat), void *context)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	unsigned count = 0;

	while (directory && count < PROCESSES_MOST && (entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct proc_stat stat;

		if (pid <= 0 || proc_stat(pid, &stat) || is_of_program(family, &stat))
			continue;
		each(context, &stat);
		count++;
	}
	if (directory)
		closedir(directory);
}

static uint64_t cpu_ticks_of(const struct proc_stat *stat)
{
	return stat->user_ticks + stat->system_ticks;
}

static void note_process(void *context, const struct proc_stat *stat)
{
	struct host_others *others = context;

	if (grow_short((void **)&others->before, others->before_count, sizeof(*others->before)))
		others->before[others->before_count++] = (struct host_others_process){
			stat->pid, stat->starttime, cpu_ticks_of(stat)
		};
}

struct comparing {
	const struct host_others *others;
	struct other_name *names;
	size_t count;
};

/* A process that is new since the first scan counts from its start. */
static uint64_t ticks_before(const struct host_others *others, const struct proc_stat *stat)
{
	for (size_t i = 0; i < others->before_count; i++)
		if (others->before[i].pid == stat->pid &&
		    others->before[i].starttime == stat->starttime)
			return others->before[i].cpu_ticks;
	return 0;
}

static void compare_process(void *context, const struct proc_stat *stat)
{
	struct comparing *comparing = context;
	uint64_t before = ticks_before(comparing->others, stat), now = cpu_ticks_of(stat);
	struct other_name *name = NULL;

	if (now <= before)
		return;
	for (size_t i = 0; i < comparing->count && !name; i++)
		if (!strcmp(comparing->names[i].name, stat->name))
			name = &comparing->names[i];
	if (!name) {
		if (!grow_short((void **)&comparing->names, comparing->count,
				sizeof(*comparing->names)))
			return;
		name = &comparing->names[comparing->count++];
		memset(name, 0, sizeof(*name));
		snprintf(name->name, sizeof(name->name), "%s", stat->name);
	}
	name->ticks += now - before;
	name->processes++;
}

static int host_others_by_ticks(const void *a, const void *b)
{
	const struct other_name *x = a, *y = b;

	return x->ticks < y->ticks ? 1 : x->ticks > y->ticks ? -1 : strcmp(x->name, y->name);
}

/* "python (4 processes), cc1plus": the costliest first. */
static void write_mark(struct comparing *comparing, uint64_t past_ns)
{
	struct buf text = { 0 };
	char shown[128];

	if (comparing->count)
		qsort(comparing->names, comparing->count, sizeof(*comparing->names),
		      host_others_by_ticks);
	for (size_t i = 0; i < comparing->count && i < NAMES_MOST; i++) {
		const struct other_name *name = &comparing->names[i];

		if (proc_ticks_ns(name->ticks) < past_ns / LEAST_PART)
			break;
		utf8_visible(name->name, strlen(name->name), shown, sizeof(shown));
		buf_print(&text, "%s%s", i ? ", " : "", shown);
		if (name->processes > 1)
			buf_print(&text, " (%u processes)", name->processes);
	}
	if (text.used && !text.failed)
		kymo_mark(HOST_OTHERS_MARK, buf_get(&text));
	buf_fini(&text);
}

static void forget_before(struct host_others *others)
{
	free(others->before);
	others->before = NULL;
	others->before_count = 0;
}

static void finish_pair(struct host_others *others, const struct family *family, uint64_t now_ns)
{
	struct comparing comparing = { .others = others };

	each_other(family, compare_process, &comparing);
	write_mark(&comparing, now_ns - others->scanned_ns);
	free(comparing.names);
	forget_before(others);
	others->next_ns = now_ns + PAIR_EVERY_NS;
}

static bool is_crowded(struct host_others *others, const struct family *family, uint64_t now_ns)
{
	uint64_t delay_ns = 0, past_ns = now_ns - others->looked_ns, more_ns;

	for (size_t i = 0; i < family->count; i++)
		delay_ns += host_threads_delay_ns(&family->members[i].threads);
	more_ns = delay_ns > others->delay_ns ? delay_ns - others->delay_ns : 0;
	if (!others->looked_ns)
		past_ns = 0; /* the first look */
	others->looked_ns = now_ns;
	others->delay_ns = delay_ns;
	return past_ns && more_ns > past_ns / CROWDED_SHARE;
}

void host_others_look(struct host_others *others, const struct family *family, uint64_t now_ns)
{
	bool crowded = is_crowded(others, family, now_ns);

	if (others->before) {
		if (now_ns - others->scanned_ns >= BETWEEN_NS)
			finish_pair(others, family, now_ns);
		return;
	}
	if (!crowded || now_ns < others->next_ns)
		return;
	others->scanned_ns = now_ns;
	each_other(family, note_process, others);
}

void host_others_fini(struct host_others *others)
{
	forget_before(others);
}
