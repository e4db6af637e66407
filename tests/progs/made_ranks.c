/*
 * Writes a job of many ranks byte by byte, with chosen faults and clocks: no program has to run.
 *
 *	made_ranks DIRECTORY [WORD=NUMBER | WORD=RANK:NUMBER]...
 *
 *	ranks=4 per_host=1 steps=200 seed=1		size and noise
 *	work_us=10000 noise_us=300 latency_us=20	of each step; of the end of a collective
 *	clocks=1	hosts but the first have offsets of up to 5 s and drifts of up to 200 ppm
 *	pause=HOST	that host stands still for 2 s: its clock steps back against the others
 *	swap=RANK	calls of that rank have the numbers of others
 *	late=RANK:US	it sleeps in fetch_shard before each collective
 *	slow=HOST:PCT	all work of that host's ranks takes that much longer
 *	data=RANK:US	its steps wait for data (phase data), in fetch_shard
 *	comm_us=N	each collective takes that long, and nothing is computed meanwhile
 *	absent=RANK	does not come to the collective of the middle step: all others wait
 *	desync=RANK	calls all_gather there, the others all_reduce
 *	size=RANK	calls it there with half of the bytes
 *	samples=1	stack samples every 10 ms
 *	unseen=1	the end of each rank's first collective was not seen
 *	attempt=N	restarts before this one; directories of other attempts stay
 *
 * With clocks, `correlation` has the true end of a collective, in ns since the job's start.
 */
#include <math.h>

#include "../unit/tables/tables_make.h"
/* Its tables, without linking what is hidden in the library. */
#include "base/schema.c" // NOLINT(bugprone-suspicious-include)

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define HANG (20 * SECOND)

static struct {
	int64_t ranks, per_host, steps, seed, work_us, noise_us, latency_us, clocks, comm_us,
		samples;
	int64_t attempt, pause, swap, late, late_us, slow, slow_pct, data, data_us, absent, desync;
	int64_t size, unseen;
} with = { .ranks = 4,
	   .per_host = 1,
	   .steps = 200,
	   .seed = 1,
	   .work_us = 10000,
	   .noise_us = 300,
	   .latency_us = 20,
	   .pause = -1,
	   .swap = -1,
	   .late = -1,
	   .slow = -1,
	   .data = -1,
	   .absent = -1,
	   .desync = -1,
	   .size = -1 };

static const struct {
	const char *word;
	int64_t *value, *second;
} words[] = {
	{ "ranks", &with.ranks, NULL },		{ "per_host", &with.per_host, NULL },
	{ "steps", &with.steps, NULL },		{ "seed", &with.seed, NULL },
	{ "work_us", &with.work_us, NULL },	{ "noise_us", &with.noise_us, NULL },
	{ "comm_us", &with.comm_us, NULL },	{ "latency_us", &with.latency_us, NULL },
	{ "clocks", &with.clocks, NULL },	{ "pause", &with.pause, NULL },
	{ "swap", &with.swap, NULL },		{ "late", &with.late, &with.late_us },
	{ "slow", &with.slow, &with.slow_pct }, { "data", &with.data, &with.data_us },
	{ "absent", &with.absent, NULL },	{ "desync", &with.desync, NULL },
	{ "size", &with.size, NULL },		{ "samples", &with.samples, NULL },
	{ "attempt", &with.attempt, NULL },	{ "unseen", &with.unseen, NULL },
};

static void take_word(const char *text)
{
	const char *equal = strchr(text, '='), *colon = equal ? strchr(equal, ':') : NULL;

	for (size_t i = 0; equal && i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == (size_t)(equal - text) &&
		    !strncmp(words[i].word, text, (size_t)(equal - text))) {
			*words[i].value = atoll(equal + 1);
			if (words[i].second)
				*words[i].second = colon ? atoll(colon + 1) : 0;
			return;
		}
	make_die(text);
}

/* ---- chance --------------------------------------------------------------------------------- */

static uint64_t state;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)((state * UINT64_C(0x2545f4914f6cdd1d)) >> 11) / 9007199254740992.0;
}

/* Mostly small, sometimes ten times the mean. */
static int64_t noise(int64_t mean_ns)
{
	double value = -log(1 - uniform()) * (double)mean_ns;

	return (int64_t)(uniform() < 0.01 ? 5 * value : value);
}

