/*
 * Writes a recording with chosen numbers byte by byte, for tests of reports: no program has to run.
 *
 *	made_run DIRECTORY train STEPS [PCT [SEED]]
 *		a training run: about 100 zones a step on five threads, 4 of 100 steps slow;
 *		aten::softmax takes PCT % of its usual time, and the optimizer that much less
 *	made_run DIRECTORY WORD
 *		a small run with one problem; WORD-not: the same without it
 */
#include <signal.h>

#include "../unit/tables/tables_make.h"
/* Its tables, without linking what is hidden in the library. */
#include "base/schema.c" // NOLINT(bugprone-suspicious-include)

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)
#define SECOND UINT64_C(1000000000)

struct zones {
	struct kymo_zone_row *rows;
	size_t count, room;
	uint32_t thread, step;
};

static uint64_t seed = 88172645463325252u;
static uint64_t softmax_pct = 100;

/* Around `ns`, by up to a fifth. */
static uint64_t about(uint64_t ns)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ns - ns / 5 + seed % (2 * ns / 5 + 1);
}

static void zone(struct zones *zones, uint64_t start, uint64_t end, uint32_t name, uint16_t depth)
{
	if (zones->count == zones->room) {
		zones->room = zones->room ? 2 * zones->room : 4096;
		zones->rows = realloc(zones->rows, zones->room * sizeof(zones->rows[0]));
	}
	zones->rows[zones->count++] = (struct kymo_zone_row){ .start_ticks = MAKE_EPOCH + start,
							      .duration_ticks = end - start,
							      .name = name,
							      .thread = zones->thread,
							      .depth = depth,
							      .step = zones->step };
}

static void put_zones(struct make *make, struct zones *zones)
{
	make_stream_cut(make, schema_find("trace.zones"), zones->rows, zones->count, 65536);
	free(zones->rows);
}

/* How long it took and how it ended; the program's name. */
static void end_run(const char *directory, struct make *make, uint64_t duration,
		    const char *program)
{
	struct kymo_run_file *run = calloc(1, sizeof(*run));
	char path[700];
	FILE *file;

	snprintf(path, sizeof(path), "%s/run", directory);
	file = fopen(path, "r+");
	if (!file || fread(run, sizeof(*run), 1, file) != 1)
		make_die(path);
	run->ended_realtime_ns = MAKE_UNIX + duration;
	run->target_wstatus = 0;
	snprintf(run->program, sizeof(run->program), "%s", program);
	rewind(file);
	fwrite(run, sizeof(*run), 1, file);
	fclose(file);
	free(run);
	make->control.ended_ticks = MAKE_EPOCH + duration;
	make->control.wstatus = 0;
}

/* ---- a training run ------------------------------------------------------------------------- */

enum {
	STEP,
	DATA,
	WAIT,
	FORWARD,
	GPT,
	BLOCK,
	ATTENTION,
	MLP,
	LINEAR,
	MM,
	SOFTMAX,
	LOSS,
	BACKWARD,
	OPTIMIZER,
	ADAM,
	ENGINE,
	ADDMM,
	BMM,
	FETCH,
	ITEM,
	DECODE,
	AUGMENT,
	AUGMENT_LINE,
	COLLATE,
	LOG,
	HOSTILE,
	NAMES
};

