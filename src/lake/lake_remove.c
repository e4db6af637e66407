#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/safe_path.h"
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

static void lake_remove_table(int lake, const char *name, const struct lake_job *job,
			      uint64_t *files)
{
	char inner[LAKE_RUN_BYTES + 8];
	int table = lake_enter(lake, name, false), fd;

	if (table < 0)
		return;
	snprintf(inner, sizeof(inner), "run=%s", job->run);
	fd = lake_enter(table, inner, false);
	if (fd >= 0) {
		lake_remove_files(fd, files);
		unlinkat(table, inner, AT_REMOVEDIR);
	}
	close(table);
	unlinkat(lake, name, AT_REMOVEDIR);
}

/* Nothing is removed through a link, and root removes nothing where others could exchange it. */
int lake_remove(const char *path, uint64_t *out_files, struct kymo_error *err)
{
	struct safe_dir lake = SAFE_DIR_NONE;
	char compact[LAKE_RUN_BYTES + 16];
	struct dirent *entry;
	struct lake_job job;
	DIR *dir;
	int fd, rc = lake_job_read(path, &job, err);

	*out_files = 0;
	if (!rc)
		rc = safe_dir_open(&lake, job.lake, 0, err);
	if (rc)
		return rc;
	fd = openat(lake.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		rc = error_set(err, errno, "cannot open %s: %s", job.lake, strerror(errno));
		if (fd >= 0)
			close(fd);
		safe_dir_close(&lake);
		return rc;
	}
	while ((entry = readdir(dir)))
		if (strchr(entry->d_name, '.') && entry->d_name[0] != '.')
			lake_remove_table(lake.fd, entry->d_name, &job, out_files);
	snprintf(compact, sizeof(compact), ".%s.compact", job.run);
	unlinkat(lake.fd, compact, 0);
	if (unlinkat(lake.fd, job.run, 0))
		rc = error_set(err, errno, "cannot remove %s: %s", path, strerror(errno));
	closedir(dir);
	safe_dir_close(&lake);
	return rc;
}
