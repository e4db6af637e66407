#include "collect/host/host.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/schema.h"
#include "collect/host/proc.h"
#include "record/record.h"

#define TEXT_BYTES (256u << 10)
#define CPUS_MOST 4096
#define NAMESPACES_MOST 16
#define SHORTEST_NS 10000000u /* shorter intervals are below the kernel's tick */

/* ---- a process ------------------------------------------------------------------------------- */

static double percent(uint64_t part, double whole)
{
	return whole > 0 ? 100.0 * (double)part / whole : 0;
}

/* starttime counts from boot, including suspended time. */
static uint64_t host_age_ns(const struct proc_stat *stat)
{
	struct timespec now;
	double age;

	clock_gettime(CLOCK_BOOTTIME, &now);
	age = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 -
	      (double)stat->starttime / (double)sysconf(_SC_CLK_TCK);
	return age > 0 ? (uint64_t)(age * 1e9) : 0;
}

/* In percent of one core, since the last sample; for a new process, since its start. */
static double cpu_percent(struct family_member *member, const struct proc_stat *stat,
			  uint64_t now_ns)
{
	uint64_t ticks = stat->user_ticks + stat->system_ticks;
	uint64_t spent = ticks > member->cpu_ticks ? ticks - member->cpu_ticks : 0;
	uint64_t past_ns = member->sampled_ns ? now_ns - member->sampled_ns : host_age_ns(stat);

	if (past_ns < SHORTEST_NS)
		return 0;
	member->cpu_ticks = ticks;
	member->sampled_ns = now_ns;
	return percent(spent, (double)past_ns * 1e-9 * (double)sysconf(_SC_CLK_TCK));
}

static struct schema_host_process_row host_process_row(struct family_member *member,
						       const struct proc_stat *stat)
{
	struct schema_host_process_row row;

	memset(&row, 0, sizeof(row));
	row.ts_ticks = kymo_ticks();
	row.pid = member->pid;
	row.rss_bytes = stat->rss_bytes;
	row.vms_bytes = stat->vms_bytes;
	row.minor_faults = stat->minor_faults;
	row.major_faults = stat->major_faults;
	host_threads_switches(&member->threads, &row.voluntary_switches, &row.involuntary_switches);
	row.threads = stat->threads;
	row.peak_bytes = member->peak_bytes;
	row.cpu_ns = proc_ticks_ns(stat->user_ticks + stat->system_ticks);
	row.children_cpu_ns = proc_ticks_ns(stat->children_ticks);
	row.run_delay_ns = host_threads_delay_ns(&member->threads);
	return row;
}

/* The kernel's own peak: memory that was taken and freed between two samples counts. */
static void learn_peak(struct family_member *member)
{
	char path[48], text[4096];
	uint64_t peak_bytes;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)member->pid);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return;
	peak_bytes = proc_field(text, "VmHWM:", 0) * 1024u;
	if (peak_bytes > member->peak_bytes)
		member->peak_bytes = peak_bytes;
}

static void sample_io(pid_t pid, const struct proc_stat *stat)
{
	struct schema_host_io_row row;
	char path[48], text[512];

	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	if (proc_read(path, text, sizeof(text)) <= 0)
		return; /* not readable for other users */
	memset(&row, 0, sizeof(row));
	row.ts_ticks = kymo_ticks();
	row.pid = pid;
	row.read_bytes = proc_field(text, "read_bytes:", 0);
	row.write_bytes = proc_field(text, "write_bytes:", 0);
	row.read_calls = proc_field(text, "syscr:", 0);
	row.write_calls = proc_field(text, "syscw:", 0);
	row.moved_bytes = proc_field(text, "rchar:", 0) + proc_field(text, "wchar:", 0);
	row.kernel_ns = proc_ticks_ns(stat->system_ticks);
	kymo__append(SCHEMA_HOST_IO, &row);
}