static const struct {
	const char *name, *file;
	uint32_t line, source;
} names[NAMES] = {
	[STEP] = { "train_step", "train.py", 88, KYMO_SOURCE_PYTHON },
	[DATA] = { "data.next", "train.py", 91, KYMO_SOURCE_PYTHON },
	[WAIT] = { "queue.get (wait)", "queue.py", 171, KYMO_SOURCE_PYTHON },
	[FORWARD] = { "forward", "train.py", 94, KYMO_SOURCE_PYTHON },
	[GPT] = { "GPT", "model.py", 210, KYMO_SOURCE_TORCH },
	[BLOCK] = { "Block", "model.py", 150, KYMO_SOURCE_TORCH },
	[ATTENTION] = { "CausalSelfAttention", "model.py", 60, KYMO_SOURCE_TORCH },
	[MLP] = { "MLP", "model.py", 110, KYMO_SOURCE_TORCH },
	[LINEAR] = { "aten::linear", NULL, 0, KYMO_SOURCE_C },
	[MM] = { "aten::mm", NULL, 0, KYMO_SOURCE_C },
	[SOFTMAX] = { "aten::softmax", NULL, 0, KYMO_SOURCE_C },
	[LOSS] = { "cross_entropy", "train.py", 97, KYMO_SOURCE_PYTHON },
	[BACKWARD] = { "backward", "train.py", 98, KYMO_SOURCE_PYTHON },
	[OPTIMIZER] = { "optimizer.step", "train.py", 99, KYMO_SOURCE_PYTHON },
	[ADAM] = { "aten::_fused_adam_", NULL, 0, KYMO_SOURCE_C },
	[ENGINE] = { "Engine::thread_main", NULL, 0, KYMO_SOURCE_C },
	[ADDMM] = { "AddmmBackward0", NULL, 0, KYMO_SOURCE_TORCH },
	[BMM] = { "aten::bmm", NULL, 0, KYMO_SOURCE_C },
	[FETCH] = { "fetch_batch", "data.py", 40, KYMO_SOURCE_PYTHON },
	[ITEM] = { "Dataset.__getitem__", "data.py", 20, KYMO_SOURCE_PYTHON },
	[DECODE] = { "decode_jpeg", "image.cpp", 310, KYMO_SOURCE_C },
	[AUGMENT] = { "augment", "data.py", 28, KYMO_SOURCE_PYTHON },
	[AUGMENT_LINE] = { "data.py:30", "data.py", 30, KYMO_SOURCE_LINE },
	[COLLATE] = { "default_collate", "collate.py", 12, KYMO_SOURCE_PYTHON },
	[LOG] = { "log_metrics", "log.py", 8, KYMO_SOURCE_PYTHON },
	[HOSTILE] = { "</script><script>window.hacked=1</script><img src=x "
		      "onerror=window.hacked=1>",
		      "a.c", 1, KYMO_SOURCE_C },
};

static uint64_t block(struct zones *main, const uint32_t *id, uint64_t at)
{
	uint64_t began = at, part;

	for (int half = 0; half < 2; half++) {
		part = at + about(8 * US);
		at = part;
		for (int op = 0; op < 3; op++) {
			uint64_t end = at + about(55 * US) * (op == 1 ? softmax_pct : 100) / 100;

			if (op != 1)
				zone(main, at + 6 * US, end - 6 * US, id[MM], 6);
			zone(main, at, end, id[op == 1 ? SOFTMAX : LINEAR], 5);
			at = end + about(4 * US);
		}
		zone(main, part - 4 * US, at, id[half ? MLP : ATTENTION], 4);
		at += 3 * US;
	}
	zone(main, began, at, id[BLOCK], 3);
	return at;
}

