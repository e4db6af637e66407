#include "cmds/cmds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "record/snapshot.h"
#include "store/store.h"
#include "base/files/atomic_file.h"
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

static int write_snapshot(const char *target, const char *file, struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES];
	struct stat status;
	int rc = store_resolve(target, path, sizeof(path), err);

	if (!rc)
		rc = check_kind(path, err);
	if (!rc)
		rc = kymo__snapshot_write(path, NULL, file, err);
	if (rc)
		return rc;
	cmds_say_latest(target, path);
	if (!stat(file, &status))
		text_line(stderr, "kymo: %s, %s; query it: kymo query %s 'FROM trace.regions'",
			  file, format_bytes((double)status.st_size).text, file);
	return 0;
}

int cmd_snapshot(int argc, char **argv)
{
	struct kymo_error err = { 0 };
	struct cmds_args args;
	const char *file = NULL;
	bool force = false;
	int status;

	cmds_args_init(&args, "snapshot", argc, argv);
	status = cmds_take_file(&args, &file, &force);
	if (status >= 0)
		return status;
	if (args.word_count && !file)
		file = args.words[--args.word_count];
	if (!file || args.word_count > 1)
		return cmds_wrong("snapshot", "expected a file, or a target and a file; usage: "
					      "kymo snapshot [OPTIONS] [TARGET] FILE");
	if (atomic_file_check(file, force, &err) ||
	    write_snapshot(args.word_count ? args.words[0] : NULL, file, &err))
		return cmds_fail("snapshot", &err);
	return CMDS_OK;
}
