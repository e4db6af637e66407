/* What the files of the sampler share. All but the first fields of sampler_inside belongs to its
   thread. */
#ifndef KYMO_COLLECT_SAMPLE_SAMPLER_INSIDE_H
#define KYMO_COLLECT_SAMPLE_SAMPLER_INSIDE_H

#include <pthread.h>

#include "base/files/paths.h"
#include "collect/host/host_memory.h"
#include "collect/python/pystack.h"
#include "collect/sample/sampler.h"
#include "collect/sample/slow_zones.h"
#include "collect/sample/stacktrie.h"
#include "collect/wait/wait_sample.h"

/* Between two searches for children and changed settings. */
#define SAMPLER_LOOK_NS 100000000ull

/* A thread as of the last sample. */
struct seen_thread {
	pid_t tid;
	uint32_t node;
	uint32_t name; /* as a number of this process's names */
	uint16_t gil;
	char state;
	int state_fd; /* /proc/PID/task/TID/stat; -1: not open */
	int children_fd; /* /proc/PID/task/TID/children; -1: not open */
	uint64_t state_ns; /* when it was read */
	struct stacktrie_path path; /* its last stack, as nodes */
	char called[PYSTACK_NAME_BYTES]; /* the text of name */
	struct wait_sample wait;
	uint32_t activity, waits_for; /* names of wait.answer */
	struct wait_answer named; /* the answer that they name */
};

struct watched {
	pid_t pid;
	uint64_t starttime;
	struct pystack stack;
	bool open; /* stack is open */
	bool gone;
	uint64_t try_ns,
		pause_ns; /* time of the next attempt to find Python, and the pause after it */
	uint64_t found_ns; /* when it was added here */
	bool is_child; /* found below another one */
	uint64_t next_ns;
	uint64_t look_ns, zones_ns; /* times of the next search for children, and for slow zones */
	int children_fd; /* of the main thread; -1: not open */
	int memory_fd; /* statm; -1: not open */
	struct host_memory memory;
	uint64_t burst_ns, burst_until_ns; /* when the next burst may begin, the current one ends */
	uint64_t burst_bytes; /* RSS when that was last decided */
	struct seen_thread *seen; /* in the order of stack.threads */
	size_t seen_count, seen_room;
	uint64_t first_ns, last_ns; /* times of the first and the last periodic sample; 0: none */
	uint64_t unchanged; /* samples in a row with the same stacks */
	uint64_t taken; /* periodic samples since Python was found */
	uint64_t cost_ns; /* mean CPU time of a sample */
	uint64_t period_ns; /* the current one */
	uint64_t used_ns, used_at_ns; /* CPU time of the process, and when it was read */
	uint32_t idle_permille; /* between the last two readings */
	struct wait_peers peers;
	struct slow_zones zones;
};

struct sampler_inside {
	struct sampler_options options;
	char live_dir[KYMO_PATH_BYTES];
	pthread_t thread;
	pthread_mutex_t lock; /* held while processes are added, not while they are read */
	uint32_t wakes; /* a futex: grows with each addition and at the end */
	uint32_t stop;
	pid_t *added; /* pids to be added by the thread */
	size_t added_count, added_room;
	/* used by the thread only */
	struct watched **watched;
	size_t watched_count, watched_room;
	struct stacktrie trie;
	uint32_t period_name;
	uint64_t period_ns; /* 0: none, unless adaptive */
	bool adaptive; /* the period is not set */
	bool told_adaptive;
	uint64_t began_ns; /* of this thread */
	uint64_t first_cost_ns; /* of samples in the first second of a process */
	uint64_t told_least_ns; /* the slowest pace that was reported */
	size_t files; /* of /proc, held open */
	uint64_t read_ns; /* when the current stacks were read */
	struct sampler_stats stats;
	/* a copy for other threads, under the lock */
	struct sampler_stats published;
};

/* sampler_rows.c */
uint32_t sampler_intern(const char *text);
/* Reads a file of /proc/PID/task/TID. Opening it costs as much as reading it, so it stays open, if
   not too many are. */
bool sampler_held_read(struct sampler_inside *inside, int *fd, pid_t pid, pid_t tid,
		       const char *name, char *text, size_t text_bytes);
void sampler_held_close(struct sampler_inside *inside, int *fd);
/* Writes a row for each thread of the process, as it was just read. */
void sampler_write(struct sampler_inside *inside, struct watched *one, uint64_t ticks,
		   uint32_t cause, uint64_t weight_ns);
/* Forgets the threads from a place on. */
void sampler_forget_seen(struct sampler_inside *inside, struct watched *one, size_t from);

/* sampler_pace.c */
/* A child that has hardly used CPU time yet: most that a program starts in great number never
   will. */
bool sampler_is_too_young(const struct watched *one, uint64_t now_ns);
/* Sets idle_permille; of a process that cannot be read it stays 0. */
void sampler_learn_idle(struct watched *one, uint64_t now_ns);
void sampler_choose_period(struct sampler_inside *inside, struct watched *one, uint64_t now_ns);

#endif
