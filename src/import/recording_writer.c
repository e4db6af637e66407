#include "import/recording_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files/dir_names.h"
#include "base/files/run_files.h"

#define WALL_CLOCK_NS INT64_C(946684800000000000) /* later than this: times since 1970 */

int recording_writer_begin(struct recording_writer *writer, const char *path,
			   struct kymo_error *err)
{
	struct stat status;
	int rc;

	memset(writer, 0, sizeof(*writer));
	writer->dir = -1;
	rc = safe_dir_parent(&writer->parent, path, SAFE_DIR_MAKE, err);
	if (rc)
		return rc;
	snprintf(writer->path, sizeof(writer->path), "%s", path);
	snprintf(writer->part, sizeof(writer->part), ".%.200s.part%d", writer->parent.name,
		 (int)getpid());
	if (!fstatat(writer->parent.fd, writer->parent.name, &status, AT_SYMLINK_NOFOLLOW))
		rc = error_set(err, EEXIST, "%s exists; choose another name with -o, or --force",
			       path);
	else if (mkdirat(writer->parent.fd, writer->part, 0700))
		rc = error_set(err, errno, "cannot create %s: %s", path, strerror(errno));
	if (!rc) {
		writer->dir = safe_dir_enter(writer->parent.fd, writer->part);
		if (writer->dir < 0)
			rc = error_set(err, -writer->dir, "cannot open %s: %s", path,
				       strerror(-writer->dir));
	}
	if (rc)
		safe_dir_close(&writer->parent);
	return rc;
}

/* ---- the run file -------------------------------------------------------------------------- */

static void recording_writer_set_times(struct recording_writer *writer)
{
	struct kymo_run_file *run = &writer->run;
	struct timespec now = { 0 };
	int64_t wall = writer->first_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!writer->any)
		writer->first_ns = writer->last_ns = wall = 0;
	if (wall < WALL_CLOCK_NS) /* it counts from another moment: show when it was imported */
		wall = (int64_t)now.tv_sec * 1000000000 - (writer->last_ns - writer->first_ns);
	run->clock_kind = KYMO_CLOCK_MONOTONIC;
	run->epoch.ticks = run->epoch.monotonic_ns = writer_ticks(writer->first_ns);
	run->epoch.realtime_ns = (uint64_t)wall;
	run->end.ticks = run->end.monotonic_ns = writer_ticks(writer->last_ns);
	run->end.realtime_ns = (uint64_t)(wall + (writer->last_ns - writer->first_ns));
	run->ended = 2;
	run->ended_realtime_ns = run->end.realtime_ns;
}

static int put_file(int dir, const char *name, const void *head, size_t head_bytes,
		    const void *body, size_t body_bytes)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	bool wrong;

	if (!file) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	wrong = fwrite(head, 1, head_bytes, file) != head_bytes ||
		(body_bytes && fwrite(body, 1, body_bytes, file) != body_bytes);
	return fclose(file) || wrong ? -(errno ? errno : EIO) : 0;
}

static void file_head(struct kymo_file_head *head, const char *magic, size_t bytes)
{
	memcpy(head->magic, magic, 8);
	head->version = KYMO_FORMAT_VERSION;
	head->head_bytes = (uint32_t)bytes;
}

int recording_writer_commit(struct recording_writer *writer, struct kymo_error *err)
{
	struct kymo_run_file *run = &writer->run;
	int rc;

	file_head(&run->file, KYMO_MAGIC_RUN, sizeof(*run));
	recording_writer_set_times(writer);
	run->keep = KYMO_KEEP_ALL;
	snprintf(run->kymo_version, sizeof(run->kymo_version), "%s", KYMO_VERSION);
	snprintf(run->boot_id, sizeof(run->boot_id), "imported");
	if (!getcwd(run->cwd, sizeof(run->cwd)))
		run->cwd[0] = '\0';
	rc = put_file(writer->dir, "run", run, sizeof(*run), NULL, 0);
	if (!rc &&
	    renameat(writer->parent.fd, writer->part, writer->parent.fd, writer->parent.name))
		rc = -errno;
	if (rc) {
		recording_writer_discard(writer);
		return error_set(err, -rc, "cannot write %s: %s", writer->path, strerror(-rc));
	}
	close(writer->dir);
	writer->dir = -1;
	safe_dir_close(&writer->parent);
	return 0;
}

/* ---- removing ------------------------------------------------------------------------------ */

static int writer_remove_file(const char *name, void *context)
{
	/* not a folder: . and .. stay */
	unlinkat(*(int *)context, name, 0);
	return 0;
}

/* Only what a recording holds: its file and the folders of its processes. Names may be . and .. */
static int remove_folder(const char *name, void *context)
{
	const int parent = *(int *)context;
	int dir;

	if (!run_files_is_process(name, NULL))
		return strcmp(name, "run") ? 0 : writer_remove_file(name, context);
	dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return 0;
	dir_names_each(dir, writer_remove_file, &dir);
	close(dir);
	unlinkat(parent, name, AT_REMOVEDIR);
	return 0;
}