/* ---- what happens --------------------------------------------------------------------------- */

struct call {
	int64_t start_ns, fetch_ns, fetched_ns, arrival_ns, end_ns; /* -1: never */
};

static struct call *calls; /* by step, then rank */

static struct call *call_of(int64_t step, int64_t rank)
{
	return &calls[step * with.ranks + rank];
}

static int64_t middle(void)
{
	return with.steps / 2;
}

static bool hangs(int64_t step)
{
	return step >= middle() && (with.absent >= 0 || with.desync >= 0 || with.size >= 0);
}

static int64_t work(int64_t step, int64_t rank)
{
	int64_t ns = with.work_us * 1000 + noise(with.noise_us * 1000);

	(void)step;
	if (with.slow >= 0 && rank / with.per_host == with.slow)
		ns += ns * with.slow_pct / 100;
	return ns;
}

static void make_step(int64_t step, int64_t *free_at)
{
	int64_t last = 0;

	for (int64_t rank = 0; rank < with.ranks; rank++) {
		struct call *call = call_of(step, rank);
		int64_t fetch = rank == with.late   ? with.late_us * 1000
				: rank == with.data ? with.data_us * 1000
						    : 0;

		call->start_ns = call->fetch_ns = free_at[rank];
		call->fetched_ns = call->fetch_ns + fetch;
		call->arrival_ns = call->fetched_ns + work(step, rank);
		if (with.pause == rank / with.per_host && step == middle())
			call->arrival_ns += 2 * SECOND;
		last = call->arrival_ns > last ? call->arrival_ns : last;
	}
	for (int64_t rank = 0; rank < with.ranks; rank++) {
		struct call *call = call_of(step, rank);

		call->end_ns = last + 5000 + with.comm_us * 1000 + noise(with.latency_us * 1000);
		free_at[rank] = call->end_ns;
		if (!hangs(step))
			continue;
		call->end_ns = -1;
		call->arrival_ns = step > middle() || rank == with.absent ? -1 : call->arrival_ns;
	}
}

static int64_t end_of_job(void)
{
	int64_t last = 0;

	for (int64_t i = 0; i < with.steps * with.ranks; i++)
		last = calls[i].end_ns > last ? calls[i].end_ns : last;
	return last + (hangs(with.steps) ? HANG : 50 * MS);
}

/* ---- clocks --------------------------------------------------------------------------------- */

struct host {
	int64_t offset_ns;
	double drift;
	int64_t paused_ns; /* true time; -1: never */
};

static struct host *hosts;

static void make_hosts(void)
{
	int64_t count = (with.ranks + with.per_host - 1) / with.per_host;

	hosts = calloc((size_t)count, sizeof(*hosts));
	for (int64_t i = 0; i < count; i++) {
		hosts[i].paused_ns = -1;
		if (with.clocks && i) {
			hosts[i].offset_ns = (int64_t)((uniform() - 0.5) * 10e9);
			hosts[i].drift = (uniform() - 0.5) * 4e-4;
		}
		if (i == with.pause)
			hosts[i].paused_ns = call_of(middle(), i * with.per_host)->fetched_ns;
	}
}

/* True time to the ticks of a host. A host that stood still has not counted. */
static uint64_t ticks_of(const struct host *host, int64_t ns)
{
	if (host->paused_ns >= 0 && ns > host->paused_ns)
		ns = ns > host->paused_ns + 2 * SECOND ? ns - 2 * SECOND : host->paused_ns;
	return MAKE_EPOCH + (uint64_t)(ns + (int64_t)((double)ns * host->drift));
}

/* ---- rows ----------------------------------------------------------------------------------- */

static int64_t numbered(int64_t step, int64_t rank)
{
	/* Neighbours change places at random: no offset makes sense of it. */
	return rank == with.swap ? (step ^ ((step * 2654435761) >> 7 & 15)) % with.steps : step;
}

