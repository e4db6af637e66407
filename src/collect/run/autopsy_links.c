#include "collect/run/autopsy_links.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/host/proc.h"
#include "collect/wait/wait_call.h"

#define FDS_MOST 4096 /* of a process that are looked at */

/* "pipe:[4711]" of a descriptor; 0: it is no pipe. */
static uint64_t pipe_of(pid_t pid, const char *fd)
{
	char path[320], link[64];
	ssize_t bytes;
	uint64_t inode;

	snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, fd);
	bytes = readlink(path, link, sizeof(link) - 1);
	if (bytes <= 0)
		return 0;
	link[bytes] = '\0';
	return sscanf(link, "pipe:[%" SCNu64 "]", &inode) == 1 ? inode : 0;
}

/* Whether a descriptor is open for the direction: 0 to read, 1 to write. */
static bool is_open_for(pid_t pid, const char *fd, unsigned long direction)
{
	char path[320], text[512];
	const char *at;
	unsigned long mode;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, fd);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return false;
	at = strstr(text, "flags:");
	mode = at ? strtoul(at + 6, NULL, 8) & 3 : 3;
	return mode == direction || mode == 2;
}

static bool has_end(pid_t pid, uint64_t inode, unsigned long direction)
{
	char path[48];
	struct dirent *entry;
	bool found = false;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	directory = opendir(path);
	for (int i = 0; directory && !found && i < FDS_MOST && (entry = readdir(directory)); i++)
		found = entry->d_name[0] != '.' && pipe_of(pid, entry->d_name) == inode &&
			is_open_for(pid, entry->d_name, direction);
	if (directory)
		closedir(directory);
	return found;
}

static void link_pipe(struct autopsy_link *links, size_t count, size_t i, long fd, bool reads)
{
	char text[24];
	uint64_t inode;

	snprintf(text, sizeof(text), "%ld", fd);
	inode = pipe_of(links[i].pid, text);
	if (!inode)
		return;
	links[i].kind = reads ? AUTOPSY_LINK_READ : AUTOPSY_LINK_WRITE;
	for (size_t k = 0; k < count; k++)
		links[i].wakers[k] = (k != i || links[k].single) &&
				     has_end(links[k].pid, inode, reads ? 1 : 0);
}

static void link_child(struct autopsy_link *links, size_t count, size_t i, pid_t child)
{
	for (size_t k = 0; k < count; k++)
		if (links[k].pid == child) {
			links[i].kind = AUTOPSY_LINK_CHILD;
			links[i].wakers[k] = true;
		}
}

static void autopsy_link_one(struct autopsy_link *links, size_t count, size_t i)
{
	struct wait_call call;

	if (wait_call_read(links[i].pid, links[i].pid, &call))
		return;
	if (call.number == SYS_read || call.number == SYS_readv)
		link_pipe(links, count, i, (long)call.argument[0], true);
	else if (call.number == SYS_write || call.number == SYS_writev)
		link_pipe(links, count, i, (long)call.argument[0], false);
	else if (call.number == SYS_wait4)
		link_child(links, count, i, (pid_t)(int32_t)call.argument[0]);
}

/* Someone who is not stuck may end the wait, and so may a process that is not known. */
static bool may_end(const struct autopsy_link *links, size_t count, const struct autopsy_link *one)
{
	bool any = false;

	for (size_t k = 0; k < count; k++) {
		any |= one->wakers[k];
		if (one->wakers[k] && !links[k].stuck)
			return true;
	}
	return !any;
}

size_t autopsy_links_settle(struct autopsy_link *links, size_t count)
{
	bool changed = true;
	size_t stuck = 0;

	for (size_t i = 0; i < count; i++)
		links[i].stuck = links[i].kind != AUTOPSY_LINK_NONE;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < count; i++)
			if (links[i].stuck && may_end(links, count, &links[i])) {
				links[i].stuck = false;
				changed = true;
			}
	}
	for (size_t i = 0; i < count; i++)
		stuck += links[i].stuck;
	return stuck;
}

size_t autopsy_links_find(struct autopsy_link *links, size_t count)
{
	for (size_t i = 0; i < count; i++)
		autopsy_link_one(links, count, i);
	return autopsy_links_settle(links, count);
}