/* Gives the step's end; the phases into `phases`. */
static uint64_t train_step(struct zones *main, struct zones *autograd, const uint32_t *id,
			   uint64_t at, bool slow, uint64_t *phases)
{
	uint64_t began = at, wait = about(slow ? 24 * MS : 1100 * US), forward, backward;

	zone(main, at + 30 * US, at + 30 * US + wait, id[WAIT], 2);
	zone(main, at + 10 * US, at + 50 * US + wait, id[DATA], 1);
	phases[KYMO_PHASE_DATA] = wait + 40 * US;
	forward = at += wait + 60 * US;
	at += 10 * US;
	for (int i = 0; i < 6; i++)
		at = block(main, id, at) + about(5 * US);
	zone(main, forward + 8 * US, at, id[GPT], 2);
	zone(main, forward, at + 5 * US, id[FORWARD], 1);
	phases[KYMO_PHASE_FORWARD] = at - forward;
	at += 10 * US;
	zone(main, at, at + 120 * US, id[LOSS], 1);
	backward = at += 130 * US;
	for (int i = 0; i < 12; i++) {
		uint64_t each = about(300 * US);

		zone(autograd, at + 40 * US, at + each - 30 * US, id[i % 3 ? MM : BMM], 2);
		zone(autograd, at + 20 * US, at + each - 10 * US, id[ADDMM], 1);
		at += each;
	}
	zone(autograd, backward + 10 * US, at, id[ENGINE], 0);
	zone(main, backward, at + 10 * US, id[BACKWARD], 1);
	phases[KYMO_PHASE_BACKWARD] = at - backward;
	at += 20 * US;
	phases[KYMO_PHASE_OPTIMIZER] = about(600 * US) * 100 / softmax_pct;
	zone(main, at + 20 * US, at + phases[KYMO_PHASE_OPTIMIZER] - 20 * US, id[ADAM], 2);
	zone(main, at, at + phases[KYMO_PHASE_OPTIMIZER], id[OPTIMIZER], 1);
	at += phases[KYMO_PHASE_OPTIMIZER] + 20 * US;
	zone(main, began, at, id[STEP], 0);
	return at;
}

static void load(struct zones *loader, const uint32_t *id, uint64_t from, uint64_t to)
{
	uint64_t at = from + about(200 * US), began = at;

	for (int i = 0; i < 3 && at + 3 * MS < to; i++) {
		uint64_t item = at, decode = at + about(1300 * US),
			 augment = decode + about(220 * US);

		zone(loader, at, decode, id[DECODE], 2);
		zone(loader, decode + 40 * US, augment - 40 * US, id[AUGMENT_LINE], 3);
		zone(loader, decode, augment, id[AUGMENT], 2);
		zone(loader, item, augment + 10 * US, id[ITEM], 1);
		at = augment + 20 * US;
	}
	zone(loader, at, at + 150 * US, id[COLLATE], 1);
	zone(loader, began, at + 160 * US, id[FETCH], 0);
}

static void put_host(struct make *make, uint64_t duration, uint64_t every)
{
	size_t count = duration / every;
	struct schema_host_process_row *process = calloc(count + 1, sizeof(*process));
	struct schema_host_cpu_row *cpu = calloc(count + 1, sizeof(*cpu));
	struct schema_counter_row *loss = calloc(count + 1, sizeof(*loss));

	for (size_t i = 0; i < count; i++) {
		uint64_t ts = MAKE_EPOCH + i * every + every / 2;

		process[i] = (struct schema_host_process_row){
			.ts_ticks = ts,
			.rss_bytes = (i < 20 ? 2400 + 20 * i : 2800) * 1000000 + about(60000000),
			.vms_bytes = 9000000000,
			.cpu_pct = 150 + (double)(about(400) % 100) / 2,
			.pid = make->pid,
			.threads = 6
		};
		cpu[i] = (struct schema_host_cpu_row){ .ts_ticks = ts,
						       .busy_pct = 70 +
								   (double)(about(300) % 200) / 10,
						       .iowait_pct = (double)(about(30) % 7) / 2,
						       .pressure_pct = 1,
						       .cpu = -1 };
	}
	make_stream(make, schema_find("host.process"), process, count);
	make_stream(make, schema_find("host.cpu"), cpu, count);
	free(process);
	free(cpu);
	free(loss);
}

