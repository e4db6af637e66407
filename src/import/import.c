#include "import/import.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "import/flight/flight.h"
#include "import/flight/pickle.h"
#include "import/input/input.h"
#include "import/nsys/nsys.h"
#include "import/perfetto/perfetto.h"
#include "import/profiles/pprof.h"
#include "import/trace.h"

#define FILES_MOST 100000u

/* ---- which files --------------------------------------------------------------------------- */

struct paths {
	char **list;
	size_t count;
};

static bool add_path(struct paths *paths, const char *path)
{
	char *copy = paths->count < FILES_MOST ? strdup(path) : NULL;

	if (!copy || !grow_short((void **)&paths->list, paths->count, sizeof(*paths->list))) {
		free(copy);
		return false;
	}
	paths->list[paths->count++] = copy;
	return true;
}

static void free_paths(struct paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->list[i]);
	free(paths->list);
}

/* Numbers in names by their value: rank2 before rank10. */
static int compare_paths(const void *left, const void *right)
{
	return strverscmp(*(char *const *)left, *(char *const *)right);
}

enum import_kind { KIND_NONE, KIND_JSON, KIND_NSYS, KIND_PICKLE, KIND_PERFETTO, KIND_PPROF };

/* By its first bytes. JSON is an object or an array, after white space. */
static enum import_kind kind_of_bytes(struct json_scan *scan)
{
	const size_t bytes = (size_t)(scan->end - scan->at);

	if (bytes >= sizeof(NSYS_MAGIC) && !memcmp(scan->at, NSYS_MAGIC, sizeof(NSYS_MAGIC)))
		return KIND_NSYS;
	if (pickle_is(scan->at, bytes))
		return KIND_PICKLE;
	if (pprof_is(scan->at, bytes))
		return KIND_PPROF;
	if (perfetto_is(scan->at, bytes))
		return KIND_PERFETTO;
	if (bytes >= 3 && !memcmp(scan->at, "\xef\xbb\xbf", 3))
		scan->at += 3;
	return json_scan_next(scan) == '[' || *scan->at == '{' ? KIND_JSON : KIND_NONE;
}

static enum import_kind import_kind(const char *path)
{
	struct input input;
	struct json_scan scan = { 0 };
	enum import_kind kind = KIND_NONE;

	if (input_open(&input, path, NULL))
		return KIND_NONE;
	input.window_bytes = 4096; /* enough to tell */
	if (input_more(&input, &scan))
		kind = kind_of_bytes(&scan);
	input_close(&input);
	return kind;
}

bool import_is_trace(const char *path)
{
	return import_kind(path) != KIND_NONE;
}

/* In a directory: endings of traces, and the names that PyTorch gives to dumps (nccl_trace_rank_0).
   The content decides then. */
static bool is_trace_name(const char *name)
{
	static const char *const endings[] = {
		".json",    ".json.gz",		  ".sqlite", ".pickle", ".pkl",	  ".perfetto-trace",
		".pftrace", ".perfetto-trace.gz", ".pb",     ".pb.gz",	".pprof", ".prof"
	};
	const size_t bytes = strlen(name);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		const size_t ending = strlen(endings[i]);

		if (bytes > ending && !strcmp(name + bytes - ending, endings[i]))
			return true;
	}
	return strstr(name, "trace_rank_") && isdigit((unsigned char)name[bytes - 1]);
}

static int add_directory(struct paths *paths, const char *path, struct kymo_error *err)
{
	DIR *dir = opendir(path);
	size_t first = paths->count;
	struct dirent *entry;

	if (!dir)
		return error_set(err, errno, "cannot list %s: %s", path, strerror(errno));
	while ((entry = readdir(dir))) {
		char file[KYMO_PATH_BYTES];

		if (is_trace_name(entry->d_name) &&
		    (size_t)snprintf(file, sizeof(file), "%s/%s", path, entry->d_name) <
			    sizeof(file) &&
		    import_is_trace(file))
			add_path(paths, file);
	}
	closedir(dir);
	if (paths->count == first)
		return error_set(err, ENOENT,
				 "%s has no traces: no files with a name and the content of one",
				 path);
	qsort(paths->list + first, paths->count - first, sizeof(*paths->list), compare_paths);
	return 0;
}

static int list_paths(struct paths *paths, const char *const *given, size_t count,
		      struct kymo_error *err)
{
	for (size_t i = 0; i < count; i++) {
		struct stat status;
		int rc = 0;

		if (stat(given[i], &status))
			return error_set(err, errno, "cannot open %s: %s", given[i],
					 strerror(errno));
		if (S_ISDIR(status.st_mode))
			rc = add_directory(paths, given[i], err);
		else if (!add_path(paths, given[i]))
			rc = error_set(err, ENOMEM, "too many files");
		if (rc)
			return rc;
	}
	return 0;
}

int import_each_file(const char *const *given, size_t count,
		     void (*each)(const char *file, void *context), void *context,
		     struct kymo_error *err)
{
	struct paths paths = { 0 };
	int rc = list_paths(&paths, given, count, err);

