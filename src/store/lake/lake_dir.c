#include "store/lake/lake_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/safe_path.h"
#include "base/grow.h"

#define JOB_FILE_BYTES 1024
#define JOBS_MAX 1000000u
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)

/* ---- names ---------------------------------------------------------------------------------- */

static bool lake_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void lake_word(const char *text, char *out, size_t out_bytes)
{
	size_t count = 0;

	for (; *text && count + 1 < out_bytes; text++) {
		bool keep = lake_is_letter(*text) || (count && strchr("._-", *text));

		out[count] = '_';
		if (keep || !count)
			out[count] = keep ? *text : 'x';
		count++;
	}
	if (!count && out_bytes > 1)
		out[count++] = 'x';
	out[count] = '\0';
}

bool lake_is_plain(const char *name)
{
	if (!lake_is_letter(name[0]))
		return false;
	for (; *name; name++)
		if (!lake_is_letter(*name) && !strchr("._-", *name))
			return false;
	return true;
}

uint64_t lake_hash_column(uint64_t hash, const char *name, const char *type)
{
	const char *const parts[] = { name, " ", type, "\n" };

	for (size_t i = 0; i < 4; i++)
		for (const char *c = parts[i]; *c; c++)
			hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return hash;
}

bool lake_name_row(const char *name, uint64_t *out_row)
{
	const char *dash = strrchr(name, '-'), *end = strstr(name, ".parquet");
	uint64_t row = 0;

	if (!dash || !end || end - dash < 2 || end - dash > 19 || !strncmp(name, "compact-", 8))
		return false;
	/* The 12 digits of a writer are not all decimal by accident: a row has a letter before. */
	if (dash[1] != 'r')
		return false;
	for (const char *c = dash + 2; c < end; c++) {
		if (*c < '0' || *c > '9')
			return false;
		row = row * 10 + (uint64_t)(*c - '0');
	}
	*out_row = row;
	return true;
}

/* ---- directories ---------------------------------------------------------------------------- */

int lake_enter(int directory, const char *name, bool make)
{
	struct stat status;
	int fd;

	if (make && mkdirat(directory, name, 0777) && errno != EEXIST)
		return -errno;
	fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		return fd;
	fd = -errno;
	return !fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) && S_ISLNK(status.st_mode)
		       ? -ELOOP
		       : fd;
}

int lake_enter_table(int lake, const char *table, const char *run, bool make)
{
	char inner[LAKE_RUN_BYTES + 8];
	int outer = lake_enter(lake, table, make), fd;

	if (outer < 0)
		return outer;
	snprintf(inner, sizeof(inner), "run=%s", run);
	fd = lake_enter(outer, inner, make);
	close(outer);
	return fd;
}

static int check_path(const char *path, struct kymo_error *err)
{
	size_t plain = 0;

	while (path[plain] && (unsigned char)path[plain] >= ' ' && !strchr("*?[{\\", path[plain]))
		plain++;
	return path[plain] ? error_set(err, EINVAL,
				       "%s cannot be a lake: its path has one of * ? [ { \\ or a "
				       "control character, which DuckDB and Spark do not take "
				       "literally",
				       path)
			   : 0;
}

/* ---- the file of a job ---------------------------------------------------------------------- */

bool lake_is_job(const char *begin, size_t bytes)
{
	return bytes >= sizeof(LAKE_MAGIC_ANY) - 1 &&
	       !memcmp(begin, LAKE_MAGIC_ANY, sizeof(LAKE_MAGIC_ANY) - 1);
}

static ssize_t read_job_file(int directory, const char *name, char *text, size_t bytes)
{
	int fd = openat(directory, name, OPEN_FLAGS);
	ssize_t count = fd < 0 ? -1 : read(fd, text, bytes - 1);
	struct stat status;

	if (count >= 0 && (fstat(fd, &status) || !S_ISREG(status.st_mode)))
		count = -1;
	text[count > 0 ? count : 0] = '\0';
	if (fd >= 0)
		close(fd);
	return count;
}

/* The text after KEY and a space at the beginning of a line. */
static bool job_value(const char *text, const char *key, char *out, size_t out_bytes)
{
	size_t length = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) != 0 || line[length] != ' ')
			continue;
		snprintf(out, out_bytes, "%.*s", (int)strcspn(line + length + 1, "\n"),
			 line + length + 1);
		return true;
	}
	return false;
}

static int parse_job(const char *text, const char *path, struct lake_job *out,
		     struct kymo_error *err)
{
	char epoch[32] = "";
	char *end = NULL;

	if (strncmp(text, LAKE_MAGIC, sizeof(LAKE_MAGIC) - 1) != 0)
		return error_set(
			err, EPROTO,
			"%s is of another version of kymo (%.20s); this one reads version 1", path,
			text + sizeof(LAKE_MAGIC_ANY) - 1);
	job_value(text, "program", out->program, sizeof(out->program));
	if (job_value(text, "epoch_unix_ns", epoch, sizeof(epoch)))
		out->epoch_unix_ns = strtoull(epoch, &end, 10);
	if (!end || *end || end == epoch || out->epoch_unix_ns > INT64_MAX)
		return error_set(err, EINVAL, "%s is damaged: it has no epoch", path);
	return 0;
}