static void put_loss(struct make *make, const struct schema_step_row *steps, size_t count,
		     uint32_t thread)
{
	struct schema_counter_row *rows = calloc(2 * count + 1, sizeof(*rows));
	uint32_t loss = make_name(make, "loss", NULL, 0, KYMO_SOURCE_PYTHON, 0);
	uint32_t batch = make_name(make, "batch_size", NULL, 0, KYMO_SOURCE_PYTHON, 0);

	for (size_t i = 0; i < count; i++) {
		rows[2 * i] = (struct schema_counter_row){
			.ts_ticks = steps[i].start_ticks,
			.value = 2.3 + 8.0 * (double)count / (double)(count + 12 * i) +
				 (double)about(1000) / 9000,
			.name = loss,
			.thread = thread
		};
		rows[2 * i + 1] = (struct schema_counter_row){ .ts_ticks = steps[i].start_ticks,
							       .value = 32,
							       .name = batch,
							       .thread = thread };
	}
	make_stream(make, schema_find("trace.counters"), rows, 2 * count);
	free(rows);
}

static void train(const char *directory, size_t count)
{
	struct schema_step_row *steps = calloc(count, sizeof(*steps));
	struct zones threads[5] = { 0 };
	static const char *const called[] = { "MainThread", "autograd", "loader 0", "loader 1",
					      "logger" };
	uint32_t id[NAMES];
	uint64_t at = 40 * MS;
	struct make make;

	make_run(&make, directory);
	make_process(&make, 100, -1);
	for (size_t i = 0; i < NAMES; i++)
		id[i] = make_name(&make, names[i].name, names[i].file, names[i].line,
				  names[i].source, 0);
	for (int i = 0; i < 5; i++)
		threads[i].thread = make_thread(&make, 100 + i, called[i]);
	for (size_t i = 0; i < count; i++) {
		uint64_t phases[KYMO_PHASE_COUNT] = { 0 }, end;

		for (int t = 0; t < 5; t++)
			threads[t].step = (uint32_t)i + 1;
		end = train_step(&threads[0], &threads[1], id, at, i % 25 == 17, phases);
		load(&threads[2], id, at, end);
		load(&threads[3], id, at + 800 * US, end);
		if (i % 10 == 0)
			zone(&threads[4], at, at + 300 * US, id[i % 100 ? LOG : HOSTILE], 0);
		steps[i] = (struct schema_step_row){ .start_ticks = MAKE_EPOCH + at,
						     .duration_ticks = end - at,
						     .step = (uint32_t)i + 1,
						     .name = id[STEP],
						     .thread = threads[0].thread };
		memcpy(steps[i].phase_ticks, phases, sizeof(phases));
		at = end + about(30 * US);
	}
	at += 20 * MS;
	end_run(directory, &make, at, "train.py");
	for (int i = 0; i < 5; i++)
		put_zones(&make, &threads[i]);
	make_stream(&make, schema_find("trace.steps"), steps, count);
	put_loss(&make, steps, count, threads[0].thread);
	put_host(&make, at, at / 200);
	make_process_end(&make);
	free(steps);
}

/* ---- one problem each ----------------------------------------------------------------------- */

#define SMALL (20 * SECOND)

/* A zone of everything, so that something was recorded. */
static void plain_zones(struct make *make, const char *name, uint64_t each, uint64_t gap,
			size_t count)
{
	struct zones zones = { .thread = make_thread(make, make->pid, "MainThread") };
	uint32_t id = make_name(make, name, "app.py", 1, KYMO_SOURCE_PYTHON, 0);

	for (size_t i = 0; i < count; i++)
		zone(&zones, i * (each + gap), i * (each + gap) + each, id, 0);
	put_zones(make, &zones);
}

static void host_rows(struct make *make, uint64_t faults, uint64_t switches, uint64_t delay_ns,
		      uint64_t growth, double cpu_pct)
{
	struct schema_host_process_row rows[20] = { 0 };
	struct schema_host_cpu_row cpus[20] = { 0 };

	for (uint64_t i = 0; i < 20; i++) {
		rows[i] = (struct schema_host_process_row){ .ts_ticks = MAKE_EPOCH + i * SECOND,
							    .rss_bytes = 200000000 + i * growth,
							    .major_faults = i * faults,
							    .involuntary_switches = i * switches,
							    .cpu_pct = cpu_pct,
							    .pid = make->pid,
							    .threads = 4,
							    .run_delay_ns = i * delay_ns };
		cpus[i] = (struct schema_host_cpu_row){ .ts_ticks = MAKE_EPOCH + i * SECOND,
							.busy_pct = 40,
							.cpu = -1 };
	}
	make_stream(make, schema_find("host.process"), rows, 20);
	make_stream(make, schema_find("host.cpu"), cpus, 20);
}

