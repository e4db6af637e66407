#include "collect/host/family.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/grow.h"
#include "collect/host/proc.h"

#define LOOKS_BETWEEN_FULL 60 /* a full scan finds pids that were not given in order */
#define RANGE_MOST 100 /* new pids that are tried one by one: faster than a listing of all */

struct family_member *family_find(struct family *family, pid_t pid, uint64_t starttime)
{
	for (size_t i = 0; i < family->count; i++)
		if (family->members[i].pid == pid && family->members[i].starttime == starttime)
			return &family->members[i];
	return NULL;
}

struct family_member *family_add(struct family *family, pid_t pid, uint64_t starttime,
				 const char *name)
{
	struct family_member *member = family_find(family, pid, starttime);

	if (member)
		return member;
	if (!grow((void **)&family->members, &family->room, family->count,
		  sizeof(*family->members)))
		return NULL;
	member = &family->members[family->count++];
	memset(member, 0, sizeof(*member));
	member->pid = pid;
	member->starttime = starttime;
	snprintf(member->name, sizeof(member->name), "%s", name);
	return member;
}

static bool has_pid(const struct family *family, pid_t pid)
{
	for (size_t i = 0; i < family->count; i++)
		if (family->members[i].pid == pid && !family->members[i].gone)
			return true;
	return false;
}

/* The pid that was given last; 0: not known. */
static pid_t read_last_pid(void)
{
	char text[128];
	const char *last = proc_read("/proc/loadavg", text, sizeof(text)) > 0 ? strrchr(text, ' ')
									      : NULL;
	long pid = last ? strtol(last, NULL, 10) : 0;

	return pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

struct pid_list {
	pid_t *pids;
	size_t count, room;
};

static bool family_list_add(struct pid_list *list, pid_t pid)
{
	if (!grow((void **)&list->pids, &list->room, list->count, sizeof(pid)))
		return false;
	list->pids[list->count++] = pid;
	return true;
}

/* The pids of /proc after `after` that are no members. */
static void list_pids(const struct family *family, pid_t after, struct pid_list *out)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > after && !has_pid(family, pid) && !family_list_add(out, pid))
			break;
	}
	if (directory)
		closedir(directory);
}

/* Some are of threads, and most belong to other programs. */
static void list_range(const struct family *family, pid_t after, pid_t last, struct pid_list *out)
{
	for (pid_t pid = after + 1; pid <= last; pid++)
		if (!has_pid(family, pid) && !family_list_add(out, pid))
			break;
}

void family_init(struct family *family)
{
	memset(family, 0, sizeof(*family));
	family->last_pid = read_last_pid();
}

int family_root(struct family *family, pid_t root, uint64_t starttime, const char *name)
{
	return family_add(family, root, starttime, name) ? 0 : -ENOMEM;
}

/* A process of kymo that tests a build of torch. It and its children do not belong to the
   program. */
static bool family_is_ours(const char *name)
{
	return !strcmp(name, KYMO_TRIAL_NAME);
}

/* The collector is a child of a program that records itself (kymo.start() in Python). */
static bool is_own_process(pid_t pid)
{
	return pid == getpid();
}

/* Not of a thread, which has files in /proc, too. */
static bool is_process(pid_t pid)
{
	char path[48], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return proc_read(path, text, sizeof(text)) > 0 &&
	       proc_field(text, "Tgid:", 0) == (uint64_t)pid;
}

/* Adds the new pids whose parent is a member. Returns their number: their children may be among the
   rest. */
static size_t adopt(struct family *family, struct pid_list *list)
{
	size_t adopted = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct proc_stat stat;

		if (!list->pids[i] || proc_stat(list->pids[i], &stat) ||
		    !has_pid(family, stat.ppid) || family_is_ours(stat.name) ||
		    is_own_process(stat.pid) || !is_process(stat.pid))
			continue;
		if (family_add(family, stat.pid, stat.starttime, stat.name))
			adopted++;
		list->pids[i] = 0;
	}
	return adopted;
}

static void mark_gone(struct family *family)
{
	for (size_t i = 0; i < family->count; i++) {
		struct family_member *member = &family->members[i];
		struct proc_stat stat;

		if (member->gone)
			continue;
		if (proc_stat(member->pid, &stat) || stat.starttime != member->starttime)
			member->gone = true;
		else
			memcpy(member->name, stat.name, sizeof(member->name));
		/* It may have been added before it had its name. */
		member->recorded |= family_is_ours(member->name);
	}
}

void family_look(struct family *family)
{
	pid_t before = family->last_pid, last = read_last_pid();
	bool full = ++family->looks % LOOKS_BETWEEN_FULL == 0 || !before || last < before;
	struct pid_list list = { 0 };

	mark_gone(family);
	if (full)
		list_pids(family, 0, &list);
	else if (last - before > RANGE_MOST)
		list_pids(family, before, &list);
	else
		list_range(family, before, last, &list);
	while (adopt(family, &list))
		;
	free(list.pids);
	family->last_pid = last;
}

static void add_unrecorded(struct family *family, const struct family_member *member)
{
	size_t used = strlen(family->gone_names);

	if (family->gone_unrecorded < 3 && used < sizeof(family->gone_names))
		snprintf(family->gone_names + used, sizeof(family->gone_names) - used,
			 "%s%s (pid %d)", used ? ", " : "", member->name, (int)member->pid);
	family->gone_unrecorded++;
}

void family_forget(struct family *family)
{
	size_t kept = 1;

	for (size_t i = 1; i < family->count; i++) {
		struct family_member *member = &family->members[i];

		if (!member->gone) {
			family->members[kept++] = *member;
			continue;
		}
		if (!member->recorded)
			add_unrecorded(family, member);
		host_threads_fini(&member->threads);
	}
	if (family->count)
		family->count = kept;
}

void family_fini(struct family *family)
{
	for (size_t i = 0; i < family->count; i++)
		host_threads_fini(&family->members[i].threads);
	free(family->members);
	memset(family, 0, sizeof(*family));
}
