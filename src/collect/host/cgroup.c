#include "collect/host/cgroup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/schema.h"
#include "collect/host/proc.h"
#include "record/record.h"

#define ROOT "/sys/fs/cgroup"
#define NEAR_NO_LIMIT (1ull << 62)
#define ALL_EVERY 16u /* readings */

static const char *const resources[CGROUP_RESOURCES] = { "cpu", "memory", "io" };

/* ---- texts ----------------------------------------------------------------------------------- */

/* "cpu,cpuacct" contains "cpu". */
static bool names(const char *list, size_t bytes, const char *controller)
{
	size_t length = strlen(controller);

	for (const char *end = list + bytes; list < end;) {
		const char *comma = memchr(list, ',', (size_t)(end - list));
		size_t word = (size_t)((comma ? comma : end) - list);

		if (word == length && !memcmp(list, controller, length))
			return true;
		list += word + 1;
	}
	return false;
}

/* A path with ".." is outside of our namespace and not readable; the root is used instead. */
static void take_path(const char *from, size_t bytes, char *out)
{
	out[0] = '\0';
	if (!bytes || *from != '/' || bytes >= CGROUP_PATH_BYTES)
		return;
	memcpy(out, from, bytes);
	out[bytes] = '\0';
	if (strstr(out, "/.."))
		strcpy(out, "/");
}

void cgroup_parse_paths(const char *text, struct cgroup_paths *out)
{
	memset(out, 0, sizeof(*out));
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *first, *second, *end;

		line += *line == '\n';
		end = line + strcspn(line, "\n");
		first = memchr(line, ':', (size_t)(end - line));
		second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
		if (!second)
			continue;
		if (second == first + 1)
			take_path(second + 1, (size_t)(end - second - 1), out->unified);
		else if (names(first + 1, (size_t)(second - first - 1), "memory"))
			take_path(second + 1, (size_t)(end - second - 1), out->memory);
		else if (names(first + 1, (size_t)(second - first - 1), "cpu"))
			take_path(second + 1, (size_t)(end - second - 1), out->cpu);
	}
}

static uint64_t total_of(const char *text, const char *kind)
{
	const char *line = text;
	const char *total, *end;

	while (line && strncmp(line, kind, strlen(kind)) != 0) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	total = line ? strstr(line, "total=") : NULL;
	end = line ? strchr(line, '\n') : NULL;
	if (!total || (end && total > end))
		return CGROUP_NONE;
	return strtoull(total + 6, NULL, 10);
}

void cgroup_parse_pressure(const char *text, struct cgroup_pressure *out)
{
	out->some_us = total_of(text, "some ");
	out->full_us = total_of(text, "full ");
}

uint64_t cgroup_parse_limit(const char *text)
{
	char *end;
	uint64_t limit = strtoull(text, &end, 10);

	return end == text || limit >= NEAR_NO_LIMIT ? CGROUP_NONE : limit;
}