static void blocked_threads(struct make *make, int every)
{
	struct schema_host_threads_row rows[20] = { 0 };

	for (int i = 0; i < 20; i++) {
		rows[i].ts_ticks = MAKE_EPOCH + (uint64_t)i * SECOND;
		rows[i].pid = make->pid;
		rows[i].tid = make->pid;
		snprintf(rows[i].state, sizeof(rows[i].state), "%s",
			 i % every ? "running" : "blocked");
	}
	make_stream(make, schema_find("host.threads"), rows, 20);
}

/* On a machine of two cores: threads that are ready to run but have no core for a part of each
   second. */
static void delayed_threads(struct make *make, int count, uint64_t delay_ns, double cpu_pct)
{
	struct schema_host_threads_row rows[20 * 6] = { 0 };
	struct schema_host_cpu_row cores[2] = { { .ts_ticks = MAKE_EPOCH },
						{ .ts_ticks = MAKE_EPOCH, .cpu = 1 } };

	for (int i = 0; i < 20 * count; i++) {
		rows[i].ts_ticks = MAKE_EPOCH + (uint64_t)(i / count) * SECOND;
		rows[i].pid = make->pid;
		rows[i].tid = make->pid + i % count;
		rows[i].run_delay_ns = (uint64_t)(i / count) * delay_ns;
		snprintf(rows[i].name, sizeof(rows[i].name), "worker");
		snprintf(rows[i].state, sizeof(rows[i].state), "running");
	}
	make_stream(make, schema_find("host.threads"), rows, (size_t)(20 * count));
	make_stream(make, schema_find("host.cpu"), cores, 2);
	host_rows(make, 0, 400, (uint64_t)count * delay_ns, 0, cpu_pct);
}

static void throttled(struct make *make, uint64_t each_second)
{
	struct schema_host_cgroup_row rows[20] = { 0 };

	for (uint64_t i = 0; i < 20; i++) {
		rows[i].ts_ticks = MAKE_EPOCH + i * SECOND;
		rows[i].throttled_ns = i * each_second;
		rows[i].throttled_count = i * 3;
		rows[i].cpu_limit = 1;
		rows[i].pid = make->pid;
		snprintf(rows[i].path, sizeof(rows[i].path), "/job");
	}
	make_stream(make, schema_find("host.cgroup"), rows, 20);
}

/* Steps: `first` times as long at the beginning, and every `slow_every`-th `slow` times (0:
   none). */
static void loop_steps(struct make *make, uint64_t each, uint64_t first, size_t slow_every,
		       uint64_t slow)
{
	struct schema_step_row rows[200] = { 0 };
	struct zones zones = { .thread = make_thread(make, make->pid, "MainThread") };
	uint32_t step = make_name(make, "step", "app.py", 1, KYMO_SOURCE_PYTHON, 0);
	uint32_t save = make_name(make, "save_checkpoint", "app.py", 9, KYMO_SOURCE_PYTHON, 0);
	uint32_t work = make_name(make, "work", "app.py", 5, KYMO_SOURCE_PYTHON, 0);
	uint64_t at = 0;

	for (uint32_t i = 0; i < 200; i++) {
		bool late = slow_every && i > 20 && i % slow_every == 0;
		uint64_t length = i < 3 ? each * first : late ? each * slow : each;

		zones.step = i + 1;
		zone(&zones, at + 10 * US, at + each / 2, work, 1);
		if (late)
			zone(&zones, at + each / 2, at + length - each / 4, save, 1);
		zone(&zones, at, at + length - US, step, 0);
		rows[i] = (struct schema_step_row){ .start_ticks = MAKE_EPOCH + at,
						    .duration_ticks = length,
						    .step = i + 1,
						    .name = step,
						    .thread = zones.thread };
		at += length;
	}
	put_zones(make, &zones);
	make_stream(make, schema_find("trace.steps"), rows, 200);
}

