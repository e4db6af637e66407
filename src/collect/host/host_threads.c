#include "collect/host/host_threads.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/schema.h"
#include "collect/host/proc.h"
#include "record/record.h"

#define TASKS_MOST 1024 /* sampled threads of a process */
#define SHORTEST_NS 1000000u /* a share of a shorter interval is meaningless */

bool host_threads_parse_schedstat(const char *text, struct host_threads_schedule *out)
{
	char *at = (char *)text;
	uint64_t number[3];

	for (int i = 0; i < 3; i++) {
		const char *from = at;

		number[i] = strtoull(from, &at, 10);
		if (at == from)
			return false;
	}
	*out = (struct host_threads_schedule){ .run_ns = number[0],
					       .delay_ns = number[1],
					       .slices = number[2] };
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

/* The index of the thread, or where to insert it. */
static size_t host_threads_place_of(const struct host_threads *threads, pid_t tid)
{
	size_t low = 0, high = threads->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (threads->all[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct host_threads_one *host_threads_take(struct host_threads *threads, pid_t tid,
						  bool *out_new)
{
	size_t place = host_threads_place_of(threads, tid);

	*out_new = place == threads->count || threads->all[place].tid != tid;
	if (!*out_new)
		return &threads->all[place];
	if (threads->count >= TASKS_MOST)
		return NULL;
	if (!grow((void **)&threads->all, &threads->room, threads->count, sizeof(*threads->all)))
		return NULL;
	memmove(&threads->all[place + 1], &threads->all[place],
		(threads->count - place) * sizeof(*threads->all));
	threads->count++;
	memset(&threads->all[place], 0, sizeof(threads->all[place]));
	threads->all[place].tid = tid;
	return &threads->all[place];
}

/* The kernel drops the switches of ended threads, so they are added up here. */
static void host_threads_add_ended(struct host_threads *threads, const struct host_threads_one *one)
{
	threads->ended_voluntary += one->voluntary;
	threads->ended_involuntary += one->involuntary;
	threads->ended_delay_ns += one->delay_ns;
}

static void drop_gone(struct host_threads *threads)
{
	size_t kept = 0;

	for (size_t i = 0; i < threads->count; i++) {
		if (threads->all[i].seen == threads->looks)
			threads->all[kept++] = threads->all[i];
		else
			host_threads_add_ended(threads, &threads->all[i]);
	}
	threads->count = kept;
}

/* ---- one thread ------------------------------------------------------------------------------ */

static ssize_t host_threads_read_of(pid_t pid, pid_t tid, const char *file, char *out,
				    size_t out_bytes)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	return proc_read(path, out, out_bytes);
}

/* Without schedstat the run time is computed from ticks. */
static bool run_time(pid_t pid, pid_t tid, struct host_threads_schedule *out)
{
	struct proc_stat stat;
	char text[1024];

	if (host_threads_read_of(pid, tid, "schedstat", text, sizeof(text)) > 0)
		return host_threads_parse_schedstat(text, out);
	if (host_threads_read_of(pid, tid, "stat", text, sizeof(text)) <= 0 ||
	    proc_parse_stat(text, &stat))
		return false;
	/* Slices are unknown: the thread is always sampled. */
	*out = (struct host_threads_schedule){ .run_ns = proc_ticks_ns(stat.user_ticks +
								       stat.system_ticks) };
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

static void (*host_threads_wait)(pid_t, pid_t, char, struct host_threads_wait *);

void host_threads_set_wait(void (*wait)(pid_t pid, pid_t tid, char state,
					struct host_threads_wait *out))
{
	host_threads_wait = wait;
}

static uint32_t host_threads_intern(const char *text)
{
	return text[0] ? kymo__intern(text, strlen(text), "", 0, 0, KYMO_SOURCE_C, 0) : 0;
}

static void add_activity(struct schema_host_threads_row *row, char state)
{
	struct host_threads_wait wait = { "", "" };

	if (!host_threads_wait)
		return;
	host_threads_wait(row->pid, row->tid, state, &wait);
	row->activity = host_threads_intern(wait.activity);
	row->waits_for = host_threads_intern(wait.target);
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
	row.run_delay_ns = one->delay_ns;
	row.pid = pid;
	row.tid = one->tid;
	memcpy(row.name, one->name, sizeof(one->name));
	snprintf(row.state, sizeof(row.state), "%s", host_threads_state_word(one->state));
	add_activity(&row, one->state);
	kymo__append(SCHEMA_HOST_THREADS, &row);
}

static void host_threads_look_at(struct host_threads *threads, pid_t pid, pid_t tid,
				 uint64_t past_ns)
{
	struct host_threads_schedule now;
	struct host_threads_one *one;
	bool is_new, ran;
	uint64_t ran_ns;

	if (!run_time(pid, tid, &now))
		return; /* the thread has ended */
	one = host_threads_take(threads, tid, &is_new);
	if (!one)
		return;
	if (now.run_ns < one->run_ns) { /* another thread has reused the tid */
		host_threads_add_ended(threads, one);
		*one = (struct host_threads_one){ .tid = tid };
	}
	one->seen = threads->looks;
	ran_ns = now.run_ns - one->run_ns;
	ran = is_new || ran_ns || now.slices != one->slices || !now.slices;
	one->run_ns = now.run_ns;
	one->delay_ns = now.delay_ns;
	one->slices = now.slices;
	if (ran)
		host_threads_describe(one, pid);
	if (!ran && !one->was_busy)
		return;
	/* For a new thread the interval of its run time is unknown. */
	host_threads_append(
		one, pid,
		is_new || past_ns < SHORTEST_NS ? 0 : 100.0 * (double)ran_ns / (double)past_ns);
	one->was_busy = ran;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void host_threads_look(struct host_threads *threads, pid_t pid, uint64_t now_ns)
{
	uint64_t past_ns = threads->looked_ns ? now_ns - threads->looked_ns : 0;
	struct dirent *entry;
	char path[48];
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	if (!directory)
		return;
	threads->looks++;
	while ((entry = readdir(directory)))
		if (isdigit((unsigned char)entry->d_name[0]))
			host_threads_look_at(threads, pid, (pid_t)strtol(entry->d_name, NULL, 10),
					     past_ns);
	closedir(directory);
	drop_gone(threads);
	threads->looked_ns = now_ns;
}

void host_threads_switches(const struct host_threads *threads, uint64_t *out_voluntary,
			   uint64_t *out_involuntary)
{
	*out_voluntary = threads->ended_voluntary;
	*out_involuntary = threads->ended_involuntary;
	for (size_t i = 0; i < threads->count; i++) {
		*out_voluntary += threads->all[i].voluntary;
		*out_involuntary += threads->all[i].involuntary;
	}
}

uint64_t host_threads_delay_ns(const struct host_threads *threads)
{
	uint64_t delay_ns = threads->ended_delay_ns;

	for (size_t i = 0; i < threads->count; i++)
		delay_ns += threads->all[i].delay_ns;
	return delay_ns;
}

void host_threads_fini(struct host_threads *threads)
{
	free(threads->all);
	memset(threads, 0, sizeof(*threads));
}
