#include "store/alive.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t read_small(const char *path, char *out, size_t out_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes;

	if (fd < 0)
		return -1;
	bytes = read(fd, out, out_bytes - 1);
	close(fd);
	out[bytes > 0 ? bytes : 0] = '\0';
	return bytes;
}

bool alive_same_boot(const char *boot_id)
{
	char ours[64];

	if (!boot_id[0])
		return true;
	if (read_small("/proc/sys/kernel/random/boot_id", ours, sizeof(ours)) <= 0)
		return false;
	ours[strcspn(ours, "\n")] = '\0';
	return !strcmp(ours, boot_id);
}

bool alive_elsewhere(const char *boot_id, const char *host)
{
	char ours[64] = "";

	if (!boot_id[0] || !host[0] || alive_same_boot(boot_id))
		return false;
	gethostname(ours, sizeof(ours) - 1);
	return strncmp(ours, host, sizeof(ours) - 1) != 0;
}

/* Field 22 of /proc/PID/stat; 0: no such process, or a zombie. */
static uint64_t running_since(const char *pid)
{
	char path[64], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	if (read_small(path, text, sizeof(text)) <= 0)
		return 0;
	at = strrchr(text, ')'); /* the program's name may contain anything */
	if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
		return 0;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static uint64_t alive_namespace_of(const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", pid);
	return stat(path, &st) ? 0 : (uint64_t)st.st_ino;
}

bool alive_hidden(uint64_t pid_namespace)
{
	const uint64_t first = 0xeffffffc; /* PROC_PID_INIT_INO: sees all processes */
	uint64_t ours = alive_namespace_of("self");

	return pid_namespace && ours && ours != pid_namespace && ours != first;
}

/* A process in a container: its pid differs here, its start time is the same. */
static bool alive_in_container(uint64_t starttime, uint64_t pid_namespace)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (proc && !found && (entry = readdir(proc)))
		found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			alive_namespace_of(entry->d_name) == pid_namespace &&
			running_since(entry->d_name) == starttime;
	if (proc)
		closedir(proc);
	return found;
}

bool alive_process(int32_t pid, uint64_t starttime, uint64_t pid_namespace)
{
	char text[16];

	if (pid <= 0 || !starttime)
		return false;
	if (pid_namespace && pid_namespace != alive_namespace_of("self"))
		return alive_in_container(starttime, pid_namespace);
	snprintf(text, sizeof(text), "%d", (int)pid);
	return running_since(text) == starttime;
}