int lake_job_read(const char *path, struct lake_job *out, struct kymo_error *err)
{
	char text[JOB_FILE_BYTES], whole[PATH_MAX];
	const char *slash;

	memset(out, 0, sizeof(*out));
	if (!realpath(path, whole))
		return error_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	slash = strrchr(whole, '/');
	if (strlen(whole) >= sizeof(out->lake) || strlen(slash + 1) >= sizeof(out->run))
		return error_set(err, ENAMETOOLONG, "the path %.60s… is too long", path);
	snprintf(out->lake, sizeof(out->lake), "%.*s", (int)(slash - whole), whole);
	snprintf(out->run, sizeof(out->run), "%s", slash + 1);
	if (!lake_is_plain(out->run) || read_job_file(AT_FDCWD, whole, text, sizeof(text)) < 0 ||
	    !lake_is_job(text, strlen(text)))
		return error_set(err, EINVAL, "%s is not a job of a lake", path);
	if (check_path(out->lake, err))
		return -EINVAL;
	return parse_job(text, path, out, err);
}

/* Whole at once, by a link: of two writers the second reads the file of the first. */
static int put_job_file(int directory, const char *run, const char *text)
{
	char part[LAKE_RUN_BYTES + 32];
	int fd, rc = 0;
	ssize_t length = (ssize_t)strlen(text);

	snprintf(part, sizeof(part), ".%s.%ld.part", run, (long)getpid());
	unlinkat(directory, part, 0);
	fd = openat(directory, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)length) != length || fsync(fd))
		rc = errno ? -errno : -ENOSPC;
	close(fd);
	if (!rc && linkat(directory, part, directory, run, 0) && errno != EEXIST)
		/* A file system without links. */
		rc = faccessat(directory, run, F_OK, 0) && renameat(directory, part, directory, run)
			     ? -errno
			     : 0;
	unlinkat(directory, part, 0);
	return rc;
}

int lake_job_make(const char *lake, const char *run, const char *program, uint64_t epoch_unix_ns,
		  struct lake_job *out, struct kymo_error *err)
{
	char text[JOB_FILE_BYTES], word[64];
	char path[KYMO_PATH_BYTES + LAKE_RUN_BYTES];
	struct safe_dir dir = SAFE_DIR_NONE;
	struct stat status;
	int rc = safe_dir_open(&dir, lake, SAFE_DIR_MAKE, err);

	if (rc)
		return rc;
	if (check_path(dir.path, err)) {
		safe_dir_close(&dir);
		return -EINVAL;
	}
	lake_word(program, word, sizeof(word));
	snprintf(text, sizeof(text), LAKE_MAGIC "run %s\nprogram %s\nepoch_unix_ns %" PRIu64 "\n",
		 run, word, epoch_unix_ns);
	if (!fstatat(dir.fd, run, &status, AT_SYMLINK_NOFOLLOW) && !S_ISREG(status.st_mode))
		rc = error_set(err, EEXIST, "the lake %s has a directory %s, which cannot be a job",
			       lake, run);
	else if ((rc = put_job_file(dir.fd, run, text)))
		rc = error_set(err, -rc, "cannot write to the lake %s: %s", lake, strerror(-rc));
	snprintf(path, sizeof(path), "%s/%s", dir.path, run);
	safe_dir_close(&dir);
	return rc ? rc : lake_job_read(path, out, err);
}

static int compare_runs(const void *left, const void *right)
{
	return strcmp(left, right);
}

int lake_jobs(const char *lake, char (**out)[LAKE_RUN_BYTES], size_t *out_count,
	      struct kymo_error *err)
{
	DIR *dir = opendir(lake);
	char text[64];
	size_t room = 0;
	struct dirent *entry;

	*out = NULL;
	*out_count = 0;
	if (!dir)
		return error_set(err, errno, "cannot open %s: %s", lake, strerror(errno));
	while ((entry = readdir(dir)) && *out_count < JOBS_MAX) {
		if (!lake_is_plain(entry->d_name) || strlen(entry->d_name) >= LAKE_RUN_BYTES ||
		    (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN) ||
		    read_job_file(dirfd(dir), entry->d_name, text, sizeof(text)) < 0 ||
		    !lake_is_job(text, strlen(text)))
			continue;
		if (!grow((void **)out, &room, *out_count, sizeof(**out)))
			break;
		snprintf((*out)[(*out_count)++], sizeof(**out), "%s", entry->d_name);
	}
	closedir(dir);
	if (*out_count)
		qsort(*out, *out_count, sizeof(**out), compare_runs);
	return 0;
}

bool lake_is_lake(const char *path, char *out_only, size_t out_bytes, size_t *out_jobs)
{
	char(*jobs)[LAKE_RUN_BYTES] = NULL;
	size_t count = 0;

	*out_only = '\0';
	lake_jobs(path, &jobs, &count, NULL);
	if (count == 1)
		snprintf(out_only, out_bytes, "%s", jobs[0]);
	*out_jobs = count;
	free(jobs);
	return count > 0;
}