double cgroup_parse_cpu_max(const char *text)
{
	char *at;
	double quota = (double)strtoull(text, &at, 10), period;

	if (at == text)
		return 0; /* "max 100000" */
	period = (double)strtoull(at, NULL, 10);
	return period > 0 ? quota / period : 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool cgroup_read_of(const char *directory, const char *file, char *out, size_t out_bytes)
{
	char path[2 * CGROUP_PATH_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	return proc_read(path, out, out_bytes) > 0;
}

/* The directory of a group, or the root if the path does not exist: a container sees its own group
   as the root. */
static bool find_group(const char *mount, const char *path, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s%s", mount, path);
	if (!access(out, F_OK))
		return true;
	snprintf(out, out_bytes, "%s", mount);
	return !access(out, F_OK);
}

/* Moves to the parent group, up to the mount. */
static bool climb(char *directory, const char *mount)
{
	char *slash = strrchr(directory, '/');

	if (!slash || (size_t)(slash - directory) < strlen(mount))
		return false;
	*slash = '\0';
	return true;
}

static void cgroup_read_pressure(const char *directory, struct cgroup_reading *out)
{
	char file[32], text[512];

	for (int i = 0; i < CGROUP_RESOURCES; i++) {
		snprintf(file, sizeof(file), "%s.pressure", resources[i]);
		if (cgroup_read_of(directory, file, text, sizeof(text)))
			cgroup_parse_pressure(text, &out->pressure[i]);
	}
}

static void cgroup_least(uint64_t *limit, uint64_t other)
{
	if (other < *limit)
		*limit = other;
}

static void least_cores(double *limit, double other)
{
	if (other > 0 && (*limit <= 0 || other < *limit))
		*limit = other;
}

static void read_v2(char *directory, const char *mount, struct cgroup_reading *out)
{
	char text[4096];

	if (cgroup_read_of(directory, "memory.current", text, sizeof(text)))
		out->memory_bytes = strtoull(text, NULL, 10);
	if (cgroup_read_of(directory, "memory.events", text, sizeof(text)))
		out->oom_kills = proc_field(text, "oom_kill ", 0);
	if (cgroup_read_of(directory, "cpu.stat", text, sizeof(text)) &&
	    strstr(text, "throttled_usec")) {
		out->throttled_count = proc_field(text, "nr_throttled ", 0);
		out->throttled_ns = proc_field(text, "throttled_usec ", 0) * 1000u;
	}
	cgroup_read_pressure(directory, out);
	do {
		if (cgroup_read_of(directory, "memory.max", text, sizeof(text)))
			cgroup_least(&out->memory_limit_bytes, cgroup_parse_limit(text));
		if (cgroup_read_of(directory, "cpu.max", text, sizeof(text)))
			least_cores(&out->cpu_limit, cgroup_parse_cpu_max(text));
	} while (climb(directory, mount));
}

static void read_v1_memory(char *directory, const char *mount, struct cgroup_reading *out)
{
	char text[256];

	if (cgroup_read_of(directory, "memory.usage_in_bytes", text, sizeof(text)))
		out->memory_bytes = strtoull(text, NULL, 10);
	if (cgroup_read_of(directory, "memory.oom_control", text, sizeof(text)))
		out->oom_kills = proc_field(text, "oom_kill ", 0);
	do {
		if (cgroup_read_of(directory, "memory.limit_in_bytes", text, sizeof(text)))
			cgroup_least(&out->memory_limit_bytes, cgroup_parse_limit(text));
	} while (climb(directory, mount));
}

static void read_v1_cpu(char *directory, const char *mount, struct cgroup_reading *out)
{
	char text[1024], period[64];

	if (cgroup_read_of(directory, "cpu.stat", text, sizeof(text))) {
		out->throttled_count = proc_field(text, "nr_throttled ", 0);
		out->throttled_ns = proc_field(text, "throttled_time ", 0);
	}
	do {
		if (cgroup_read_of(directory, "cpu.cfs_quota_us", text, sizeof(text)) &&
		    cgroup_read_of(directory, "cpu.cfs_period_us", period, sizeof(period)) &&
		    text[0] != '-') {
			text[strcspn(text, "\n")] = ' ';
			strncat(text, period, sizeof(text) - strlen(text) - 1);
			least_cores(&out->cpu_limit, cgroup_parse_cpu_max(text));
		}
	} while (climb(directory, mount));
}

void cgroup_read(const char *root, const struct cgroup_paths *paths, struct cgroup_reading *out)
{
	cgroup_read_some(root, paths, CGROUP_ALL_HIERARCHIES, out);
}

static bool is_equal_reading(const struct cgroup_reading *a, const struct cgroup_reading *b)
{
	return a->memory_bytes == b->memory_bytes &&
	       a->memory_limit_bytes == b->memory_limit_bytes && a->cpu_limit == b->cpu_limit &&
	       a->throttled_ns == b->throttled_ns && a->throttled_count == b->throttled_count &&
	       a->oom_kills == b->oom_kills &&
	       !memcmp(a->pressure, b->pressure, sizeof(a->pressure));
}

uint32_t cgroup_read_some(const char *root, const struct cgroup_paths *paths, uint32_t hierarchies,
			  struct cgroup_reading *out)
{
	static const struct {
		const char *mount; /* under the root */
		size_t path; /* in struct cgroup_paths */
		void (*read)(char *directory, const char *mount, struct cgroup_reading *out);
	} rows[] = {
		{ "", offsetof(struct cgroup_paths, unified), read_v2 },
		{ "/unified", offsetof(struct cgroup_paths, unified), read_v2 },
		{ "/memory", offsetof(struct cgroup_paths, memory), read_v1_memory },
		{ "/cpu", offsetof(struct cgroup_paths, cpu), read_v1_cpu },
		{ "/cpu,cpuacct", offsetof(struct cgroup_paths, cpu), read_v1_cpu },
	};
	char mount[CGROUP_PATH_BYTES], directory[2 * CGROUP_PATH_BYTES];
	uint32_t told = 0;

	memset(out, 0xff, sizeof(*out)); /* CGROUP_NONE */
	out->cpu_limit = 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *path = (const char *)paths + rows[i].path;
		struct cgroup_reading before = *out;

		snprintf(mount, sizeof(mount), "%.200s%s", root, rows[i].mount);
		if ((hierarchies >> i & 1) && *path &&
		    find_group(mount, path, directory, sizeof(directory)))
			rows[i].read(directory, mount, out);
		if (!is_equal_reading(&before, out))
			told |= 1u << i;
	}
	return told;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Uses the pressure of the host if the group has none. */
static void add_host_pressure(struct cgroup_reading *reading)
{
	char path[64], text[512];

	for (int i = 0; i < CGROUP_RESOURCES; i++) {
		snprintf(path, sizeof(path), "/proc/pressure/%s", resources[i]);
		if (reading->pressure[i].some_us == CGROUP_NONE &&
		    proc_read(path, text, sizeof(text)) > 0)
			cgroup_parse_pressure(text, &reading->pressure[i]);
	}
}

/* The share of the time since the last sample; below 0: unknown. */
static double share(uint64_t before_us, uint64_t now_us, uint64_t past_ns)
{
	if (before_us == CGROUP_NONE || now_us == CGROUP_NONE || now_us < before_us || !past_ns)
		return -1;
	/* The two clocks are not read at the same time. */
	return fmin(100.0, 100.0 * (double)(now_us - before_us) * 1000.0 / (double)past_ns);
}

static uint64_t cgroup_known(uint64_t value, uint64_t otherwise)
{
	return value == CGROUP_NONE ? otherwise : value;
}

static void cgroup_append(const struct cgroup_group *group, const struct cgroup_reading *now,
			  uint64_t past_ns)
{
	struct schema_host_cgroup_row row;
	const char *path = group->paths.memory[0] ? group->paths.memory : group->paths.unified;
	size_t length = strlen(path), most = sizeof(row.path) - 1;

	memset(&row, 0, sizeof(row));
	row.ts_ticks = kymo_ticks();
	row.memory_bytes = cgroup_known(now->memory_bytes, 0);
	row.memory_limit_bytes = cgroup_known(now->memory_limit_bytes, 0);
	row.cpu_limit = now->cpu_limit;
	row.throttled_ns = cgroup_known(now->throttled_ns, 0);
	row.throttled_count = cgroup_known(now->throttled_count, 0);
	row.oom_kills = cgroup_known(now->oom_kills, 0);
	for (int i = 0; i < CGROUP_RESOURCES; i++) {
		const struct cgroup_pressure *before = &group->last.pressure[i];

		row.pressure_pct[i][0] = share(before->some_us, now->pressure[i].some_us, past_ns);
		row.pressure_pct[i][1] = share(before->full_us, now->pressure[i].full_us, past_ns);
	}
	row.pid = group->pid;
	/* The end of the path is more specific. */
	memcpy(row.path, length > most ? path + length - most : path,
	       length > most ? most : length);
	kymo__append(SCHEMA_HOST_CGROUP, &row);
}

static struct cgroup_group *group_of(struct cgroup *cgroup, const struct cgroup_paths *paths)
{
	struct cgroup_group *group;

	for (size_t i = 0; i < cgroup->count; i++)
		if (!memcmp(&cgroup->groups[i].paths, paths, sizeof(*paths)))
			return &cgroup->groups[i];
	if (cgroup->count == CGROUP_GROUPS)
		return NULL;
	group = &cgroup->groups[cgroup->count++];
	memset(group, 0, sizeof(*group));
	group->paths = *paths;
	return group;
}

/* Controllers are seldom enabled while a program runs, so that hierarchies without them are read
   again only from time to time. */
static void sample_group(struct cgroup_group *group, uint64_t now_ns)
{
	bool all = group->reads++ % ALL_EVERY == 0;
	struct cgroup_reading now;
	uint32_t told = cgroup_read_some(ROOT, &group->paths,
					 all ? CGROUP_ALL_HIERARCHIES : group->hierarchies, &now);

	if (all)
		group->hierarchies = told;
	add_host_pressure(&now);
	cgroup_append(group, &now, group->read_ns ? now_ns - group->read_ns : 0);
	group->last = now;
	group->read_ns = now_ns;
}

void cgroup_last(struct cgroup *cgroup, uint64_t now_ns)
{
	for (size_t i = 0; i < cgroup->count; i++)
		sample_group(&cgroup->groups[i], now_ns);
}

void cgroup_sample(struct cgroup *cgroup, pid_t pid, uint64_t now_ns)
{
	struct cgroup_paths paths;
	struct cgroup_group *group;
	char path[48], text[8192];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return;
	cgroup_parse_paths(text, &paths);
	group = group_of(cgroup, &paths);
	if (!group || group->sample == cgroup->samples + 1)
		return;
	group->sample = cgroup->samples + 1;
	group->pid = pid;
	sample_group(group, now_ns);
}

void cgroup_next(struct cgroup *cgroup)
{
	cgroup->samples++;
}
