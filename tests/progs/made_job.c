/*
 * Writes a job byte by byte: a recording for each rank, eight ranks a host, with the same process
 * IDs on each host.
 *
 *	made_job DIRECTORY RANKS STEPS [calls]
 *		a step takes 8 ms of its 10; rank 3 takes half as long again in the middle fifth of
 *		the steps, and the ranks of host2 a quarter in the last fifth. With the word, each
 *		step ends with an all_reduce of all ranks. The first 100 steps have zones.
 */
#include "../unit/tables/tables_make.h"
/* Its tables, without linking what is hidden in the library. */
#include "base/schema.c" // NOLINT(bugprone-suspicious-include)

#define MS UINT64_C(1000000)
#define EACH (10 * MS)
#define ZONES_MOST 100
#define HOST_RANKS 8

struct job {
	const char *path;
	uint32_t ranks, steps;
	bool calls;
	uint64_t *last; /* of each step: when its last rank arrives, after its start */
};

/* How long a rank works in a step. */
static uint64_t work_of(const struct job *job, uint32_t rank, uint32_t step)
{
	uint64_t noise = (rank * UINT64_C(2654435761) + step) * UINT64_C(11400714819323198485);
	uint64_t work = 8 * MS + (noise >> 40) % (MS / 10);
	uint32_t fifth = (uint32_t)((uint64_t)step * 5 / job->steps);

	if (rank == 3 && fifth == 2)
		work += 4 * MS;
	if (rank / HOST_RANKS == 2 && fifth == 4)
		work += 2 * MS;
	return work;
}

static void find_last(struct job *job)
{
	job->last = calloc(job->steps, sizeof(*job->last));
	for (uint32_t rank = 0; rank < job->ranks; rank++)
		for (uint32_t step = 0; step < job->steps; step++) {
			uint64_t work = work_of(job, rank, step);

			job->last[step] = work > job->last[step] ? work : job->last[step];
		}
}

static void put_steps(const struct job *job, struct make *make, uint32_t rank, uint32_t name)
{
	struct schema_step_row *rows = calloc(job->steps, sizeof(*rows));

	for (uint32_t i = 0; i < job->steps; i++)
		rows[i] = (struct schema_step_row){ .start_ticks = MAKE_EPOCH + i * EACH,
						    .duration_ticks = work_of(job, rank, i),
						    .step = i + 1,
						    .name = name,
						    .thread = 1 };
	make_stream(make, schema_find("trace.steps"), rows, job->steps);
	free(rows);
}

static void put_zones(const struct job *job, struct make *make, uint32_t rank, uint32_t name)
{
	static struct kymo_zone_row rows[ZONES_MOST];
	uint32_t count = job->steps < ZONES_MOST ? job->steps : ZONES_MOST;

	for (uint32_t i = 0; i < count; i++)
		rows[i] = (struct kymo_zone_row){ .start_ticks = MAKE_EPOCH + i * EACH,
						  .duration_ticks = work_of(job, rank, i),
						  .name = name,
						  .thread = 1,
						  .step = i + 1 };
	make_stream(make, schema_find("trace.zones"), rows, count);
}

static void put_calls(const struct job *job, struct make *make, uint32_t rank)
{
	struct schema_collective_row *rows = calloc(job->steps, sizeof(*rows));
	uint32_t op = make_name(make, "all_reduce", "", 0, KYMO_SOURCE_C, 0);
	uint32_t group = make_name(make, "default_pg", "", 0, KYMO_SOURCE_C, 0);

	for (uint32_t i = 0; i < job->steps; i++) {
		uint64_t at = MAKE_EPOCH + i * EACH;

		rows[i] = (struct schema_collective_row){
			.enqueue_ticks = at + work_of(job, rank, i),
			.start_ticks = at + work_of(job, rank, i),
			.end_ticks = at + job->last[i] + MS / 2,
			.seq = i + 1,
			.bytes = 4096,
			.group = group,
			.op = op,
			.thread = 1,
			.step = i + 1,
			.group_size = job->ranks,
			.rank = -1,
			.peer = -1,
			.flags = SCHEMA_COLLECTIVE_ENQUEUE | SCHEMA_COLLECTIVE_START |
				 SCHEMA_COLLECTIVE_END | SCHEMA_COLLECTIVE_SEQ
		};
	}
	make_stream(make, schema_find("dist.collectives"), rows, job->steps);
	free(rows);
}

/* The host's name, and how long the run took. */
static void end_run(const struct job *job, const char *directory, struct make *make,
		    const char *host)
{
	struct kymo_run_file *run = calloc(1, sizeof(*run));
	uint64_t duration = job->steps * EACH + 10 * MS;
	char path[700];
	FILE *file;

	snprintf(path, sizeof(path), "%s/run", directory);
	file = fopen(path, "r+");
	if (!file || fread(run, sizeof(*run), 1, file) != 1)
		make_die(path);
	run->ended_realtime_ns = MAKE_UNIX + duration;
	run->target_pid = make->pid;
	run->target_wstatus = 0;
	memset(run->host, 0, sizeof(run->host));
	snprintf(run->host, sizeof(run->host), "%s", host);
	rewind(file);
	fwrite(run, sizeof(*run), 1, file);
	fclose(file);
	free(run);
	make->control.ended_ticks = MAKE_EPOCH + duration;
	make->control.wstatus = 0;
	make->control.ranks = (int32_t)job->ranks;
}

static void make_rank(const struct job *job, uint32_t rank)
{
	struct make make;
	char directory[480], host[32];
	uint32_t name;

	snprintf(host, sizeof(host), "host%u", rank / HOST_RANKS);
	snprintf(directory, sizeof(directory), "%s/%s-rank%u-1", job->path, host, rank);
	make_run(&make, directory);
	make_process(&make, 100 + (int32_t)(rank % HOST_RANKS), (int32_t)rank);
	name = make_name(&make, "train_step", "train.py", 7, KYMO_SOURCE_PYTHON, 0);
	make_thread(&make, make.pid, "main");
	put_zones(job, &make, rank, name);
	put_steps(job, &make, rank, name);
	if (job->calls)
		put_calls(job, &make, rank);
	end_run(job, directory, &make, host);
	make_process_end(&make);
}

int main(int argc, char **argv)
{
	struct job job = { 0 };
	static const char mark[] = "KYMOJOB\nmade\n";

	if (argc < 4)
		return 2;
	job.path = argv[1];
	job.ranks = (uint32_t)atol(argv[2]);
	job.steps = (uint32_t)atol(argv[3]);
	job.calls = argc > 4;
	if (mkdir(job.path, 0700))
		make_die(job.path);
	make_file(job.path, "job", mark, sizeof(mark) - 1, NULL, 0);
	find_last(&job);
	for (uint32_t rank = 0; rank < job.ranks; rank++)
		make_rank(&job, rank);
	free(job.last);
	return 0;
}
