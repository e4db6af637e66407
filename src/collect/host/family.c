#include "collect/host/family.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/grow.h"
#include "collect/host/proc.h"

#define LOOKS_BETWEEN_FULL 60 /* a full scan finds pids that were reused between two scans */

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

static int compare_pids(const void *a, const void *b)
{
	pid_t one = *(const pid_t *)a, other = *(const pid_t *)b;

	return one < other ? -1 : one > other;
}

static bool was_seen(const struct family *family, pid_t pid)
{
	return family->seen_count &&
	       bsearch(&pid, family->seen, family->seen_count, sizeof(pid), compare_pids);
}

/* All pids of /proc, sorted; the caller frees. */
static pid_t *list_pids(size_t *out_count)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	size_t count = 0, room = 0;
	pid_t *pids = NULL;

	while (directory && (entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		if (!grow((void **)&pids, &room, count, sizeof(*pids)))
			break;
		pids[count++] = pid;
	}
	if (directory)
		closedir(directory);
	if (count)
		qsort(pids, count, sizeof(*pids), compare_pids);
	*out_count = count;
	return pids;
}

void family_init(struct family *family)
{
	memset(family, 0, sizeof(*family));
	family->seen = list_pids(&family->seen_count);
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

/* Adds the new pids whose parent is a member. Returns their number: their children may be among the
   rest. */
static size_t adopt(struct family *family, pid_t *pids, size_t count)
{
	size_t adopted = 0;

	for (size_t i = 0; i < count; i++) {
		struct proc_stat stat;

		if (!pids[i] || proc_stat(pids[i], &stat) || !has_pid(family, stat.ppid) ||
		    family_is_ours(stat.name))
			continue;
		if (family_add(family, stat.pid, stat.starttime, stat.name))
			adopted++;
		pids[i] = 0;
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
	size_t count = 0, fresh_count = 0;
	pid_t *pids = list_pids(&count);
	pid_t *fresh = count ? malloc(count * sizeof(*fresh)) : NULL;

	mark_gone(family);
	if (fresh) {
		bool full = ++family->looks % LOOKS_BETWEEN_FULL == 0;

		for (size_t i = 0; i < count; i++)
			if ((full || !was_seen(family, pids[i])) && !has_pid(family, pids[i]))
				fresh[fresh_count++] = pids[i];
		while (adopt(family, fresh, fresh_count))
			;
		free(fresh);
		free(family->seen);
		family->seen = pids;
		family->seen_count = count;
	} else {
		free(pids);
	}
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
	free(family->seen);
	memset(family, 0, sizeof(*family));
}
