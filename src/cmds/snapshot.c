#include "cmds/cmds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "record/snapshot.h"
#include "store/store.h"
#include "base/files/atomic_file.h"
#include "trigger/recent.h"
#include "views/term/format.h"
#include "views/term/text.h"

static int check_kind(const char *path, struct kymo_error *err)
{
	enum store_kind kind = store_kind(path, err);

	if (kind == STORE_DIRECTORY)
		return 0;
	if (kind == STORE_NONE)
		return -err->code;
	return error_set(err, EINVAL, "%s is one file already; copy it instead", path);
}

struct snapshot_request {
	const char *file;
	double last_s; /* 0: all rows */
	double since_s; /* of CLOCK_MONOTONIC; 0: not given */
	bool force;
};

static int snapshot_write_rows(const char *path, const struct snapshot_request *request,
			       struct kymo_error *err)
{
	if (request->since_s > 0)
		return recent_write_since(path, (uint64_t)(request->since_s * 1e9), request->file,
					  err);
	if (request->last_s > 0)
		return recent_write(path, (uint64_t)(request->last_s * 1e9), request->file, err);
	return kymo__snapshot_write(path, NULL, request->file, err);
}

static int write_snapshot(const char *target, const struct snapshot_request *request,
			  struct kymo_error *err)
{
	const char *file = request->file;
	char path[KYMO_PATH_BYTES];
	struct stat status;
	int rc = store_resolve(target, path, sizeof(path), err);

	if (!rc)
		rc = check_kind(path, err);
	if (!rc)
		rc = snapshot_write_rows(path, request, err);
	if (rc)
		return rc;
	cmds_say_latest(target, path);
	if (!stat(file, &status))
		text_line(stderr, "kymo: %s, %s; query it: kymo query %s 'FROM trace.regions'",
			  file, format_bytes((double)status.st_size).text, file);
	return 0;
}

static int snapshot_take_option(void *context, struct cmds_args *args,
				const struct cmds_option *option)
{
	struct snapshot_request *request = context;
	int status = -1;

	if (!strcmp(option->name, "output"))
		request->file = args->value;
	else if (!strcmp(option->name, "force"))
		request->force = true;
	else
		cmds_number(args, option, 1e9,
			    strcmp(option->name, "since") ? &request->last_s : &request->since_s,
			    &status);
	return status;
}

int cmd_snapshot(int argc, char **argv)
{
	struct snapshot_request request = { 0 };
	struct kymo_error err = { 0 };
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "snapshot", argc, argv);
	status = cmds_take_all(&args, snapshot_take_option, &request);
	if (status >= 0)
		return status;
	if (args.word_count && !request.file)
		request.file = args.words[--args.word_count];
	if (!request.file || args.word_count > 1)
		return cmds_wrong("snapshot", "expected a file, or a target and a file; usage: "
					      "kymo snapshot [OPTIONS] [TARGET] FILE");
	if (request.since_s > 0 && request.last_s > 0)
		return cmds_wrong("snapshot", "use --last or --since, not both");
	if (atomic_file_check(request.file, request.force, &err) ||
	    write_snapshot(args.word_count ? args.words[0] : NULL, &request, &err))
		return cmds_fail("snapshot", &err);
	return CMDS_OK;
}