static void sample_process(struct family_member *member, uint64_t now_ns)
{
	struct schema_host_process_row row;
	struct proc_stat stat;

	if (member->gone || proc_stat(member->pid, &stat) || stat.starttime != member->starttime)
		return;
	if (stat.state == 'Z' || stat.state == 'X')
		return;
	host_threads_look(&member->threads, member->pid, now_ns);
	learn_peak(member);
	member->rss_bytes = stat.rss_bytes;
	row = host_process_row(member, &stat);
	row.cpu_pct = cpu_percent(member, &stat, now_ns);
	kymo__append(SCHEMA_HOST_PROCESS, &row);
	sample_io(member->pid, &stat);
}

void host_last(struct host *host, struct family *family, const struct rusage *usage)
{
	struct family_member *target = &family->members[0];
	struct schema_host_process_row row;
	struct proc_stat stat;

	cgroup_last(&host->cgroup, clock_monotonic_ns());
	if (!family->count || proc_stat(target->pid, &stat) || stat.starttime != target->starttime)
		return;
	row = host_process_row(target, &stat);
	row.cpu_pct = cpu_percent(target, &stat, clock_monotonic_ns());
	/* A zombie has no memory: its last is that of the last sample, 0 if there was none. */
	row.rss_bytes = target->rss_bytes;
	row.family_peak_bytes = (uint64_t)usage->ru_maxrss * 1024u;
	if (!stat.children_faults && row.family_peak_bytes > row.peak_bytes)
		row.peak_bytes = row.family_peak_bytes;
	kymo__append(SCHEMA_HOST_PROCESS, &row);
}

/* ---- the host -------------------------------------------------------------------------------- */

int host_parse_cpu(const char *line, struct host_cpu *out)
{
	/* user nice system idle iowait irq softirq steal; guest is part of user */
	uint64_t field[8] = { 0 };
	int cpu = -1;
	char *at;

	if (strncmp(line, "cpu", 3))
		return -2;
	at = (char *)line + 3;
	if (isdigit((unsigned char)*at))
		cpu = (int)strtol(at, &at, 10);
	memset(out, 0, sizeof(*out));
	for (int i = 0; i < 8; i++) {
		field[i] = strtoull(at, &at, 10);
		out->all += field[i];
	}
	out->iowait = field[4];
	out->busy = out->all - field[3] - field[4];
	return cpu < CPUS_MOST ? cpu : -2;
}

static struct host_cpu *cpu_place(struct host *host, size_t index)
{
	if (!grow_zeroed((void **)&host->cpus, &host->cpu_count, index + 1, sizeof(*host->cpus)))
		return NULL;
	return &host->cpus[index];
}

/* Time in which some task waited for a cpu, in µs since boot; 0: not available. */
static uint64_t host_read_pressure(void)
{
	char text[256];
	const char *total;

	if (proc_read("/proc/pressure/cpu", text, sizeof(text)) <= 0)
		return 0;
	total = strstr(text, "total=");
	return total ? strtoull(total + 6, NULL, 10) : 0;
}

static void append_cpu(int cpu, const struct host_cpu *before, const struct host_cpu *now,
		       double pressure_pct)
{
	struct schema_host_cpu_row row;
	double all = now->all > before->all ? (double)(now->all - before->all) : 0;

	if (!before->all || all <= 0)
		return; /* the first sample, or no tick since the last one */
	memset(&row, 0, sizeof(row));
	row.ts_ticks = kymo_ticks();
	row.cpu = cpu;
	row.busy_pct = percent(now->busy > before->busy ? now->busy - before->busy : 0, all);
	row.iowait_pct = percent(now->iowait > before->iowait ? now->iowait - before->iowait : 0,
				 all);
	row.pressure_pct = pressure_pct;
	kymo__append(SCHEMA_HOST_CPU, &row);
}