/* Each rank's part of 50 collectives; they end when the late rank has come. */
static void collectives(struct make *make, int rank, uint64_t late, uint32_t thread)
{
	struct schema_collective_row rows[50] = { 0 };
	uint32_t op = make_name(make, "all_reduce", "", 0, KYMO_SOURCE_C, 0);
	uint32_t group = make_name(make, "0", "", 0, KYMO_SOURCE_C, 0);

	for (uint32_t i = 0; i < 50; i++) {
		uint64_t begin = MAKE_EPOCH + i * 300 * MS + 100 * MS;
		uint64_t arrival = begin + (rank == 1 ? late : 0) +
				   i % 3 * US * (uint32_t)(rank + 1);

		rows[i] = (struct schema_collective_row){ .enqueue_ticks = arrival,
							  .start_ticks = arrival,
							  .end_ticks = begin + late + MS,
							  .seq = i + 1,
							  .op = op,
							  .group = group,
							  .thread = thread,
							  .step = i + 1,
							  .group_size = 3,
							  .rank = -1,
							  .peer = -1,
							  .flags = SCHEMA_COLLECTIVE_ENQUEUE |
								   SCHEMA_COLLECTIVE_START |
								   SCHEMA_COLLECTIVE_END |
								   SCHEMA_COLLECTIVE_SEQ };
	}
	make_stream(make, schema_find("dist.collectives"), rows, 50);
}

static void ranks(const char *directory, uint64_t late)
{
	struct make make;

	make_run(&make, directory);
	for (int rank = 0; rank < 3; rank++) {
		struct schema_step_row rows[50] = { 0 };

		make_process(&make, 100 + rank, rank);
		uint32_t name = make_name(&make, "step", "a.py", 1, KYMO_SOURCE_PYTHON, 0);
		uint32_t thread = make_thread(&make, 100 + rank, "MainThread");

		for (uint32_t i = 0; i < 50; i++)
			rows[i] = (struct schema_step_row){ .start_ticks = MAKE_EPOCH +
									   i * 300 * MS,
							    .duration_ticks = 290 * MS,
							    .step = i + 1,
							    .name = name,
							    .thread = thread };
		end_run(directory, &make, SMALL, "made");
		make_stream(&make, schema_find("trace.steps"), rows, 50);
		collectives(&make, rank, late, thread);
		make_process_end(&make);
	}
}

/* Ended from outside while it was in two zones; another thread goes on where it is not stuck. */
static void stuck(struct make *make, bool goes_on)
{
	struct zones main = { .thread = make_thread(make, make->pid, "MainThread") };
	struct zones other = { .thread = make_thread(make, make->pid + 1, "loader") };
	uint32_t load = make_name(make, "load", "app.py", 1, KYMO_SOURCE_PYTHON, 0);
	const struct kymo_open_entry open[] = {
		{ MAKE_EPOCH + 3 * SECOND,
		  make_name(make, "serve", "app.py", 5, KYMO_SOURCE_PYTHON, 0), 0 },
		{ MAKE_EPOCH + 4 * SECOND,
		  make_name(make, "Session::run", "app.py", 9, KYMO_SOURCE_PYTHON, 0), 0 },
	};

	make->control.wstatus = SIGTERM;
	zone(&other, SECOND, 2 * SECOND, load, 0);
	if (goes_on)
		zone(&other, SMALL - 100 * MS, SMALL - 50 * MS, load, 0);
	put_zones(make, &other);
	zone(&main, 0, 100 * MS, load, 0);
	make->open = open;
	make->open_count = 2;
	make->open_thread = main.thread;
	put_zones(make, &main);
	make->open_count = 0;
}