void recording_writer_discard(struct recording_writer *writer)
{
	if (writer->dir < 0)
		return;
	dir_names_each(writer->dir, remove_folder, &writer->dir);
	close(writer->dir);
	writer->dir = -1;
	unlinkat(writer->parent.fd, writer->part, AT_REMOVEDIR);
	safe_dir_close(&writer->parent);
}

/* ---- a process ----------------------------------------------------------------------------- */

int writer_process_begin(struct recording_writer *writer, struct writer_process *process,
			 int32_t pid, uint64_t starttime, struct kymo_error *err)
{
	char name[64];

	memset(process, 0, sizeof(*process));
	process->control.pid = pid;
	process->control.starttime = starttime;
	process->control.rank = process->control.ranks = -1;
	process->control.keep = KYMO_KEEP_ALL;
	process->control.clock_kind = KYMO_CLOCK_MONOTONIC;
	snprintf(name, sizeof(name), "p%d-%llu", (int)pid, (unsigned long long)starttime);
	process->dir = -1;
	if (!mkdirat(writer->dir, name, 0700))
		process->dir = openat(writer->dir, name,
				      O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return process->dir < 0 ? error_set(err, errno, "cannot create %s/%s: %s", writer->path,
					    name, strerror(errno))
				: 0;
}

static void end_control(struct writer_process *process)
{
	struct kymo_control *control = &process->control;
	const int64_t first_ns = process->first_ns, last_ns = process->last_ns;

	file_head(&control->file, KYMO_MAGIC_CONTROL, sizeof(*control));
	control->ended = 1;
	control->ended_ticks = writer_ticks(last_ns);
	control->pair_count = 2;
	for (int i = 0; i < 2; i++) {
		control->pairs[i].ticks = writer_ticks(i ? last_ns : first_ns);
		control->pairs[i].monotonic_ns = control->pairs[i].ticks;
		control->pairs[i].realtime_ns = (uint64_t)(i ? last_ns : first_ns);
	}
}

static int put_control(struct writer_process *process)
{
	static const char rest[KYMO_CONTROL_BYTES - sizeof(struct kymo_control)];

	return put_file(process->dir, "control", &process->control, sizeof(process->control), rest,
			sizeof(rest));
}

/* The texts of names, one after another, and entries that point to them. */
static int put_names(struct writer_process *process, const struct writer_name *names, size_t count)
{
	struct kymo_names_head names_head = { .count = count };
	struct kymo_text_head text_head = { .used = sizeof(text_head) };
	struct kymo_name_entry *entries = calloc(count, sizeof(*entries));
	char *text = NULL;
	size_t bytes = 0, at = 0;
	int rc = -ENOMEM;

	for (size_t i = 1; i < count; i++)
		bytes += names[i].text_bytes + names[i].file_bytes;
	text = malloc(bytes + 1);
	if (!entries || !text)
		goto out;
	for (size_t i = 1; i < count; i++) {
		const struct writer_name *name = &names[i];

		memcpy(text + at, name->text, name->text_bytes + name->file_bytes);
		entries[i] = (struct kymo_name_entry){ .ready = 1,
						       .source = name->source,
						       .text_offset = sizeof(text_head) + at,
						       .name_bytes = name->text_bytes,
						       .file_bytes = name->file_bytes,
						       .line = name->line };
		at += name->text_bytes + name->file_bytes;
	}
	text_head.used += bytes;
	file_head(&names_head.file, KYMO_MAGIC_NAMES, sizeof(names_head));
	file_head(&text_head.file, KYMO_MAGIC_TEXT, sizeof(text_head));
	rc = put_file(process->dir, "names", &names_head, sizeof(names_head), entries,
		      count * sizeof(*entries));
	if (!rc)
		rc = put_file(process->dir, "text", &text_head, sizeof(text_head), text, bytes);
out:
	free(entries);
	free(text);
	return rc;
}

static int put_threads(struct writer_process *process, const struct kymo_thread_entry *threads,
		       size_t count)
{
	struct kymo_threads_head head = { .count = count };

	file_head(&head.file, KYMO_MAGIC_THREADS, sizeof(head));
	return put_file(process->dir, "threads", &head, sizeof(head), threads,
			count * sizeof(*threads));
}

int writer_process_end(struct recording_writer *writer, struct writer_process *process,
		       const struct writer_name *names, size_t name_count,
		       const struct kymo_thread_entry *threads, size_t thread_count,
		       struct kymo_error *err)
{
	int rc = writer_streams_end(process);

	if (!writer->any || process->first_ns < writer->first_ns)
		writer->first_ns = process->first_ns;
	if (!writer->any || process->last_ns > writer->last_ns)
		writer->last_ns = process->last_ns;
	writer->any = true;
	end_control(process);
	if (!rc)
		rc = put_names(process, names, name_count);
	if (!rc)
		rc = put_threads(process, threads, thread_count);
	if (!rc)
		rc = put_control(process);
	writer_process_discard(process);
	return rc ? error_set(err, -rc, "cannot write %s: %s", writer->path, strerror(-rc)) : 0;
}
