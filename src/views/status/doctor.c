#include "views/status/doctor.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/install_path.h"
#include "base/files/paths.h"
#include "collect/run/inject.h"
#include "collect/host/proc.h"
#include "collect/perf/perf_events.h"
#include "views/term/format.h"
#include "views/query/json.h"
#include "views/status/doors.h"

#include "tables/tables.h"

#define LITTLE_MEMORY (256u << 20) /* below it, recordings go to the disk: base/files/paths.c */
#define LITTLE_DISK (1ull << 30)

/* ---- findings -------------------------------------------------------------------------------- */

void doctor_found(struct doctor_finding *finding, enum doctor_state state, const char *format, ...)
{
	va_list args;

	finding->state = state;
	va_start(args, format);
	vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
}

void doctor_mend(struct doctor_finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(finding->mend, sizeof(finding->mend), format, args);
	va_end(args);
}

bool doctor_has_library(const char *name)
{
	void *library = install_path_open(name, RTLD_LAZY | RTLD_LOCAL);

	if (library)
		dlclose(library);
	return library != NULL;
}

/* ---- where recordings go --------------------------------------------------------------------- */

static void say_room(struct doctor_finding *finding, const char *path, uint64_t little)
{
	struct statvfs room;
	uint64_t free_bytes;

	if (statvfs(path, &room)) {
		doctor_found(finding, DOCTOR_LIMITED, "%.180s; cannot read its free space: %s",
			     path, strerror(errno));
		return;
	}
	free_bytes = (uint64_t)room.f_bavail * room.f_frsize;
	doctor_found(finding, free_bytes < little ? DOCTOR_LIMITED : DOCTOR_WORKS,
		     "%.180s, %s free", path, format_bytes((double)free_bytes).text);
	if (free_bytes < little)
		doctor_mend(finding,
			    "kymo rm --dead removes recordings of ended programs; KYMO_DIR sets "
			    "another directory, KYMO_BUDGET a smaller budget");
}

static void look_at_memory(struct doctor_finding *finding)
{
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];

	if (paths_root(path, sizeof(path), &err)) {
		doctor_found(finding, DOCTOR_BROKEN, "%.250s", err.text);
		doctor_mend(finding, "set KYMO_DIR to a directory that you own");
		return;
	}
	say_room(finding, path, LITTLE_MEMORY / 4);
	if (paths_root_fallback() == PATHS_TAKEN_BY_ANOTHER) {
		finding->state = DOCTOR_LIMITED;
		doctor_mend(finding,
			    "another user has made /dev/shm/kymo-%u, so recordings are kept here; "
			    "ask the "
			    "administrator to remove that directory, or set KYMO_DIR",
			    (unsigned)geteuid());
	}
	if (paths_root_fallback() == PATHS_TMPFS_IS_SMALL) {
		finding->state = DOCTOR_LIMITED;
		doctor_mend(
			finding,
			"the shared memory is too small, so rows go to the disk; use --shm-size 1g "
			"for a container, or mount -o remount,size=1g /dev/shm");
	}
}

static void look_at_disk(struct doctor_finding *finding)
{
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];

	if (!paths_state(path, sizeof(path), &err)) {
		say_room(finding, path, LITTLE_DISK);
		return;
	}
	doctor_found(finding, DOCTOR_LIMITED, "%.250s", err.text);
	doctor_mend(finding, "set XDG_STATE_HOME to a directory that you own");
}

static void look_at_clock(struct doctor_finding *finding)
{
	bool counter = clock_init() == KYMO_CLOCK_TSC;

	doctor_found(
		finding, DOCTOR_WORKS,
		counter ? "the CPU's time-stamp counter"
			: "CLOCK_MONOTONIC: this CPU has no invariant time-stamp counter, so a "
			  "zone costs twice as much");
}

/* ---- SQL ------------------------------------------------------------------------------------- */

