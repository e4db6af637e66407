#include "cmds/run/run_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/safe_path.h"
#include "record/record.h"
#include "store/job.h"

/* The first that is set names the job; the second, if any, is a step of it. */
static const struct {
	const char *name, *step;
} job_variables[] = {
	{ "KYMO_JOB", NULL },
	{ "TORCHELASTIC_RUN_ID", NULL },
	{ "SLURM_JOB_ID", "SLURM_STEP_ID" },
	{ "PMIX_NAMESPACE", NULL },
	{ "OMPI_MCA_ess_base_jobid", NULL },
	{ "PMI_JOBID", NULL },
	{ "RAY_JOB_ID", NULL },
};

/* As a part of a file's name: other characters than these become _. */
static void add_word(char *out, size_t out_bytes, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_.+=@";
	size_t used = strlen(out);

	for (; *word && used + 1 < out_bytes; word++, used++)
		out[used] = strchr(plain, *word) && (*word != '.' || used) ? *word : '_';
	out[used] = '\0';
}

/* torchrun without a rendezvous calls every job "none". */
static bool is_id(const char *value)
{
	return value && *value && strcmp(value, "none") != 0;
}

static void find_id(struct run_job *job)
{
	for (size_t i = 0; i < sizeof(job_variables) / sizeof(job_variables[0]); i++) {
		const char *value = getenv(job_variables[i].name);
		const char *step = job_variables[i].step ? getenv(job_variables[i].step) : NULL;

		if (!is_id(value))
			continue;
		add_word(job->id, sizeof(job->id) - 16, value);
		if (step && *step) {
			add_word(job->id, sizeof(job->id), ".");
			add_word(job->id, sizeof(job->id), step);
		}
		return;
	}
}

static bool is_job_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is = fd >= 0 && job_is(fd);

	if (fd >= 0)
		close(fd);
	return is;
}

static bool run_job_make_folder(const char *path)
{
	struct safe_dir parent;
	bool made = !safe_dir_parent(&parent, path, 0, NULL) &&
		    (!mkdirat(parent.fd, parent.name, 0700) || errno == EEXIST);

	safe_dir_close(&parent);
	return made;
}

/* Written aside and renamed: ranks that start together never see a part of it, and all of them
   would write the same. The time tells hosts apart whose pids are equal. */
static bool put_mark(int dir, const char *id)
{
	char aside[64];
	struct timespec now = { 0 };
	bool written;
	int fd;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(aside, sizeof(aside), ".job-%d-%ld", (int)getpid(), now.tv_nsec);
	fd = openat(dir, aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	/* not foreign: a file, and plain by add_word() */
	written = dprintf(fd, "%s%s\n", JOB_MAGIC, id) > 0;
	written = !close(fd) && written && !renameat(dir, aside, dir, JOB_MARK);
	if (!written)
		unlinkat(dir, aside, 0);
	return written;
}

static bool mark_job(const char *path, const char *id)
{
	struct safe_dir dir;
	bool marked = !safe_dir_open(&dir, path, 0, NULL) &&
		      (job_is(dir.fd) || put_mark(dir.fd, id));

	safe_dir_close(&dir);
	return marked;
}

/* Without the slashes at its end. */
static bool copy_folder(char *out, size_t out_bytes, const char *wanted)
{
	size_t bytes = strlen(wanted);

	while (bytes > 1 && wanted[bytes - 1] == '/')
		bytes--;
	if (bytes >= out_bytes)
		return false;
	memcpy(out, wanted, bytes);
	out[bytes] = '\0';
	return true;
}

static bool make_job_directory(struct run_job *job, const char *wanted)
{
	char folder[KYMO_PATH_BYTES - 128];
	bool is_job = is_job_directory(wanted);

	if (!copy_folder(folder, sizeof(folder), wanted) || !run_job_make_folder(folder))
		return false;
	if (is_job || !job->id[0])
		snprintf(job->directory, sizeof(job->directory), "%s", folder);
	else
		snprintf(job->directory, sizeof(job->directory), "%s/%s", folder, job->id);
	return run_job_make_folder(job->directory) && mark_job(job->directory, job->id);
}

static void name_in_job(struct run_job *job, int rank)
{
	char host[64] = "", name[128] = "", number[32];

	gethostname(host, sizeof(host) - 1);
	add_word(name, sizeof(name), host[0] ? host : "host");
	if (rank >= 0) {
		snprintf(number, sizeof(number), "-rank%d", rank);
		add_word(name, sizeof(name), number);
	}
	snprintf(number, sizeof(number), "-%d", (int)getpid());
	add_word(name, sizeof(name), number);
	snprintf(job->recording, sizeof(job->recording), "%.*s/%s",
		 (int)(sizeof(job->recording) - sizeof(name) - 2), job->directory, name);
}

void run_job_prepare(struct run_job *job, struct collect_options *options)
{
	const char *wanted = options->directory;
	struct kymo_control *here = calloc(1, sizeof(*here));

	memset(job, 0, sizeof(*job));
	find_id(job);
	options->job = job->id[0] ? job->id : NULL;
	options->rank = -1;
	if (here) {
		kymo__process_take_rank(here);
		options->rank = here->rank;
	}
	free(here);
	if (!wanted || !*wanted || (wanted[strlen(wanted) - 1] != '/' && !is_job_directory(wanted)))
		return;
	if (!make_job_directory(job, wanted)) {
		job->directory[0] = '\0';
		return;
	}
	name_in_job(job, options->rank);
	options->directory = job->recording;
}
