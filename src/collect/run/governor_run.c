#include "collect/run/governor_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/format.h"
#include "base/grow.h"
#include "base/settings.h"
#include "collect/run/configure.h"
#include "record/record.h"

#define SECOND_NS 1000000000ull
#define LOOK_PARTS 1000u /* looks take at most this part of the time */
#define LOOK_LATE_NS (10 * SECOND_NS)
#define ADAPTIVE_NS 10000000u /* about what adaptive means for a busy program */
#define HEADS_MOST 4096u /* of one process */

void governor_run_init(struct governor_run *run, double budget)
{
	memset(run, 0, sizeof(*run));
	run->on = budget > 0;
	if (run->on)
		governor_init(&run->governor, budget);
}

void governor_run_fini(struct governor_run *run)
{
	free(run->processes);
	memset(run, 0, sizeof(*run));
}

/* ---- measuring ------------------------------------------------------------------------------- */

struct rows {
	uint64_t zones, torch, ops, device;
};

/* Called for each stream; the file belongs to the program and may hold anything. */
static void governor_add_rows(int directory, const char *name, struct rows *rows)
{
	static const struct {
		const char *table;
		size_t offset;
	} tables[] = {
		{ "trace.zones", offsetof(struct rows, zones) },
		{ "python.torch_trace", offsetof(struct rows, torch) },
		{ "torch.ops", offsetof(struct rows, ops) },
		{ "device.ops", offsetof(struct rows, device) },
	};
	char table[64] = "";
	uint64_t head = 0;
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	if (pread(fd, table, sizeof(table) - 1, offsetof(struct kymo_stream_head, table)) <= 0 ||
	    pread(fd, &head, sizeof(head),
		  KYMO_LIVE_OFFSET + offsetof(struct kymo_stream_live, head)) != sizeof(head))
		head = 0;
	close(fd);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!strcmp(table, tables[i].table))
			*(uint64_t *)(void *)((char *)rows + tables[i].offset) += head;
}

static void governor_read_rows(const struct archive *archive, const char *process,
			       struct rows *rows)
{
	int fd = openat(archive->live_fd, process, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned heads = 0;

	memset(rows, 0, sizeof(*rows));
	while (directory && heads < HEADS_MOST && (entry = readdir(directory))) {
		const char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".head") != 0)
			continue;
		governor_add_rows(fd, entry->d_name, rows);
		heads++;
	}
	if (directory)
		closedir(directory);
	else if (fd >= 0)
		close(fd);
}

/* All processes of a machine have the same clock. */
static uint64_t cost_of(uint64_t rows, uint64_t ticks)
{
	uint64_t per_ms = kymo__process.ticks_per_ms;

	return per_ms ? (uint64_t)((double)rows * (double)ticks * 1e6 / (double)per_ms) : 0;
}

static void measure_process(const struct rows *rows, const struct kymo_control *control,
			    struct governed *out)
{
	const uint64_t *each = control->source_cost_ticks;
	uint64_t zones = rows->zones > control->python_calls ? rows->zones - control->python_calls
							     : 0;

	out->rung_ns[GOVERNOR_OPS] = cost_of(rows->ops, each[KYMO_SOURCE_OP]);
	out->rung_ns[GOVERNOR_TORCH] = cost_of(rows->torch, each[KYMO_SOURCE_TORCH]);
	out->python_ns = control->python_cost_ns;
	out->rest_ns = cost_of(zones, control->own_cost_ticks) +
		       cost_of(rows->device, each[KYMO_SOURCE_DEVICE]);
}

static struct governed *find_governed(struct governor_run *run, const char *process)
{
	for (size_t i = 0; i < run->process_count; i++)
		if (!strcmp(run->processes[i].process, process))
			return &run->processes[i];
	return NULL;
}

static double governor_share(uint64_t now_ns, uint64_t before_ns, uint64_t past_ns)
{
	return now_ns > before_ns ? (double)(now_ns - before_ns) / (double)past_ns : 0;
}

/* The dearest process counts: all others are slowed less. */
static void keep_dearest(struct governor_costs *dearest, const struct governed *now,
			 const struct governed *before, uint64_t past_ns)
{
	struct governor_costs costs = {
		.python = governor_share(now->python_ns, before->python_ns, past_ns),
		.rest = governor_share(now->rest_ns, before->rest_ns, past_ns),
	};

	for (int i = 0; i < GOVERNOR_RUNGS; i++)
		costs.rung[i] = governor_share(now->rung_ns[i], before->rung_ns[i], past_ns);
	if (governor_sum(&costs) > governor_sum(dearest))
		*dearest = costs;
}