static void look_at_duckdb(struct doctor_finding *finding)
{
	struct kymo_error err = { 0 };
	const char *version;

	if (!tables_library(&version, &err)) {
		doctor_found(finding, DOCTOR_WORKS, "DuckDB %s", version);
		return;
	}
	doctor_found(finding, DOCTOR_BROKEN, "%.250s", err.text);
	doctor_mend(finding, "run make to fetch it, or set KYMO_DUCKDB to a libduckdb.so");
}

/* ---- Python ---------------------------------------------------------------------------------- */

/* "3.11, 3.12": the Python versions of the installed extensions. */
static size_t list_pythons(char *out, size_t out_bytes)
{
	struct buf path = { 0 };
	struct kymo_error err = { 0 };
	char pattern[KYMO_PATH_BYTES + 64];
	glob_t files;
	size_t count = 0;
	int used = 0;

	out[0] = '\0';
	if (!inject_python(&path, &err)) {
		const char *folder = strchr(buf_get(&path), '=') + 1;

		snprintf(pattern, sizeof(pattern), "%.*s/../_trace.cpython-3*.so",
			 (int)strcspn(folder, ":"), folder);
		if (!glob(pattern, 0, NULL, &files)) {
			for (size_t i = 0; i < files.gl_pathc && used < (int)out_bytes - 16; i++) {
				const char *minor = strstr(files.gl_pathv[i], "cpython-3") + 9;

				used += snprintf(out + used, out_bytes - (size_t)used, "%s3.%d",
						 count++ ? ", " : "", atoi(minor));
			}
			globfree(&files);
		}
	}
	buf_fini(&path);
	return count;
}

/* The first line that a command prints; false: it cannot be run, or fails. */
bool doctor_ask(const char *command, char *out, size_t out_bytes)
{
	FILE *pipe = popen(command, "r");
	bool said = pipe && fgets(out, (int)out_bytes, pipe);

	if (said)
		out[strcspn(out, "\n")] = '\0';
	return pipe && !pclose(pipe) && said;
}

static void doctor_look_at_python(struct doctor_finding *finding)
{
	char known[128], here[64];
	size_t count = list_pythons(known, sizeof(known));
	bool is_here = doctor_ask(
		"python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])' "
		"2>/dev/null",
		here, sizeof(here));

	if (!count) {
		doctor_found(finding, DOCTOR_LIMITED, "built without Python");
		doctor_mend(finding, "apt-get install python3-dev, then make");
		return;
	}
	if (!is_here) {
		doctor_found(finding, DOCTOR_ABSENT, "built for %s; no python3 in PATH", known);
		return;
	}
	doctor_found(finding, strstr(known, here) ? DOCTOR_WORKS : DOCTOR_LIMITED,
		     "built for %s; python3 is %s", known, here);
	if (finding->state == DOCTOR_LIMITED)
		doctor_mend(finding,
			    "install the headers of Python %s, then run make; stack samples work "
			    "without",
			    here);
}

static void look_at_torch(struct doctor_finding *finding)
{
	char version[64];

	if (doctor_ask("python3 -c 'import importlib.metadata as m; print(m.version(\"torch\"))' "
		       "2>/dev/null",
		       version, sizeof(version)))
		doctor_found(finding, DOCTOR_WORKS, "PyTorch %s in python3", version);
	else
		doctor_found(finding, DOCTOR_ABSENT,
			     "no torch in python3; a recorded program may use another Python");
}

/* ---- other processes ------------------------------------------------------------------------- */

static long doctor_number_of(const char *path, long without)
{
	char text[32];

	return proc_read(path, text, sizeof(text)) > 0 ? strtol(text, NULL, 10) : without;
}

/* Whether the memory of a child process may be read, as for programs started by kymo run. */
static int try_a_child(void)
{
	static volatile uint64_t here = 4711;
	uint64_t copy = 0;
	struct iovec to = { &copy, sizeof(copy) }, from = { (void *)&here, sizeof(here) };
	pid_t child = fork();
	int rc = 0;

	if (!child) {
		pause();
		_exit(0);
	}
	if (child < 0)
		return errno;
	if (process_vm_readv(child, &to, 1, &from, 1, 0) != sizeof(copy) || copy != 4711)
		rc = errno ? errno : EIO;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return rc;
}

