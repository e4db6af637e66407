#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lake/lake_tidy.h"
#include "store/lake/lake_dir.h"

static bool lake_remove_is_ours(const char *name)
{
	const size_t length = strlen(name);

	return (length > 8 && !strcmp(name + length - 8, ".parquet")) ||
	       (length > 5 && name[0] == '.' && !strcmp(name + length - 5, ".part")) ||
	       !strncmp(name, "_replaced-", 10);
}

static void lake_remove_files(int fd, uint64_t *files)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (lake_remove_is_ours(entry->d_name) && !unlinkat(dirfd(dir), entry->d_name, 0))
			++*files;
	closedir(dir);
}

int lake_remove(const char *path, uint64_t *out_files, struct kymo_error *err)
{
	char inner[512];
	struct dirent *entry;
	struct lake_job job;
	DIR *dir;
	int fd, rc = lake_job_read(path, &job, err);

	*out_files = 0;
	if (rc)
		return rc;
	dir = opendir(job.lake);
	if (!dir)
		return error_set(err, errno, "cannot open %s: %s", job.lake, strerror(errno));
	while ((entry = readdir(dir))) {
		if (!strchr(entry->d_name, '.') || entry->d_name[0] == '.')
			continue;
		snprintf(inner, sizeof(inner), "%s/run=%s", entry->d_name, job.run);
		fd = openat(dirfd(dir), inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			continue;
		lake_remove_files(fd, out_files);
		unlinkat(dirfd(dir), inner, AT_REMOVEDIR);
		unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
	snprintf(inner, sizeof(inner), ".%s.compact", job.run);
	unlinkat(dirfd(dir), inner, 0);
	if (unlinkat(dirfd(dir), job.run, 0))
		rc = error_set(err, errno, "cannot remove %s: %s", path, strerror(errno));
	closedir(dir);
	return rc;
}
