/* Runs a function as a recorded program in a child process, and opens what it left. */
#ifndef KYMO_TESTS_RECORDED_H
#define KYMO_TESTS_RECORDED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/record.h"
#include "store/store.h"

static char recorded_root[64];
static char recorded_run[KYMO_PATH_BYTES];
static uint64_t *recorded_counts;

/* Eight words that the recorded child and the test share: what the program itself counted. */
static inline uint64_t *shared_counts(void)
{
	return recorded_counts;
}

static inline int recorded_setup(void **state)
{
	(void)state;
	strcpy(recorded_root, "/dev/shm/kymo-test-XXXXXX");
	recorded_counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			       0);
	return mkdtemp(recorded_root) && !setenv("KYMO_DIR", recorded_root, 1) ? 0 : -1;
}

static inline int recorded_teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", recorded_root);
	return system(command);
}

/* "KYMO_KEEP=all KYMO_BUDGET=16M" into the environment. */
static inline void set_words(const char *environment)
{
	char words[256], *save = NULL;

	snprintf(words, sizeof(words), "%s", environment ? environment : "");
	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *equals = strchr(word, '=');

		*equals = '\0';
		setenv(word, equals + 1, 1);
	}
}

/* Starts the program; it has begun to record when this returns. recorded_run is then its run. */
static inline pid_t recorded_start(void (*program)(void), const char *environment)
{
	int ready[2];
	pid_t pid;
	ssize_t got;

	assert_int_equal(pipe(ready), 0);
	memset(recorded_counts, 0, 64);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* no program outlives its test */
		set_words(environment);
		if (kymo_enable(NULL) ||
		    write(ready[1], kymo__process.run_dir, sizeof(kymo__process.run_dir)) < 0)
			_exit(99);
		program();
		_exit(0);
	}
	close(ready[1]);
	got = read(ready[0], recorded_run, sizeof(recorded_run));
	close(ready[0]);
	assert_int_equal(got, sizeof(recorded_run));
	return pid;
}

static inline struct recording *recorded_open(void)
{
	struct recording *recording = NULL;
	struct kymo_error err = { 0 };

	if (store_open(recorded_run, &recording, &err))
		fail_msg("%s", err.text);
	return recording;
}

static inline void recorded_remove(void)
{
	char command[KYMO_PATH_BYTES + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", recorded_run);
	assert_int_equal(system(command), 0);
}

static inline struct recording *recorded(void (*program)(void), const char *environment)
{
	int status = 0;
	pid_t pid = recorded_start(program, environment);

	waitpid(pid, &status, 0);
	assert_false(WIFSIGNALED(status));
	assert_int_not_equal(WEXITSTATUS(status), 99);
	return recorded_open();
}

static inline void recorded_close(struct recording *recording)
{
	store_close(recording);
	recorded_remove();
}

static inline const struct store_stream *stream_of(const struct recording *recording,
						   const char *table)
{
	for (size_t i = 0; i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, table) &&
		    !recording->streams[i].without_file)
			return &recording->streams[i];
	fail_msg("no stream of %s", table);
	return NULL;
}

/* The first `most` kept rows of a stream of zones. */
static inline uint64_t read_zones(const struct store_stream *stream, struct kymo_zone_row *out,
				  uint64_t most)
{
	uint64_t done = 0;

	for (size_t i = 0; i < stream->chunk_count && done < most; i++) {
		uint64_t want = stream->chunks[i].rows < most - done ? stream->chunks[i].rows
								     : most - done;

		done += store_read_rows(stream, &stream->chunks[i], 0, want, out + done);
	}
	return done;
}

static inline const char *name_of(const struct recording *recording,
				  const struct store_stream *stream, uint32_t local)
{
	const struct store_process *process = &recording->processes[stream->process];

	return local < process->name_count ? recording->names[process->name_of[local]].text : "?";
}

static inline const struct store_total *total_of(const struct recording *recording,
						 const struct store_stream *stream,
						 const char *name)
{
	for (size_t i = 0; i < stream->total_count; i++)
		if (!strcmp(recording->names[stream->totals[i].name].text, name))
			return &stream->totals[i];
	return NULL;
}

#endif
