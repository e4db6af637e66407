#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "vaccel_log.h"

#define PREFIX_BYTES 64
#define LINE_BYTES 1024 /* on the stack; longer lines, by long names, from the heap */

void log_complain(const char *what, const char *about)
{
	char line[512];
	int bytes = snprintf(line, sizeof(line), "kymo: %s%.200s\n", what, about);

	if (bytes > 0 && write(STDERR_FILENO, line, (size_t)bytes) < 0)
		return; /* stderr is gone */
}

/* ---- on or off ----------------------------------------------------------------------------- */

struct word {
	const char *text;
	bool on;
};

static const struct word words[] = {
	{ "enabled", true }, { "1", true },	    { "true", true }, { "yes", true },
	{ "on", true },	     { "disabled", false }, { "0", false },   { "false", false },
	{ "no", false },     { "off", false },	    { "", false },
};

static bool vaccel_log_word_of(const char *variable)
{
	const char *text = secure_getenv(variable);
	char what[128];

	for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(text, words[i].text))
			return words[i].on;
	if (text) {
		snprintf(what, sizeof(what),
			 "%s is neither enabled nor disabled, profiling by it stays off: ",
			 variable);
		log_complain(what, text);
	}
	return false;
}

bool log_is_wanted(void)
{
	bool old_word = vaccel_log_word_of("VACCEL_PROF_ENABLED"),
	     word = vaccel_log_word_of("VACCEL_PROFILING_ENABLED");

	return old_word || word;
}

/* ---- lines --------------------------------------------------------------------------------- */

int log_format(char *out, size_t bytes, const char *name, uint64_t total_ns, uint64_t count)
{
	return snprintf(out, bytes, "[prof] %s: total_time: %llu nsec nr_entries: %llu",
			name ? name : "", (unsigned long long)total_ns, (unsigned long long)count);
}

static int format_prefix(char out[PREFIX_BYTES])
{
	struct timespec now;
	struct tm local;
	char seconds[40];

	clock_gettime(CLOCK_REALTIME, &now);
	if (!localtime_r(&now.tv_sec, &local) ||
	    !strftime(seconds, sizeof(seconds), "%Y.%m.%d-%H:%M:%S", &local))
		seconds[0] = '\0';
	return snprintf(out, PREFIX_BYTES, "%s.%02ld - <info> ", seconds, now.tv_nsec / 10000000);
}

/* The file that VACCEL_LOG_FILE names, opened once; -1: stdout. */
static int log_file(void)
{
	static int file = -2;
	int fd = kymo__load_acquire(&file), none = -2;
	const char *path;

	if (fd != -2)
		return fd;
	path = secure_getenv("VACCEL_LOG_FILE");
	fd = path && *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
	if (fd < 0 && path && *path)
		log_complain("lines go to stdout: cannot write VACCEL_LOG_FILE ", path);
	if (kymo__cas_acq_rel_acquire(&file, &none, fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return none;
}

static void write_line(const char *line, size_t bytes)
{
	int kept_errno = errno, fd = log_file();

	/* After what the program has printed so far, which may still be in its buffer. */
	if (fd < 0)
		fflush(stdout);
	while (write(fd < 0 ? STDOUT_FILENO : fd, line, bytes) < 0 && errno == EINTR)
		;
	errno = kept_errno;
}

void log_entry(const char *name, uint64_t total_ns, uint64_t count)
{
	char stack[LINE_BYTES], *line = stack;
	size_t room = sizeof(stack) - 1;
	int prefix = format_prefix(stack);
	int bytes = log_format(line + prefix, room - (size_t)prefix, name, total_ns, count);

	if (bytes < 0)
		return;
	if ((size_t)(prefix + bytes) >= room) {
		room = (size_t)(prefix + bytes) + 1;
		line = malloc(room + 1);
		if (!line)
			return;
		memcpy(line, stack, (size_t)prefix);
		log_format(line + prefix, room - (size_t)prefix, name, total_ns, count);
	}
	line[prefix + bytes] = '\n';
	write_line(line, (size_t)(prefix + bytes) + 1);
	if (line != stack)
		free(line);
}
