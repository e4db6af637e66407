#include "cmds/prompt/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"

#define PROMPT_LINES 2 /* what the shell and the cursor need of a screen */
#define ROWS_USUAL 24
#define COLUMNS_USUAL 80
#define BYTES_MOST (256u << 10) /* that are kept before a pager starts */

static pid_t keeper; /* 0: none */
static int terminal = -1; /* standard output, meanwhile */

/* ---- the choice ---------------------------------------------------------------------------- */

static bool is_in_path(const char *program)
{
	const char *at = getenv("PATH"), *end;
	char path[4096];

	for (; at && *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, ':');
		snprintf(path, sizeof(path), "%.*s/%s", (int)(end - at), at, program);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

/* NULL: none. */
static const char *pager_command(void)
{
	const char *chosen = getenv("PAGER"), *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb"))
		return NULL;
	if (chosen)
		return *chosen && strcmp(chosen, "cat") != 0 ? chosen : NULL;
	return is_in_path("less") ? "less" : NULL;
}

/* ---- the process between -------------------------------------------------------------------- */

static bool pager_write(int fd, const char *bytes, size_t count)
{
	while (count) {
		ssize_t wrote = write(fd, bytes, count);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return false;
		bytes += wrote;
		count -= (size_t)wrote;
	}
	return true;
}

/* Whether the text may need more lines than there are. A byte counts as a column, which is too many
   for colours and letters: less ends by itself if it all fits. */
static bool is_long(const struct buf *text, const struct winsize *size)
{
	size_t rows = size->ws_row > PROMPT_LINES ? size->ws_row - PROMPT_LINES : 1;
	size_t columns = size->ws_col ? size->ws_col : COLUMNS_USUAL, lines = 0;
	const char *at = buf_get(text), *end = at + text->used;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t bytes = (size_t)((stop ? stop : end) - at);

		lines += 1 + (bytes ? bytes - 1 : 0) / columns;
		at = stop ? stop + 1 : end;
	}
	return lines > rows || text->used > BYTES_MOST;
}

/* The pager's end of a pipe, or the terminal itself if it cannot be started. */
static int start_pager(const char *command, pid_t *out)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC))
		return STDOUT_FILENO;
	*out = fork();
	if (!*out) {
		signal(SIGINT, SIG_DFL);
		signal(SIGPIPE, SIG_DFL);
		setenv("LESS", "FRX", 0);
		dup2(pipes[0], STDIN_FILENO);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(pipes[0]);
	if (*out > 0)
		return pipes[1];
	close(pipes[1]);
	return STDOUT_FILENO;
}

/* Reads until the end; from the moment at which it is long, on into the pager. */
static void keep(int in, const char *command, const struct winsize *size)
{
	struct buf text = { 0 };
	int to = -1, wstatus;
	char block[16384];
	pid_t pager = -1;
	ssize_t count;

	while ((count = read(in, block, sizeof(block))) > 0 || (count < 0 && errno == EINTR)) {
		if (count < 0)
			continue;
		if (to >= 0) {
			if (!pager_write(to, block, (size_t)count))
				break; /* the reader has seen enough */
			continue;
		}
		buf_add(&text, block, (size_t)count);
		if (!is_long(&text, size))
			continue;
		to = start_pager(command, &pager);
		if (!pager_write(to, buf_get(&text), text.used))
			break;
	}
	close(in); /* the command's next write fails, if the pager has ended before */
	if (to < 0)
		pager_write(STDOUT_FILENO, buf_get(&text), text.used);
	else if (to != STDOUT_FILENO)
		close(to);
	while (pager > 0 && waitpid(pager, &wstatus, 0) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* ---- the command ---------------------------------------------------------------------------- */

bool pager_begin(void)
{
	struct winsize size = { .ws_row = ROWS_USUAL, .ws_col = COLUMNS_USUAL };
	const char *command = pager_command();
	int pipes[2];

	if (!command || pipe2(pipes, O_CLOEXEC))
		return false;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	fflush(stdout);
	keeper = fork();
	if (!keeper) {
		signal(SIGINT, SIG_IGN); /* it ends the query; the pager goes on */
		signal(SIGQUIT, SIG_IGN);
		signal(SIGPIPE, SIG_IGN);
		close(pipes[1]);
		keep(pipes[0], command, &size);
	}
	close(pipes[0]);
	terminal = keeper > 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
	if (terminal >= 0)
		dup2(pipes[1], STDOUT_FILENO);
	close(pipes[1]);
	return terminal >= 0;
}

void pager_end(void)
{
	int wstatus;

	if (terminal < 0)
		return;
	fflush(stdout);
	dup2(terminal, STDOUT_FILENO);
	close(terminal);
	terminal = -1;
	while (waitpid(keeper, &wstatus, 0) < 0 && errno == EINTR)
		;
	keeper = 0;
}
