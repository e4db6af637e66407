#include "trigger/job_requests.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* .kymo-fired,JOB,TRIGGER,HOST-PID,NUMBER */
#define PREFIX ".kymo-fired,"

/* Parts of a name hold no separators. */
static void put_plain(char *out, size_t out_bytes, const char *text)
{
	size_t i;

	for (i = 0; text[i] && i + 1 < out_bytes; i++)
		out[i] = text[i] == '/' || text[i] == ',' ? '_' : text[i];
	out[i] = '\0';
}

void job_requests_init(struct job_requests *requests, const char *disk,
		       const struct kymo_run_file *run)
{
	struct stat status;
	char *slash;

	memset(requests, 0, sizeof(*requests));
	/* As the file system shows this user: it may map users of other hosts. */
	if (!run->job[0] || !disk[0] || stat(disk, &status))
		return;
	requests->owner = status.st_uid;
	snprintf(requests->directory, sizeof(requests->directory), "%s", disk);
	slash = strrchr(requests->directory, '/');
	if (slash)
		*slash = '\0';
	else
		snprintf(requests->directory, sizeof(requests->directory), ".");
	put_plain(requests->job, sizeof(requests->job), run->job);
	put_plain(requests->self, sizeof(requests->self) - 16, run->host);
	snprintf(requests->self + strlen(requests->self), 16, "-%d", run->supervisor_pid);
	requests->since = time(NULL);
}

void job_requests_send(struct job_requests *requests, const char *trigger, uint64_t number)
{
	char path[KYMO_PATH_BYTES + 320];
	int fd;

	if (!requests->directory[0])
		return;
	snprintf(path, sizeof(path), "%s/" PREFIX "%s,%s,%s,%llu", requests->directory,
		 requests->job, trigger, requests->self, (unsigned long long)number);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

static bool is_new(struct job_requests *requests, const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (const char *at = name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
	for (size_t i = 0; i < requests->known_count && i < JOB_REQUESTS_KNOWN; i++)
		if (requests->known[i] == hash)
			return false;
	requests->known[requests->known_count++ % JOB_REQUESTS_KNOWN] = hash;
	return true;
}

/* The trigger and the author of a request of this job by another recording. */
static bool parse_request(struct job_requests *requests, const char *name, char *out,
			  size_t out_bytes)
{
	const char *at = name + strlen(PREFIX);
	size_t job = strcspn(at, ","), trigger, author;
	const char *from;

	if (strncmp(name, PREFIX, strlen(PREFIX)) || strlen(requests->job) != job ||
	    strncmp(at, requests->job, job) || at[job] != ',')
		return false;
	at += job + 1;
	trigger = strcspn(at, ",");
	from = at + trigger + (at[trigger] == ',');
	author = strcspn(from, ",");
	snprintf(requests->from, sizeof(requests->from), "%.*s", (int)author, from);
	snprintf(out, out_bytes, "%.*s", (int)trigger, at);
	return strcmp(requests->from, requests->self);
}

bool job_requests_next(struct job_requests *requests, char *out, size_t out_bytes)
{
	DIR *directory = requests->directory[0] ? opendir(requests->directory) : NULL;
	struct dirent *entry;
	struct stat status;
	bool found = false;

	while (directory && !found && (entry = readdir(directory)))
		found = !strncmp(entry->d_name, PREFIX, strlen(PREFIX)) &&
			parse_request(requests, entry->d_name, out, out_bytes) &&
			!fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
			status.st_uid == requests->owner && /* others start no actions here */
			status.st_mtime + 2 >= requests->since && is_new(requests, entry->d_name);
	if (directory)
		closedir(directory);
	return found;
}