/* ---- changing -------------------------------------------------------------------------------- */

static bool read_control(const struct archive *archive, struct archive_process *process,
			 struct kymo_control *out)
{
	(void)archive;
	return process->control_fd >= 0 &&
	       pread(process->control_fd, out, sizeof(*out), 0) == (ssize_t)sizeof(*out);
}

/* Only a program that was started with a limit keeps to one. */
static bool takes(const struct settings_key *key, int control_fd)
{
	uint32_t limit = 0;

	return strcmp(key->name, "python_limit") != 0 ||
	       (pread(control_fd, &limit, sizeof(limit),
		      offsetof(struct kymo_control, python_limit)) == sizeof(limit) &&
		limit);
}

/* In all processes of the program. The row has the value of the first one that changed. */
static void change_programs(struct archive *archive, const char *name, uint64_t number,
			    const char *by)
{
	const struct settings_key *key = settings_find(name);
	struct settings_value value = { .number = number }, old;
	char old_text[SETTINGS_TEXT_BYTES], new_text[SETTINGS_TEXT_BYTES];
	bool told = false;

	for (size_t i = 0; i < archive->process_count; i++) {
		struct archive_process *process = &archive->processes[i];

		if (archive_is_collector(archive, process) || process->control_fd < 0 ||
		    !takes(key, process->control_fd) ||
		    configure_process(process->control_fd, key, &value, &old, NULL) <= 0 || told)
			continue;
		settings_format(key, &old, old_text, sizeof(old_text));
		settings_format(key, &value, new_text, sizeof(new_text));
		kymo__config_row(key->name, old_text, new_text, by);
		told = true;
	}
}

static uint64_t power(uint64_t base, unsigned exponent)
{
	uint64_t product = 1;

	while (exponent--)
		product *= base;
	return product;
}

static void change_samples(struct governor_run *run, unsigned level, const char *by)
{
	const struct settings_key *key = settings_find("sample_rate");
	struct kymo_control *control = kymo__process.control;
	struct settings_value value;
	char text[SETTINGS_TEXT_BYTES];
	uint64_t base_ns;

	if (!run->sample_period_ns)
		run->sample_period_ns = kymo__load_relaxed(&control->sample_period_ns);
	base_ns = run->sample_period_ns == SETTINGS_ADAPTIVE ? ADAPTIVE_NS : run->sample_period_ns;
	value.number = level ? base_ns * power(10, level) : run->sample_period_ns;
	if (level == governor_levels[GOVERNOR_SAMPLES])
		value.number = 0;
	settings_format(key, &value, text, sizeof(text));
	kymo__configure(key->name, text, by, NULL);
}

static uint32_t highest_of(const struct archive *archive, size_t offset)
{
	uint32_t value = 0, highest = 0;

	for (size_t i = 0; i < archive->process_count; i++)
		if (archive->processes[i].control_fd >= 0 &&
		    pread(archive->processes[i].control_fd, &value, sizeof(value), (off_t)offset) ==
			    sizeof(value) &&
		    value > highest)
			highest = value;
	return highest;
}

static void change_torch(struct governor_run *run, struct archive *archive, int rung,
			 unsigned level, const char *by)
{
	bool ops = rung == GOVERNOR_OPS;
	uint32_t *base = ops ? &run->torch_ops : &run->torch_every;
	uint64_t every;

	if (!*base)
		*base = highest_of(archive, ops ? offsetof(struct kymo_control, torch_ops)
						: offsetof(struct kymo_control, torch_every));
	if (!*base)
		*base = 1;
	every = *base * power(4, level);
	if (ops && level == governor_levels[rung])
		every = 0;
	change_programs(archive, ops ? "torch_ops" : "torch_every", every, by);
}

static void change_rung(struct governor_run *run, struct archive *archive,
			const struct governor_samplers *samplers, int rung, unsigned level,
			const char *by)
{
	switch (rung) {
	case GOVERNOR_NATIVE:
		native_sampler_pause(samplers->native, level > 0);
		kymo__config_row("native", level ? "on" : "off", level ? "off" : "on", by);
		break;
	case GOVERNOR_SAMPLES: change_samples(run, level, by); break;
	default: change_torch(run, archive, rung, level, by);
	}
}