static void look_at_stacks(struct doctor_finding *finding)
{
	long scope = doctor_number_of("/proc/sys/kernel/yama/ptrace_scope", 0);
	int rc = try_a_child();

	if (rc) {
		doctor_found(finding, DOCTOR_LIMITED, "process_vm_readv is not permitted: %s",
			     strerror(rc));
		doctor_mend(
			finding,
			"in a container: --cap-add SYS_PTRACE --security-opt seccomp=unconfined");
	} else if (scope >= 1 && geteuid()) {
		doctor_found(finding, DOCTOR_LIMITED,
			     "only of programs started by kymo run: ptrace_scope is %ld", scope);
		doctor_mend(finding,
			    "sudo sysctl kernel.yama.ptrace_scope=0, or sudo kymo attach PID");
	} else {
		doctor_found(finding, DOCTOR_WORKS, "of %s",
			     geteuid() ? "all your programs" : "all programs, as root");
	}
}

static void look_at_native(struct doctor_finding *finding)
{
	if (doctor_has_library("libdw.so.1")) {
		doctor_found(finding, DOCTOR_WORKS, "libdw");
		return;
	}
	doctor_found(finding, DOCTOR_ABSENT,
		     "libdw.so.1 not found: kymo backtrace --native shows no C frames");
	doctor_mend(finding, "apt-get install libdw1 (elfutils)");
}

/* Samples of C and C++; the message has the setting that allows them. */
static void look_at_perf(struct doctor_finding *finding)
{
	struct kymo_error err = { 0 };
	long level = doctor_number_of("/proc/sys/kernel/perf_event_paranoid", -1);

	if (!perf_events_check(&err)) {
		doctor_found(finding, DOCTOR_WORKS, "perf events, perf_event_paranoid is %ld",
			     level);
		return;
	}
	doctor_found(finding, DOCTOR_ABSENT, "no native stacks: perf_event_open: %s",
		     strerror(err.code));
	doctor_mend(finding, "%s",
		    level > 2 ? "sudo sysctl kernel.perf_event_paranoid=2"
			      : "allow perf_event_open; in Docker: --cap-add PERFMON");
}

static void look_at_viewer(struct doctor_finding *finding)
{
	if (doctor_has_library("libmicrohttpd.so.12")) {
		doctor_found(finding, DOCTOR_WORKS, "libmicrohttpd");
		return;
	}
	doctor_found(finding, DOCTOR_ABSENT,
		     "libmicrohttpd.so.12 not found: kymo serve cannot start");
	doctor_mend(finding, "apt-get install libmicrohttpd12");
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void look_at_pressure(struct doctor_finding *finding)
{
	if (!access("/proc/pressure/cpu", R_OK))
		doctor_found(finding, DOCTOR_WORKS, "/proc/pressure");
	else
		doctor_found(
			finding, DOCTOR_ABSENT,
			"no /proc/pressure: no figures on waits for CPU, memory and disk; boot "
			"the kernel with psi=1");
}

static void look_at_gpu(struct doctor_finding *finding)
{
	if (doctor_has_library("libnvidia-ml.so.1"))
		doctor_found(finding, DOCTOR_WORKS, "NVML");
	else
		doctor_found(finding, DOCTOR_ABSENT,
			     "libnvidia-ml.so.1 not found: no NVIDIA driver");
}

static uint32_t count_platforms(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL);
	int (*list)(uint32_t, void *, uint32_t *) = NULL;
	uint32_t count = 0;

	if (!library)
		return UINT32_MAX;
	*(void **)&list = dlsym(library, "clGetPlatformIDs");
	if (list && list(0, NULL, &count))
		count = 0;
	/* Drivers start threads of their own, so the library is not unloaded. */
	return count;
}