static size_t make_calls(struct make *make, const struct host *host, int64_t rank, uint32_t thread)
{
	struct schema_collective_row *rows = calloc((size_t)with.steps, sizeof(*rows));
	uint32_t op = make_name(make, "all_reduce", "", 0, KYMO_SOURCE_C, 0);
	uint32_t other = make_name(make, "all_gather", "", 0, KYMO_SOURCE_C, 0);
	uint32_t group = make_name(make, "default_pg", "", 0, KYMO_SOURCE_C, 0);
	char *text = calloc((size_t)with.ranks, 12);
	uint32_t members;
	size_t count = 0, used = 0;

	for (int64_t i = 0; i < with.ranks; i++)
		used += (size_t)snprintf(text + used, 12, "%s%d", i ? "," : "", (int)i);
	members = make_name(make, text, "", 0, KYMO_SOURCE_C, 0);
	for (int64_t step = 0; step < with.steps; step++) {
		const struct call *call = call_of(step, rank);
		bool odd = hangs(step) && rank == with.desync;
		bool half = hangs(step) && rank == with.size;

		if (call->arrival_ns < 0)
			continue;
		rows[count++] = (struct schema_collective_row){
			.enqueue_ticks = ticks_of(host, call->arrival_ns) - 1000,
			.start_ticks = ticks_of(host, call->arrival_ns),
			.end_ticks = call->end_ns < 0 ? 0 : ticks_of(host, call->end_ns),
			.seq = (uint64_t)numbered(step, rank) + 1,
			.bytes = half ? 1 << 19 : 1 << 20,
			.call = (uint64_t)step + 1,
			.correlation = !with.clocks || call->end_ns < 0 ? 0
									: (uint64_t)call->end_ns,
			.op = odd ? other : op,
			.group = group,
			.members = members,
			.thread = thread,
			.step = (uint32_t)step + 1,
			.group_size = (uint32_t)with.ranks,
			.rank = -1,
			.peer = -1,
			.flags = SCHEMA_COLLECTIVE_ENQUEUE | SCHEMA_COLLECTIVE_START |
				 SCHEMA_COLLECTIVE_SEQ |
				 (call->end_ns < 0 ? 0 : SCHEMA_COLLECTIVE_END)
		};
	}
	if (with.unseen && count)
		rows[0].flags &= ~(uint32_t)(SCHEMA_COLLECTIVE_START | SCHEMA_COLLECTIVE_END);
	make_stream(make, schema_find("dist.collectives"), rows, count);
	free(rows);
	free(text);
	return count;
}

static void make_steps(struct make *make, const struct host *host, int64_t rank, uint32_t thread)
{
	struct schema_step_row *rows = calloc((size_t)with.steps, sizeof(*rows));
	uint32_t name = make_name(make, "step", "train.py", 10, KYMO_SOURCE_PYTHON, 0);
	size_t count = 0;

	for (int64_t step = 0; step < with.steps; step++) {
		const struct call *call = call_of(step, rank);
		uint64_t begin = ticks_of(host, call->start_ns);

		if (call->end_ns < 0)
			break;
		rows[count] = (struct schema_step_row){
			.start_ticks = begin,
			.duration_ticks = ticks_of(host, call->end_ns) - begin,
			.step = (uint32_t)step + 1,
			.name = name,
			.thread = thread
		};
		if (rank == with.data || with.data >= 0)
			rows[count].phase_ticks[KYMO_PHASE_DATA] = (uint64_t)(call->fetched_ns -
									      call->fetch_ns) +
								   1000;
		count++;
	}
	make_stream(make, schema_find("trace.steps"), rows, count);
	free(rows);
}

enum { TRAIN = 1, FETCH, WAIT };

static uint32_t node_at(const struct call *call, int64_t ns)
{
	if (call->arrival_ns < 0 || (call->fetched_ns > ns && ns >= call->fetch_ns))
		return FETCH;
	return ns >= call->arrival_ns ? WAIT : TRAIN;
}

