#include "cmds/cmds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/paths.h"
#include "store/store.h"
#include "tables/tables.h"
#include "base/files/atomic_file.h"
#include "views/term/format.h"
#include "views/term/text.h"
#include "views/term/progress.h"
#include "views/term/target.h"

/* ---- progress ------------------------------------------------------------------------------- */

static struct progress progress;

static void pack_show_progress(uint64_t done, uint64_t all)
{
	progress_at(&progress, done, all);
}

/* ---- packing -------------------------------------------------------------------------------- */

/* PROGRAM.kymo next to the recording, or in the working directory for a recording in memory. */
static void default_file(const char *from, const char *program, char *out, size_t out_bytes)
{
	const char *slash = strrchr(from, '/');
	int parent = slash ? (int)(slash - from) + 1 : 0;

	if (paths_in_roots(from))
		parent = 0;
	snprintf(out, out_bytes, "%.*s%s.kymo", parent, from, program[0] ? program : "run");
}

struct run_files {
	char path[KYMO_PATH_BYTES];
	char program[256];
	uint64_t zones;
};

static int pack_describe(const char *target, struct run_files *source, struct kymo_error *err)
{
	struct recording *recording = NULL;
	int rc = target_resolve(target, source->path, sizeof(source->path), err);

	if (rc)
		return rc;
	if (store_kind(source->path, err) == STORE_PACKED)
		return error_set(err, EINVAL, "%s is already packed", source->path);
	rc = store_open(source->path, &recording, err);
	if (rc)
		return rc;
	for (char *c = recording->program; *c; c++)
		*c = *c == '/' ? '_' : *c;
	snprintf(source->program, sizeof(source->program), "%s", recording->program);
	for (size_t i = 0; i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, "trace.zones"))
			source->zones += recording->streams[i].kept;
	store_close(recording);
	return 0;
}

static void print_size(const char *file, const struct run_files *source)
{
	struct stat status;
	char each[80] = "";

	if (stat(file, &status))
		return;
	/* An empty database has some megabytes, so bytes per zone mean little for few zones. */
	if (source->zones >= 1000000)
		snprintf(each, sizeof(each), " for %s zones, %.1f bytes each",
			 format_count(source->zones).text,
			 (double)status.st_size / (double)source->zones);
	text_line(stderr, "kymo: %s, %s%s", file, format_bytes((double)status.st_size).text, each);
}

struct request {
	const char *target, *file; /* NULL: latest; PROGRAM.kymo */
	bool force;
};

static int pack(const struct request *request, struct kymo_error *err)
{
	struct run_files source = { .zones = 0 };
	char chosen[2 * KYMO_PATH_BYTES];
	const char *file = request->file;
	int rc = pack_describe(request->target, &source, err);

	if (rc)
		return rc;
	cmds_say_latest(request->target, source.path);
	if (!file) {
		default_file(source.path, source.program, chosen, sizeof(chosen));
		file = chosen;
	}
	rc = atomic_file_check(file, request->force, err);
	if (rc)
		return rc;
	progress_begin(&progress, "packing", "rows");
	rc = tables_pack(source.path, file, pack_show_progress, err);
	progress_end(&progress);
	if (!rc)
		print_size(file, &source);
	return rc;
}

static int pack_local(void *context)
{
	struct kymo_error err = { 0 };

	return pack(context, &err) ? cmds_fail("pack", &err) : CMDS_OK;
}

int cmd_pack(int argc, char **argv)
{
	struct request request = { 0 };
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "pack", argc, argv);
	status = cmds_take_file(&args, &request.file, &request.force);
	if (status >= 0)
		return status;
	if (args.word_count == 2 && !request.file)
		request.file = args.words[--args.word_count];
	if (args.word_count > 1)
		return cmds_wrong("pack",
				  "too many arguments; usage: kymo pack [OPTIONS] [TARGET] [FILE]");
	request.target = args.word_count ? args.words[0] : NULL;
	return cmds_guarded("pack", pack_local, &request);
}
