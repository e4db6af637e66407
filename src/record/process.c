/*
 * On and off. One state word decides: rows are written only in READY. The thread that changes OFF
 * to STARTING sets recording up; other threads drop their rows meanwhile, because nothing here may
 * block. The child of a fork starts in FORKED and creates its own files at its first row.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/clock.h"
#include "base/files/paths.h"
#include "base/program_name.h"
#include "base/settings.h"
#include "kymo/marked.h"
#include "record/record.h"

#define RUN_DIR_BYTES (KYMO_PATH_BYTES - 128) /* leaves room for names of files */

enum state { STATE_OFF, STATE_STARTING, STATE_READY, STATE_FORKED, STATE_FAILED };

/* Defined by kymo's own program, which must ignore an inherited environment of a recorded
   program. */
extern const int kymo__not_by_environment __attribute__((weak));

static const uint32_t nothing_is_on;
const volatile uint32_t *kymo__on = &nothing_is_on;

struct kymo__process kymo__process;
static uint32_t state; /* enum state; atomic */
static bool refused; /* KYMO=off */
static bool standby; /* KYMO=standby: only the control page */
static struct kymo__mapfile control_file;
static uint64_t lost_before_control[KYMO_DROP_CAUSE_COUNT];
static uint64_t next_pair_ticks;

/* ---- environment --------------------------------------------------------------------------- */

/* A single write, so that it stays one line. */
static void complain(const char *what)
{
	char line[1100];
	int bytes = snprintf(line, sizeof(line), "kymo: %s\n", what);

	if (bytes > 0 && write(STDERR_FILENO, line, (size_t)bytes) < 0)
		return; /* no way to report it */
}

static void say_nothing(const char *what)
{
	(void)what;
}

static bool word_is(const char *word, const char *const *list)
{
	for (; word && *list; list++)
		if (!strcasecmp(word, *list))
			return true;
	return false;
}

static uint64_t size_of(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	switch (*end) {
	case 'k':
	case 'K': value *= 1024.0; break;
	case 'm':
	case 'M': value *= 1024.0 * 1024.0; break;
	case 'g':
	case 'G': value *= 1024.0 * 1024.0 * 1024.0; break;
	default: break;
	}
	return value > 0 && value < 1e18 ? (uint64_t)value : 0;
}

/* "1G", or "mem=1G,disk=4G" as the collector writes it. */
static uint64_t budget_from(const char *text)
{
	const char *memory = text ? strstr(text, "mem=") : NULL;
	uint64_t bytes = 0;

	if (memory)
		bytes = size_of(memory + 4);
	else if (text && !strstr(text, "disk="))
		bytes = size_of(text);
	return bytes ? bytes : 1ull << 30;
}

static void read_settings(struct kymo_control *control, enum kymo_role role)
{
	static const char *const off[] = { "off", "0", NULL };

	/* The command that started the collector has checked its settings. */
	settings_begin(control, role == KYMO_ROLE_TARGET ? complain : say_nothing);
	if (standby)
		control->on = 0; /* for `kymo config` to turn on */
	if (role != KYMO_ROLE_TARGET)
		/* KYMO_ZONES=off is for the program, not for the collector */
		control->on = KYMO_ON_ZONES;
	kymo__process.totals = !word_is(secure_getenv("KYMO_TOTALS"), off);
	kymo__process.budget_bytes = budget_from(secure_getenv("KYMO_BUDGET"));
}

/* ---- identity ------------------------------------------------------------------------------ */

static size_t process_read_file(const char *path, char *out, size_t out_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes;

	memset(out, 0, out_bytes);
	if (fd < 0)
		return 0;
	bytes = read(fd, out, out_bytes - 2);
	close(fd);
	return bytes > 0 ? (size_t)bytes : 0;
}

static void process_describe(struct kymo_control *control, enum kymo_role role)
{
	struct stat ns;
	size_t bytes = process_read_file("/proc/self/cmdline", control->argv,
					 sizeof(control->argv));
	ssize_t exe = readlink("/proc/self/exe", control->exe, sizeof(control->exe) - 1);

	if (exe < 0)
		control->exe[0] = '\0';
	program_name(control->argv, bytes, control->program, sizeof(control->program));
	control->pid = getpid();
	control->ppid = getppid();
	control->starttime = paths_starttime(control->pid);
	control->pid_namespace = stat("/proc/self/ns/pid", &ns) ? 0 : (uint64_t)ns.st_ino;
	if (!kymo__process.rank_inherited)
		kymo__process_take_rank(control);
	control->role = role;
}