static void make_samples(struct make *make, const struct host *host, int64_t rank, int64_t end_ns)
{
	const int64_t period = 10 * MS;
	struct schema_sample_row *rows = calloc((size_t)(end_ns / period + 1), sizeof(*rows));
	uint32_t period_name = make_name(make, "period", "", 0, KYMO_SOURCE_C, 0);
	uint32_t main_name = make_name(make, "MainThread", "", 0, KYMO_SOURCE_C, 0);
	const struct schema_frame_row frames[] = {
		{ TRAIN, 0, make_name(make, "train", "/w/train.py", 10, KYMO_SOURCE_PYTHON, 0),
		  12 },
		{ FETCH, TRAIN,
		  make_name(make, "fetch_shard", "/w/data.py", 40, KYMO_SOURCE_PYTHON, 0), 41 },
		{ WAIT, TRAIN,
		  make_name(make, "reduce_gradients", "/w/train.py", 20, KYMO_SOURCE_PYTHON, 0),
		  22 },
	};
	size_t count = 0;
	int64_t step = 0;

	for (int64_t at = period; at < end_ns; at += period) {
		while (step + 1 < with.steps && call_of(step, rank)->end_ns >= 0 &&
		       call_of(step, rank)->end_ns < at)
			step++;
		rows[count++] = (struct schema_sample_row){ .ts_ticks = ticks_of(host, at),
							    .stack = node_at(call_of(step, rank),
									     at),
							    .pid = make->pid,
							    .tid = make->pid,
							    .thread_name = main_name,
							    .cause = period_name,
							    .state = 'S',
							    .weight_ns = (uint64_t)period };
	}
	make_stream(make, schema_find("python.frames"), frames, 3);
	make_stream(make, schema_find("python.samples"), rows, count);
	free(rows);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void change_run(struct make *make, const struct host *host, int64_t number, int64_t end_ns)
{
	struct kymo_run_file *run = calloc(1, sizeof(*run));
	char path[700];
	FILE *file;

	snprintf(path, sizeof(path), "%s/run", make->run);
	file = fopen(path, "r+");
	if (!file || fread(run, sizeof(*run), 1, file) != 1)
		make_die(path);
	run->epoch.realtime_ns = MAKE_UNIX + (uint64_t)host->offset_ns;
	run->ended_realtime_ns = run->epoch.realtime_ns + (uint64_t)end_ns;
	run->target_wstatus = hangs(with.steps) ? 9 : 0;
	snprintf(run->host, sizeof(run->host), "host%d", (int)number);
	snprintf(run->boot_id, sizeof(run->boot_id), "00000000-0000-0000-0000-%012d", (int)number);
	snprintf(run->job, sizeof(run->job), "made");
	rewind(file);
	fwrite(run, sizeof(*run), 1, file);
	fclose(file);
	free(run);
}

static void make_rank(struct make *make, const struct host *host, int64_t rank, int64_t end_ns)
{
	uint32_t thread;

	/* Equal pids on all hosts. */
	make_process(make, 100 + (int32_t)(rank % with.per_host), (int32_t)rank);
	make->control.ranks = (int32_t)with.ranks;
	make->control.attempt_plus_1 = (uint32_t)with.attempt + 1;
	make->control.local_rank_plus_1 = (uint32_t)(rank % with.per_host) + 1;
	make->control.ended_ticks = ticks_of(host, end_ns);
	make->control.wstatus = hangs(with.steps) ? 9 : 0;
	thread = make_thread(make, make->pid, "MainThread");
	make_calls(make, host, rank, thread);
	make_steps(make, host, rank, thread);
	if (with.samples)
		make_samples(make, host, rank, end_ns);
	make_process_end(make);
}

int main(int argc, char **argv)
{
	int64_t *free_at, end_ns;
	struct make make;

	if (argc < 2)
		return 2;
	for (int i = 2; i < argc; i++)
		take_word(argv[i]);
	state = UINT64_C(88172645463325252) ^ ((uint64_t)with.seed * UINT64_C(0x9e3779b97f4a7c15));
	calls = calloc((size_t)(with.steps * with.ranks), sizeof(*calls));
	free_at = calloc((size_t)with.ranks, sizeof(*free_at));
	for (int64_t step = 0; step < with.steps; step++)
		make_step(step, free_at);
	make_hosts();
	end_ns = end_of_job();
	if (mkdir(argv[1], 0700) && access(argv[1], F_OK))
		make_die(argv[1]);
	make_file(argv[1], "job", "KYMOJOB\nmade\n", 13, NULL, 0);
	for (int64_t rank = 0; rank < with.ranks; rank++) {
		const struct host *host = &hosts[rank / with.per_host];
		char path[512];

		if (rank % with.per_host == 0) {
			snprintf(path, sizeof(path), "%s/host%d-attempt%d", argv[1],
				 (int)(rank / with.per_host), (int)with.attempt);
			make_run(&make, path);
			change_run(&make, host, rank / with.per_host, end_ns);
		}
		make_rank(&make, host, rank, end_ns);
	}
	return 0;
}