/* Ended from outside in the only zone that there ever was. */
static void alone(struct make *make, double cpu_pct)
{
	struct zones main = { .thread = make_thread(make, make->pid, "MainThread") };
	const struct kymo_open_entry open = {
		MAKE_EPOCH, make_name(make, "everything", "app.py", 1, KYMO_SOURCE_PYTHON, 0), 0
	};

	make->control.wstatus = SIGTERM;
	make->open = &open;
	make->open_count = 1;
	make->open_thread = main.thread;
	put_zones(make, &main);
	make->open_count = 0;
	host_rows(make, 0, 0, 0, 0, cpu_pct);
}

static void problem(const char *directory, const char *word)
{
	bool has = !strstr(word, "-not");
	struct make make;

	if (!strncmp(word, "rank", 4)) {
		ranks(directory, has ? 80 * MS : 0);
		return;
	}
	make_run(&make, directory);
	make_process(&make, 100, -1);
	end_run(directory, &make, SMALL, "made");
	if (!strncmp(word, "tiny", 4))
		plain_zones(&make, "add", has ? 5 * US : 4 * MS, has ? 5 * US : 4 * MS,
			    has ? 1000000 : 2400);
	else if (!strncmp(word, "region", 6))
		plain_zones(&make, "simulate", has ? 9 * MS : MS, has ? MS : 99 * MS,
			    has ? 1900 : 190);
	else if (!strncmp(word, "lock", 4))
		plain_zones(&make, has ? "lock.acquire" : "clock.read", 4 * MS, 6 * MS, 1900);
	else if (!strncmp(word, "gc", 2))
		plain_zones(&make, has ? "gc (generation 2)" : "gcd", 2 * MS, 8 * MS, 1900);
	else if (!strncmp(word, "import", 6))
		plain_zones(&make, has ? "import torch" : "<module>", 30 * MS, 2 * MS, 120);
	else if (!strncmp(word, "io", 2))
		blocked_threads(&make, has ? 2 : 19);
	else if (!strncmp(word, "throttled", 9))
		throttled(&make, has ? 200 * MS : 2 * MS);
	else if (!strncmp(word, "crowded", 7))
		delayed_threads(&make, 6, has ? 600 * MS : 60 * MS, 180);
	else if (!strcmp(word, "starved"))
		delayed_threads(&make, 1, 900 * MS, 10);
	else if (!strncmp(word, "stuck", 5))
		stuck(&make, !has);
	else if (!strncmp(word, "alone", 5))
		alone(&make, has ? 5 : 95);
	else if (!strncmp(word, "swap", 4))
		host_rows(&make, has ? 2000 : 2, 0, 0, 0, 90);
	else if (!strcmp(word, "several")) /* swap, growth and waiting */
		host_rows(&make, 2000, 0, 0, 30000000, 5);
	else if (!strcmp(word, "growth-large")) /* bytes times ns exceed 64 bits */
		host_rows(&make, 0, 0, 0, 1000000000, 90);
	else if (!strncmp(word, "growth", 6))
		host_rows(&make, 0, 0, 0, has ? 30000000 : 10000, 90);
	else if (!strncmp(word, "waiting", 7))
		host_rows(&make, 0, 0, 0, 0, has ? 5 : 95);
	else if (!strncmp(word, "spread", 6))
		loop_steps(&make, 50 * MS, 1, has ? 10 : 0, 8);
	else if (!strncmp(word, "warmup", 6))
		loop_steps(&make, 40 * MS, has ? 30 : 1, 0, 1);
	else
		make_die(word);
	make_process_end(&make);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	softmax_pct = argc > 4 ? (uint64_t)atol(argv[4]) : softmax_pct;
	seed ^= argc > 5 ? (uint64_t)atol(argv[5]) << 20 : 0;
	if (!strcmp(argv[2], "train"))
		train(argv[1], argc > 3 ? (size_t)atol(argv[3]) : 200);
	else
		problem(argv[1], argv[2]);
	return 0;
}