static void look_at_opencl(struct doctor_finding *finding)
{
	uint32_t platforms = count_platforms();

	if (platforms == UINT32_MAX || !platforms) {
		doctor_found(finding, DOCTOR_ABSENT,
			     platforms ? "libOpenCL.so.1 not found"
				       : "libOpenCL.so.1 has no driver");
		doctor_mend(finding, "apt-get install ocl-icd-libopencl1 pocl-opencl-icd (a driver "
				     "for the CPU)");
		return;
	}
	doctor_found(finding, DOCTOR_WORKS, "%u platform%s", platforms, platforms == 1 ? "" : "s");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static const struct {
	const char *name, *what;
	void (*look)(struct doctor_finding *);
} checks[] = {
	{ "memory", "live recordings", look_at_memory },
	{ "disk", "ended recordings", look_at_disk },
	{ "clock", "times of zones", look_at_clock },
	{ "sql", "query, report, compare", look_at_duckdb },
	{ "python", "kymo run --python", doctor_look_at_python },
	{ "torch", "kymo run --torch", look_at_torch },
	{ "stacks", "backtrace and samples", look_at_stacks },
	{ "native", "backtrace --native", look_at_native },
	{ "perf", "native samples", look_at_perf },
	{ "viewer", "kymo serve", look_at_viewer },
	{ "pressure", "host.cgroup", look_at_pressure },
	{ "gpu", "host.gpu", look_at_gpu },
	{ "opencl", "kymo run --device", look_at_opencl },
};

size_t doctor_look(struct doctor_finding *out)
{
	size_t count = sizeof(checks) / sizeof(checks[0]);

	for (size_t i = 0; i < count; i++) {
		out[i] = (struct doctor_finding){ .name = checks[i].name, .what = checks[i].what };
		checks[i].look(&out[i]);
	}
	return count + doors_look(out + count);
}

static const struct {
	const char *word;
	enum text_paint paint;
} states[] = {
	[DOCTOR_WORKS] = { "works", TEXT_GREEN },
	[DOCTOR_ABSENT] = { "absent", TEXT_DIM },
	[DOCTOR_LIMITED] = { "limited", TEXT_YELLOW },
	[DOCTOR_BROKEN] = { "broken", TEXT_RED },
};

void doctor_print(const struct doctor_finding *findings, size_t count,
		  const struct text_style *style, FILE *out)
{
	for (size_t i = 0; i < count; i++) {
		const struct doctor_finding *one = &findings[i];
		struct buf line = { 0 }, visible = { 0 };

		fprintf(out, "%-9s %s%-8s%s ", one->name,
			text_paint(style, states[one->state].paint), states[one->state].word,
			text_plain(style));
		text_visible(&visible, one->text, strlen(one->text));
		buf_print(&line, "%s (%s)", buf_get(&visible), one->what);
		text_paragraph(out, buf_get(&line), 19, "", false, style);
		if (one->mend[0])
			text_paragraph(out, one->mend, 19, "                   ", false, style);
		buf_fini(&line);
		buf_fini(&visible);
	}
}

void doctor_print_json(const struct doctor_finding *findings, size_t count, FILE *out)
{
	struct buf buf = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct doctor_finding *one = &findings[i];
		const struct {
			const char *key, *text;
		} members[] = { { "name", one->name },
				{ "for", one->what },
				{ "state", states[one->state].word },
				{ "found", one->text },
				{ "mend", one->mend } };

		buf_text(&buf, i ? ",\n{" : "[\n{");
		for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++) {
			buf_print(&buf, "%s\"%s\":", k ? "," : "", members[k].key);
			json_text(&buf, members[k].text, strlen(members[k].text));
		}
		buf_char(&buf, '}');
	}
	buf_text(&buf, "\n]\n");
	fputs(buf_get(&buf), out);
	buf_fini(&buf);
}