	for (size_t i = 0; !rc && i < paths.count; i++)
		each(paths.list[i], context);
	free_paths(&paths);
	return rc;
}

/* ---- ranks --------------------------------------------------------------------------------- */

/* "rank-3", "rank_3", "rank3" in a file's name; -1: none. */
static int32_t rank_in_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *at = slash ? slash + 1 : path;

	for (; *at; at++) {
		const char *digits = at + 4;

		if (strncasecmp(at, "rank", 4) != 0)
			continue;
		digits += *digits == '-' || *digits == '_' || *digits == '.';
		if (isdigit((unsigned char)*digits) && strtol(digits, NULL, 10) < 10000000)
			return (int32_t)strtol(digits, NULL, 10);
	}
	return -1;
}

/* ---- importing ----------------------------------------------------------------------------- */

/* Reads the events of a file, whatever its kind. */
static int read_file(struct trace *trace, const char *path, struct kymo_error *damage,
		     struct kymo_error *err)
{
	const enum import_kind kind = import_kind(path);
	struct nsys_child child = { 0 };
	struct kymo_error own = { 0 };
	struct input input;
	int rc, closed;

	rc = kind == KIND_NSYS ? nsys_open(&child, &input, path, err)
			       : input_open(&input, path, err);
	if (rc)
		return rc;
	if (kind == KIND_PICKLE)
		rc = flight_read_pickle(trace, &input, damage, err);
	else if (kind == KIND_PERFETTO)
		rc = perfetto_read(trace, &input, damage, err);
	else if (kind == KIND_PPROF)
		rc = pprof_read(trace, &input, damage, err);
	else
		rc = import_events(trace, &input, damage, err);
	input_close(&input);
	if (kind != KIND_NSYS)
		return rc;
	/* The child's message is closer to the cause than the place where the JSON ends. */
	closed = nsys_close(&child, damage, &own);
	if (closed)
		return error_set(err, -closed, "%s", own.text);
	return rc && damage->code ? error_set(err, damage->code, "%s", damage->text) : rc;
}

static int import_one(const char *path, const struct import_options *options,
		      struct recording_writer *writer, struct import_pids *taken,
		      struct kymo_error *err)
{
	struct kymo_error damage = { 0 }, why = { 0 };
	struct trace trace;
	char sentence[KYMO_PATH_BYTES + 300];
	int rc;

	trace_begin(&trace, options, path);
	trace.rank = rank_in_name(path); /* the file may tell another */
	rc = read_file(&trace, path, &damage, &why);
	if (rc) {
		error_set(err, -rc, "%s is not a trace: %s", path, why.text);
	} else {
		rc = trace_write(&trace, writer, taken, err);
		if (!writer->run.host[0])
			snprintf(writer->run.host, sizeof(writer->run.host), "%s", trace.host);
	}
	trace_end(&trace);
	if (!rc && damage.code && options->say) {
		snprintf(sentence, sizeof(sentence), "%s: %s", path, damage.text);
		options->say(options->context, sentence);
	}
	return rc;
}

/* The files, as words of a command line. */
static void import_describe_run(struct kymo_run_file *run, const struct paths *paths)
{
	const char *slash = strrchr(paths->list[0], '/');
	size_t at = 0;

	snprintf(run->program, sizeof(run->program), "%s", slash ? slash + 1 : paths->list[0]);
	at += (size_t)snprintf(run->argv, sizeof(run->argv), "kymo") + 1;
	at += (size_t)snprintf(run->argv + at, sizeof(run->argv) - at, "import") + 1;
	for (size_t i = 0; i < paths->count; i++) {
		size_t bytes = strlen(paths->list[i]) + 1;

		if (bytes > sizeof(run->argv) - 2 - at)
			break;
		memcpy(run->argv + at, paths->list[i], bytes);
		at += bytes;
	}
}

int import_files(const char *const *given, size_t count, const struct import_options *options,
		 struct import_result *result, struct kymo_error *err)
{
	struct recording_writer writer = { .dir = -1 };
	struct paths paths = { 0 };
	struct import_pids taken = { .result = result };
	int rc;

	memset(result, 0, sizeof(*result));
	rc = list_paths(&paths, given, count, err);
	if (!rc)
		rc = recording_writer_begin(&writer, options->output, err);
	if (rc)
		goto out;
	taken.files = result->files = paths.count;
	for (size_t i = 0; !rc && i < paths.count; i++)
		rc = import_one(paths.list[i], options, &writer, &taken, err);
	if (rc) {
		recording_writer_discard(&writer);
		goto out;
	}
	import_describe_run(&writer.run, &paths);
	result->duration_ns = writer.last_ns - writer.first_ns;
	rc = recording_writer_commit(&writer, err);
out:
	free_paths(&paths);
	free(taken.list);
	intern_fini(&taken.index);
	return rc;
}