/* ---- the run of this process ---- */

static void fill_run_file(struct kymo_run_file *run, const struct kymo_control *control)
{
	memcpy(run->file.magic, KYMO_MAGIC_RUN, 8);
	run->file.version = KYMO_FORMAT_VERSION;
	run->file.head_bytes = sizeof(*run);
	run->clock_kind = control->clock_kind;
	run->epoch = control->pairs[0];
	run->target_pid = control->pid;
	run->target_starttime = control->starttime;
	run->budget_memory_bytes = kymo__process.budget_bytes;
	run->keep = control->keep;
	snprintf(run->kymo_version, sizeof(run->kymo_version), "%s", KYMO_VERSION);
	gethostname(run->host, sizeof(run->host) - 1);
	process_read_file("/proc/sys/kernel/random/boot_id", run->boot_id, sizeof(run->boot_id));
	run->boot_id[strcspn(run->boot_id, "\n")] = '\0';
	memcpy(run->program, control->program, sizeof(run->program));
	memcpy(run->argv, control->argv, sizeof(run->argv));
	if (!getcwd(run->cwd, sizeof(run->cwd)))
		run->cwd[0] = '\0';
}

static int process_write_run_file(const struct kymo_control *control)
{
	/* too large for a small stack; one writer: STATE_STARTING */
	static struct kymo_run_file run;
	char path[KYMO_PATH_BYTES + 8];
	ssize_t written;
	int fd;

	memset(&run, 0, sizeof(run));
	fill_run_file(&run, control);
	snprintf(path, sizeof(path), "%s/run", kymo__process.run_dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	written = write(fd, &run, sizeof(run));
	close(fd);
	return written == (ssize_t)sizeof(run) ? 0 : -ENOSPC;
}

/* The variable may be that of a program of another user, which sudo -E has kept. After this check
   another user cannot exchange the path, so that files are opened by it: no descriptor stays
   open. */
static int join_run(const char *given, struct kymo_error *err)
{
	struct safe_dir dir;
	int rc = safe_dir_open(&dir, given, SAFE_DIR_OWN, err);

	if (!rc && strlen(dir.path) >= RUN_DIR_BYTES)
		rc = error_set(err, ENAMETOOLONG, "KYMO_RUN is too long; nothing is recorded");
	if (!rc)
		strcpy(kymo__process.run_dir, dir.path);
	safe_dir_close(&dir);
	return rc;
}

/* Joins the run of KYMO_RUN or of the parent process; otherwise creates one. */
static int find_run(const char *program, bool *out_made, struct kymo_error *err)
{
	struct safe_dir root;
	const char *given;
	int rc;

	*out_made = false;
	if (kymo__process.run_dir[0])
		return 0;
	given = secure_getenv("KYMO_RUN");
	if (given && *given == '/' && strlen(given) < RUN_DIR_BYTES)
		return join_run(given, err);
	rc = paths_root_open(&root, err);
	if (!rc)
		rc = paths_make_run_at(&root, program, getpid(), kymo__process.run_dir,
				       RUN_DIR_BYTES, err);
	if (rc)
		kymo__process.run_dir[0] = '\0';
	safe_dir_close(&root);
	*out_made = !rc;
	return rc;
}

static int process_make_directory(struct kymo_error *err)
{
	pid_t pid = getpid();

	paths_process(kymo__process.run_dir, pid, paths_starttime(pid), kymo__process.dir,
		      sizeof(kymo__process.dir));
	/* It exists if this process has replaced itself by exec: the new program gets a directory
	   of its own. */
	for (int life = 2; mkdir(kymo__process.dir, 0700); life++) {
		size_t length;

		if (errno != EEXIST || life > 1000)
			return error_set(err, errno, "cannot create %s: %s; nothing is recorded",
					 kymo__process.dir, strerror(errno));
		paths_process(kymo__process.run_dir, pid, paths_starttime(pid), kymo__process.dir,
			      sizeof(kymo__process.dir));
		length = strlen(kymo__process.dir);
		snprintf(kymo__process.dir + length, sizeof(kymo__process.dir) - length, ".%d",
			 life);
	}
	kymo__process.pid = pid;
	return 0;
}

/* ---- inherited settings ---- */

#define ANCESTORS_MOST 16 /* shells and launchers that record nothing may be in between */
#define LIVES_MOST 1000

/* The control page of that process in this run, of its latest program. False: none. */
static bool process_read_control(pid_t pid, struct kymo_control *out)
{
	char path[KYMO_PATH_BYTES + 32];
	size_t length;
	int fd = -1;

	paths_process(kymo__process.run_dir, pid, paths_starttime(pid), path, sizeof(path) - 32);
	length = strlen(path);
	for (int life = 1; life < LIVES_MOST; life++) {
		int next;

		snprintf(path + length, sizeof(path) - length,
			 life > 1 ? ".%d/control" : "/control", life);
		next = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (next < 0)
			break;
		if (fd >= 0)
			close(fd);
		fd = next;
	}
	if (fd < 0)
		return false;
	memset(out, 0, sizeof(*out));
	if (pread(fd, out, sizeof(*out), 0) != (ssize_t)sizeof(*out) ||
	    memcmp(out->file.magic, KYMO_MAGIC_CONTROL, 8) != 0 ||
	    out->file.version != KYMO_FORMAT_VERSION || out->file.head_bytes < sizeof(*out))
		out->config_changed = 0;
	close(fd);
	return true;
}

/* A program started by exec keeps the `kymo config` changes of its predecessor or parent. */
static void inherit_settings(struct kymo_control *control)
{
	static struct kymo_control from; /* one writer: STATE_STARTING */
	pid_t pid = getpid();

	for (int i = 0; i < ANCESTORS_MOST && pid > 1; i++, pid = paths_parent(pid))
		if (process_read_control(pid, &from)) {
			settings_inherit(control, &from);
			return;
		}
}

/* ---- setting up ------------------------------------------------------------------------------ */

static void scale_ticks(const struct kymo_control *control)
{
	const struct kymo_clock_pair *first = &control->pairs[0], *second = &control->pairs[1];
	uint64_t ns = second->monotonic_ns - first->monotonic_ns;

	kymo__process.ticks_per_ms = ns ? (uint64_t)((double)(second->ticks - first->ticks) * 1e6 /
						     (double)ns)
					: 1000000;
}

static int open_control(enum kymo_role role, struct kymo_control *out)
{
	struct kymo_control *control;
	int rc;

	memset(&control_file, 0, sizeof(control_file));
	rc = kymo__mapfile_create(&control_file, "control", KYMO_CONTROL_BYTES, KYMO_CONTROL_BYTES);
	if (rc)
		return rc;
	control = (struct kymo_control *)(void *)control_file.base;
	memcpy(control, out, sizeof(*control));
	kymo__poll_begin(control);
	control->held_bytes = KYMO_CONTROL_BYTES;
	process_describe(control, role);
	kymo__process.control = control;
	kymo__mapfile_begun(control, KYMO_MAGIC_CONTROL, sizeof(*control));
	return 0;
}

/* A forked child may begin inside malloc(), as when a shell moves its environment: nothing may look
   at environment variables then. It has what its parent has read. */
static void begin_as_parent(struct kymo_control *draft, const struct kymo_control *parent)
{
	draft->clock_kind = parent->clock_kind;
	draft->rank = parent->rank;
	draft->ranks = parent->ranks;
	draft->local_rank_plus_1 = parent->local_rank_plus_1;
	draft->attempt_plus_1 = parent->attempt_plus_1;
	draft->rank_source = parent->rank_source;
	draft->step = parent->step;
	settings_copy(draft, parent);
}

static int process_begin(enum kymo_role role, bool forked, struct kymo_error *err)
{
	static struct kymo_control draft; /* one writer: STATE_STARTING */
	struct kymo__mapfile old_control = control_file;
	char program[256];
	char words[KYMO_ARGV_BYTES];
	bool made = false;
	int rc;

	memset(&draft, 0, sizeof(draft));
	kymo__process.rank_inherited = forked;
	if (!forked)
		draft.clock_kind = clock_init();
	clock_take_pair(&draft.pairs[0]);
	draft.pair_count = 1;
	if (forked) {
		begin_as_parent(&draft, kymo__process.control);
	} else {
		read_settings(&draft, role);
		kymo__tables_init();
	}
	kymo__process.control = NULL;
	program_name(words, process_read_file("/proc/self/cmdline", words, sizeof(words)), program,
		     sizeof(program));
	rc = find_run(program, &made, err);
	if (!rc && !forked && !made && role == KYMO_ROLE_TARGET)
		inherit_settings(&draft);
	if (!rc)
		rc = process_make_directory(err);
	if (rc)
		return rc;
	rc = open_control(role, &draft);
	if (!rc)
		rc = kymo__names_open(forked);
	if (!rc)
		rc = kymo__threads_open();
	if (!rc && made)
		rc = process_write_run_file(kymo__process.control);
	if (rc)
		return error_set(err, -rc,
				 "cannot write the recording in %s: %s; nothing is recorded",
				 kymo__process.dir, strerror(-rc));
	kymo__tables_name_losses();
	for (int i = 0; i < KYMO_DROP_CAUSE_COUNT; i++)
		kymo__process.control->lost[SCHEMA_ZONES].dropped[i] = kymo__exchange_relaxed(
			&lost_before_control[i], 0);
	clock_take_pair(&kymo__process.control->pairs[1]);
	kymo__process.control->pair_count = 2;
	scale_ticks(kymo__process.control);
	kymo__process.control->own_cost_ticks = kymo__measure_own_cost();
	next_pair_ticks = kymo__ticks() + kymo__process.ticks_per_ms * 100;
	kymo__store_release(&kymo__on, &kymo__process.control->on);
	if (forked)
		kymo__mapfile_close(&old_control);
	return 0;
}

/* One thread at a time; the others get false and lose their row. */
static int start_from(uint32_t from, enum kymo_role role, struct kymo_error *err)
{
	static const uint32_t *const off = &nothing_is_on;
	uint32_t expected = from;
	int rc;

	if (!kymo__cas_acq_rel_acquire(&state, &expected, STATE_STARTING))
		return -EBUSY;
	if (from == STATE_FORKED) {
		kymo__streams_forget();
		kymo__lanes_forget();
	}
	rc = process_begin(role, from == STATE_FORKED, err);
	if (rc)
		kymo__store_release(&kymo__on, off);
	kymo__store_release(&state, rc ? STATE_FAILED : STATE_READY);
	return rc;
}

bool kymo__process_ready(void)
{
	uint32_t now = kymo__load_acquire(&state);

	if (KYMO__LIKELY(now == STATE_READY))
		return true;
	if (now == STATE_FORKED)
		return !start_from(STATE_FORKED, KYMO_ROLE_TARGET, NULL);
	return false;
}

static int enable(enum kymo_role role, struct kymo_error *err)
{
	bool was_ready = false;
	int rc = 0;

	if (refused)
		return error_set(err, EPERM,
				 "recording is off: KYMO=off is set in the environment; unset it");
	for (int i = 0; i < 1000; i++) {
		uint32_t now = kymo__load_acquire(&state);

		was_ready = now == STATE_READY || now == STATE_FORKED;
		if (now == STATE_READY)
			break;
		rc = now == STATE_STARTING ? -EBUSY : start_from(now, role, err);
		if (rc != -EBUSY)
			break;
		sched_yield();
	}
	if (rc == -EBUSY)
		return error_set(err, EBUSY, "another thread is starting the recording; try again");
	/* At the first start the environment decides: KYMO_ZONES=off, KYMO_TORCH=on. */
	if (!rc && was_ready)
		kymo__fetch_or_release(&kymo__process.control->on, KYMO_ON_ZONES);
	return rc;
}

int kymo_enable(struct kymo_error *err)
{
	return enable(KYMO_ROLE_TARGET, err);
}

int kymo__enable_at(const char *run_dir, enum kymo_role role, struct kymo_error *err)
{
	if (strlen(run_dir) >= sizeof(kymo__process.run_dir) - 128)
		return error_set(err, ENAMETOOLONG, "the path %.60s… is too long for a recording",
				 run_dir);
	strcpy(kymo__process.run_dir, run_dir);
	return enable(role, err);
}

void kymo_disable(void)
{
	if (kymo__process_ready())
		kymo__fetch_and_release(&kymo__process.control->on, ~(uint32_t)KYMO_ON_ZONES);
}

const char *kymo_directory(void)
{
	return kymo__load_acquire(&state) == STATE_READY ? kymo__process.dir : "";
}

/* The rate that readers use: between the first and the newest published pair. As long as these are
   too close, between the first pair and now. */
static bool own_rate(const struct kymo_control *control, struct clock_rate *out)
{
	uint32_t count = kymo__load_acquire(&control->pair_count);
	struct kymo_clock_pair first, last;
	bool nonsense;

	if (clock_newest_pairs(control->pairs, count, &first, &last, &nonsense) &&
	    clock_rate_between(&first, &last, out) && out->baseline_ns >= CLOCK_ENOUGH_NS)
		return true;
	clock_take_pair(&last);
	return clock_rate_between(&first, &last, out);
}

uint64_t kymo_ticks_ns(uint64_t ticks)
{
	const struct kymo_control *control = kymo__process.control;
	struct clock_rate rate;

	if (!control || !ticks)
		return 0;
	if (control->clock_kind == KYMO_CLOCK_MONOTONIC)
		return ticks;
	if (kymo__load_acquire(&state) == STATE_READY) /* a forked child has its parent's page */
		kymo__process_tick(kymo__ticks());
	return own_rate(control, &rate) ? (uint64_t)clock_span_ns(rate.mult, ticks) : ticks;
}

struct kymo_control *kymo__control(void)
{
	return kymo__process_ready() ? kymo__process.control : NULL;
}

void kymo__lost(uint32_t table, enum kymo_drop cause)
{
	struct kymo_control *control = kymo__process.control;

	if (control)
		kymo__fetch_add_relaxed(&control->lost[table].dropped[cause], 1);
	else
		kymo__fetch_add_relaxed(&lost_before_control[cause], 1);
}

void kymo__process_tick(uint64_t now_ticks)
{
	struct kymo_control *control = kymo__process.control;
	uint64_t due = kymo__load_relaxed(&next_pair_ticks);
	uint32_t count;

	/* One thread at a time: nothing is due while it works. */
	if (now_ticks < due || !kymo__cas_acquire(&next_pair_ticks, &due, UINT64_MAX))
		return;
	count = control->pair_count;
	clock_take_pair(&control->pairs[1 + (count - 1) % (KYMO_CLOCK_PAIRS - 1)]);
	kymo__store_release(&control->pair_count, count + 1);
	kymo__store_release(&next_pair_ticks, kymo__ticks() + kymo__process.ticks_per_ms * 1000);
}

/* ---- fork and exit ---- */

/* The child must not write the parent's data. Only pointers are cleared here, because locks of the
   program may be held by threads that do not exist in the child. */
static void process_after_fork_in_child(void)
{
	uint32_t now = kymo__load_relaxed(&state);

	kymo__lane = NULL;
	if (now == STATE_READY || now == STATE_FORKED)
		kymo__store_release(&state, STATE_FORKED);
	else if (now == STATE_STARTING)
		kymo__store_release(&state, kymo__process.control ? STATE_FORKED : STATE_OFF);
}

__attribute__((constructor)) static void process_on_load(void)
{
	static const char *const yes[] = { "on", "1", "true", "yes", NULL };
	static const char *const no[] = { "off", "0", "false", "no", "", NULL };
	const char *word = secure_getenv("KYMO");
	struct kymo_error err = { 0 };

	standby = word && !strcasecmp(word, "standby");
	pthread_atfork(NULL, NULL, process_after_fork_in_child);
	kymo__lanes_init();
	if (&kymo__not_by_environment)
		return;
	refused = word && word_is(word, no) && *word;
	if (!word || word_is(word, no))
		return;
	if (!standby && !word_is(word, yes)) {
		complain("KYMO must be on, off or standby; recording stays off");
		return;
	}
	if (enable(KYMO_ROLE_TARGET, &err))
		complain(err.text);
}

void kymo__enable_once(void)
{
	static uint32_t asked; /* atomic */
	const char *word = secure_getenv("KYMO");
	struct kymo_error err = { 0 };

	if ((word && *word) || kymo__exchange_relaxed(&asked, 1))
		return;
	if (enable(KYMO_ROLE_TARGET, &err))
		complain(err.text);
}

__attribute__((destructor)) static void on_unload(void)
{
	struct kymo_control *control = kymo__process.control;

	if (kymo__load_acquire(&state) != STATE_READY || !control)
		return;
	kymo__process_tick(UINT64_MAX - 1);
	control->ended_ticks = kymo__ticks();
	kymo__store_release(&control->ended, 1);
}
