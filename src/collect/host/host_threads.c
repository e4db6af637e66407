#include "collect/host/host_threads.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/schema.h"
#include "collect/host/proc.h"
#include "record/record.h"

#define TASKS_MOST 1024 /* threads of a process that are looked at */
#define SHORTEST_NS 1000000u /* a share of less than a millisecond says nothing */

bool host_threads_parse_schedstat(const char *text, uint64_t *out_run_ns, uint64_t *out_slices)
{
	char *at = (char *)text;
	uint64_t number[3];

	for (int i = 0; i < 3; i++) {
		const char *from = at;

		number[i] = strtoull(from, &at, 10);
		if (at == from)
			return false;
	}
	*out_run_ns = number[0];
	*out_slices = number[2];
	return true;
}

const char *host_threads_state_word(char state)
{
	static const struct {
		char letter;
		const char *word;
	} words[] = { { 'R', "running" }, { 'S', "sleeping" }, { 'D', "blocked" },
		      { 'T', "stopped" }, { 't', "traced" },   { 'Z', "zombie" },
		      { 'X', "dead" },	  { 'I', "idle" } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].letter == state)
			return words[i].word;
	return "?";
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Where it is, or has to be. */
static size_t host_threads_place_of(const struct host_threads *tasks, pid_t tid)
{
	size_t low = 0, high = tasks->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (tasks->all[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct host_threads_one *host_threads_take(struct host_threads *tasks, pid_t tid,
						  bool *out_new)
{
	size_t place = host_threads_place_of(tasks, tid);

	*out_new = place == tasks->count || tasks->all[place].tid != tid;
	if (!*out_new)
		return &tasks->all[place];
	if (tasks->count >= TASKS_MOST)
		return NULL;
	if (tasks->count == tasks->room) {
		size_t room = tasks->room ? 2 * tasks->room : 16;
		struct host_threads_one *larger = realloc(tasks->all, room * sizeof(*larger));

		if (!larger)
			return NULL;
		tasks->all = larger;
		tasks->room = room;
	}
	memmove(&tasks->all[place + 1], &tasks->all[place],
		(tasks->count - place) * sizeof(*tasks->all));
	tasks->count++;
	memset(&tasks->all[place], 0, sizeof(tasks->all[place]));
	tasks->all[place].tid = tid;
	return &tasks->all[place];
}

/* The kernel forgets the switches of threads that ended. */
static void host_threads_let_go(struct host_threads *tasks, const struct host_threads_one *one)
{
	tasks->ended_voluntary += one->voluntary;
	tasks->ended_involuntary += one->involuntary;
}

static void drop_gone(struct host_threads *tasks)
{
	size_t kept = 0;

	for (size_t i = 0; i < tasks->count; i++) {
		if (tasks->all[i].seen == tasks->looks)
			tasks->all[kept++] = tasks->all[i];
		else
			host_threads_let_go(tasks, &tasks->all[i]);
	}
	tasks->count = kept;
}

/* ---- one thread ------------------------------------------------------------------------------ */

static ssize_t host_threads_read_of(pid_t pid, pid_t tid, const char *file, char *out,
				    size_t out_bytes)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	return proc_read(path, out, out_bytes);
}

/* Where the kernel keeps no schedstat, by its ticks. */
static bool run_time(pid_t pid, pid_t tid, uint64_t *out_ns, uint64_t *out_slices)
{
	struct proc_stat stat;
	char text[1024];

	if (host_threads_read_of(pid, tid, "schedstat", text, sizeof(text)) > 0)
		return host_threads_parse_schedstat(text, out_ns, out_slices);
	if (host_threads_read_of(pid, tid, "stat", text, sizeof(text)) <= 0 ||
	    proc_parse_stat(text, &stat))
		return false;
	*out_ns = (stat.user_ticks + stat.system_ticks) *
		  (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	*out_slices = 0; /* not known: so it is always looked at */
	return true;
}

static void host_threads_describe(struct host_threads_one *one, pid_t pid)
{
	struct proc_stat stat;
	char text[4096];

	if (host_threads_read_of(pid, one->tid, "stat", text, sizeof(text)) > 0 &&
	    !proc_parse_stat(text, &stat)) {
		one->state = stat.state;
		memcpy(one->name, stat.name, sizeof(one->name) - 1);
	}
	if (host_threads_read_of(pid, one->tid, "status", text, sizeof(text)) > 0) {
		one->voluntary = proc_field(text, "voluntary_ctxt_switches:", one->voluntary);
		one->involuntary = proc_field(text,
					      "nonvoluntary_ctxt_switches:", one->involuntary);
	}
}

static void host_threads_append(const struct host_threads_one *one, pid_t pid, double cpu_pct)
{
	struct schema_host_threads_row row;

	memset(&row, 0, sizeof(row));
	row.ts_ticks = kymo_ticks();
	row.cpu_pct = cpu_pct;
	row.cpu_ns = one->run_ns;
	row.voluntary_switches = one->voluntary;
	row.involuntary_switches = one->involuntary;
	row.pid = pid;
	row.tid = one->tid;
	memcpy(row.name, one->name, sizeof(one->name));
	snprintf(row.state, sizeof(row.state), "%s", host_threads_state_word(one->state));
	kymo__append(SCHEMA_HOST_THREADS, &row);
}

static void host_threads_look_at(struct host_threads *tasks, pid_t pid, pid_t tid, uint64_t past_ns)
{
	uint64_t run_ns, slices, ran_ns;
	struct host_threads_one *one;
	bool is_new, ran;

	if (!run_time(pid, tid, &run_ns, &slices))
		return; /* it has ended */
	one = host_threads_take(tasks, tid, &is_new);
	if (!one)
		return;
	if (run_ns < one->run_ns) { /* another thread that got the number */
		host_threads_let_go(tasks, one);
		*one = (struct host_threads_one){ .tid = tid };
	}
	one->seen = tasks->looks;
	ran_ns = run_ns - one->run_ns;
	ran = is_new || ran_ns || slices != one->slices || !slices;
	one->run_ns = run_ns;
	one->slices = slices;
	if (ran)
		host_threads_describe(one, pid);
	if (!ran && !one->was_busy)
		return;
	/* Of one that is new it is not known in which time it ran that long. */
	host_threads_append(
		one, pid,
		is_new || past_ns < SHORTEST_NS ? 0 : 100.0 * (double)ran_ns / (double)past_ns);
	one->was_busy = ran;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void host_threads_look(struct host_threads *tasks, pid_t pid, uint64_t now_ns)
{
	uint64_t past_ns = tasks->looked_ns ? now_ns - tasks->looked_ns : 0;
	struct dirent *entry;
	char path[48];
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	if (!directory)
		return;
	tasks->looks++;
	while ((entry = readdir(directory)))
		if (isdigit((unsigned char)entry->d_name[0]))
			host_threads_look_at(tasks, pid, (pid_t)strtol(entry->d_name, NULL, 10),
					     past_ns);
	closedir(directory);
	drop_gone(tasks);
	tasks->looked_ns = now_ns;
}

void host_threads_switches(const struct host_threads *tasks, uint64_t *out_voluntary,
			   uint64_t *out_involuntary)
{
	*out_voluntary = tasks->ended_voluntary;
	*out_involuntary = tasks->ended_involuntary;
	for (size_t i = 0; i < tasks->count; i++) {
		*out_voluntary += tasks->all[i].voluntary;
		*out_involuntary += tasks->all[i].involuntary;
	}
}

void host_threads_fini(struct host_threads *tasks)
{
	free(tasks->all);
	memset(tasks, 0, sizeof(*tasks));
}