static void sample_cpus(struct host *host, uint64_t now_ns)
{
	uint64_t pressure_us = host_read_pressure();
	uint64_t since_ns = host->sampled_ns ? now_ns - host->sampled_ns : 0;
	double pressure_pct = percent(pressure_us - host->pressure_us, (double)since_ns / 1000.0);
	struct host_cpu now;

	if (proc_read("/proc/stat", host->text, TEXT_BYTES) <= 0)
		return;
	for (const char *line = host->text; line && *line; line = strchr(line, '\n')) {
		struct host_cpu *place;
		int cpu;

		line += *line == '\n';
		cpu = host_parse_cpu(line, &now);
		place = cpu >= -1 ? cpu_place(host, (size_t)(cpu + 1)) : NULL;
		if (!place)
			break; /* the lines of cpus come first */
		append_cpu(cpu, place, &now, cpu < 0 ? pressure_pct : 0);
		*place = now;
	}
	host->pressure_us = pressure_us;
}

int host_parse_interface(const char *line, char *out_name, size_t name_bytes, uint64_t *out_rx,
			 uint64_t *out_tx)
{
	const char *colon = strchr(line, ':');
	const char *end = strchr(line, '\n');
	uint64_t field[9];
	char *at;
	size_t length;

	while (*line == ' ')
		line++;
	if (!colon || (end && colon > end))
		return -1;
	length = (size_t)(colon - line);
	if (!length || length >= name_bytes)
		return -1;
	memcpy(out_name, line, length);
	out_name[length] = '\0';
	at = (char *)colon + 1;
	for (int i = 0; i < 9; i++)
		field[i] = strtoull(at, &at, 10);
	*out_rx = field[0];
	*out_tx = field[8];
	return 0;
}

static void sample_network(struct host *host, pid_t pid)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/net/dev", (int)pid);
	if (proc_read(path, host->text, TEXT_BYTES) <= 0)
		return;
	for (const char *line = host->text; line && *line; line = strchr(line, '\n')) {
		struct schema_host_network_row row;

		line += *line == '\n';
		memset(&row, 0, sizeof(row));
		if (host_parse_interface(line, row.interface, sizeof(row.interface), &row.rx_bytes,
					 &row.tx_bytes))
			continue;
		row.ts_ticks = kymo_ticks();
		row.pid = pid;
		kymo__append(SCHEMA_HOST_NETWORK, &row);
	}
}

static uint64_t network_namespace(struct family_member *member)
{
	char path[48];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)member->pid);
	/* Not readable for other users; assumed to be the program's own. */
	if (!member->network_namespace)
		member->network_namespace = stat(path, &st) ? 1 : (uint64_t)st.st_ino;
	return member->network_namespace;
}

/* Once for each network namespace of the processes. */
static void sample_networks(struct host *host, struct family *family)
{
	uint64_t sampled[NAMESPACES_MOST];
	size_t count = 0;

	for (size_t i = 0; i < family->count && count < NAMESPACES_MOST; i++) {
		bool done = family->members[i].gone;

		for (size_t k = 0; k < count && !done; k++)
			done = sampled[k] == network_namespace(&family->members[i]);
		if (done)
			continue;
		sampled[count++] = network_namespace(&family->members[i]);
		sample_network(host, family->members[i].pid);
	}
}

int host_init(struct host *host)
{
	memset(host, 0, sizeof(*host));
	host->text = malloc(TEXT_BYTES);
	return host->text ? 0 : -ENOMEM;
}

void host_sample(struct host *host, struct family *family)
{
	uint64_t now_ns = clock_monotonic_ns();

	for (size_t i = 0; i < family->count; i++) {
		sample_process(&family->members[i], now_ns);
		if (!family->members[i].gone)
			cgroup_sample(&host->cgroup, family->members[i].pid, now_ns);
	}
	cgroup_next(&host->cgroup);
	if (host->text) {
		sample_cpus(host, now_ns);
		sample_networks(host, family);
	}
	host_others_look(&host->others, family, now_ns);
	host->sampled_ns = now_ns;
}

void host_fini(struct host *host)
{
	host_others_fini(&host->others);
	free(host->cpus);
	free(host->text);
	memset(host, 0, sizeof(*host));
}