static void governor_apply(struct governor_run *run, struct archive *archive,
			   const struct governor_samplers *samplers,
			   const struct governor_change *change)
{
	const struct governor *governor = &run->governor;
	char by[56], budget[32], cost[64];

	snprintf(by, sizeof(by), "budget: overhead %.2f %% of %.2f %%",
		 100 * governor_sum(&governor->mean), 100 * governor->budget);
	if (change->rung >= 0)
		change_rung(run, archive, samplers, change->rung, change->level, by);
	if (change->limit)
		change_programs(archive, "python_limit", governor->python_limit, by);
	if (!change->exceeded)
		return;
	snprintf(budget, sizeof(budget), "%.2f %%", 100 * governor->budget);
	snprintf(cost, sizeof(cost), "exceeded: %.2f %%, nothing is left to lower",
		 100 * governor_sum(&governor->mean));
	kymo__config_row("max_overhead", budget, cost, by);
}

/* ---- a look ---------------------------------------------------------------------------------- */

static void look_at_process(struct governor_run *run, struct archive *archive,
			    struct archive_process *process, struct governed *out)
{
	struct kymo_control control;
	struct settings_value limit = { .number = run->governor.python_limit }, old;
	struct rows rows;

	snprintf(out->process, sizeof(out->process), "%s", process->name);
	if (!read_control(archive, process, &control))
		return;
	governor_read_rows(archive, process->name, &rows);
	measure_process(&rows, &control, out);
	/* It started with the limit of the first processes. */
	if (control.python_limit && control.python_limit != limit.number &&
	    !find_governed(run, process->name))
		configure_process(process->control_fd, settings_find("python_limit"), &limit, &old,
				  NULL);
}

static void look_at_programs(struct governor_run *run, struct archive *archive, uint64_t past_ns,
			     struct governor_costs *dearest)
{
	struct governed *now = calloc(archive->process_count + 1, sizeof(*now));
	size_t count = 0;

	for (size_t i = 0; now && i < archive->process_count; i++) {
		struct archive_process *process = &archive->processes[i];
		const struct governed *before;

		if (archive_is_collector(archive, process))
			continue;
		look_at_process(run, archive, process, &now[count]);
		before = find_governed(run, process->name);
		/* What a new process has cost is less than this time. */
		if (before)
			keep_dearest(dearest, &now[count], before, past_ns);
		count++;
	}
	if (!now)
		return;
	free(run->processes);
	run->processes = now;
	run->process_count = count;
}

static void look_at_collector(struct governor_run *run, const struct governor_samplers *samplers,
			      uint64_t past_ns, struct governor_costs *costs)
{
	uint64_t parts_ns = samplers->native_ns + samplers->sampler_ns;
	uint64_t rest_ns = samplers->all_ns > parts_ns ? samplers->all_ns - parts_ns : 0;

	costs->rung[GOVERNOR_NATIVE] += governor_share(samplers->native_ns, run->native_ns,
						       past_ns);
	costs->rung[GOVERNOR_SAMPLES] += governor_share(samplers->sampler_ns, run->sampler_ns,
							past_ns);
	costs->rest += governor_share(rest_ns, run->collector_ns, past_ns);
	run->native_ns = samplers->native_ns;
	run->sampler_ns = samplers->sampler_ns;
	run->collector_ns = rest_ns;
}

static uint64_t governor_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void governor_run_look(struct governor_run *run, struct archive *archive,
		       const struct governor_samplers *samplers, uint64_t now_ns)
{
	struct governor_costs costs = { 0 };
	struct governor_change change;
	uint64_t past_ns = now_ns - run->looked_ns, took_ns = governor_cpu_ns();
	bool first = !run->looked_ns;

	if (!run->on || now_ns < run->next_ns)
		return;
	look_at_programs(run, archive, past_ns, &costs);
	look_at_collector(run, samplers, past_ns, &costs);
	run->looked_ns = now_ns;
	if (!first) {
		governor_next(&run->governor, &costs, past_ns, &change);
		governor_apply(run, archive, samplers, &change);
	}
	/* CPU time: on a busy machine a look takes longer, but costs no more. */
	took_ns = (governor_cpu_ns() - took_ns) * LOOK_PARTS;
	if (took_ns > SECOND_NS)
		run->next_ns = now_ns + (took_ns < LOOK_LATE_NS ? took_ns : LOOK_LATE_NS);
}
