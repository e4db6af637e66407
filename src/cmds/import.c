#include "import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "cmds/cmds.h"
#include "store/store.h"
#include "views/term/format.h"
#include "views/term/progress.h"
#include "views/term/text.h"

struct import_request {
	char output[KYMO_PATH_BYTES];
	const char **comm;
	size_t comm_count;
	bool force, quiet;
	struct progress progress;
};

static void import_progress(void *context, uint64_t done, uint64_t all)
{
	struct import_request *request = context;

	progress_at(&request->progress, done, all);
}

static void import_say(void *context, const char *sentence)
{
	struct import_request *request = context;

	progress_end(&request->progress);
	text_line(stderr, "kymo import: %s", sentence);
}

/* "traces/rank0.pt.trace.json.gz": ./rank0.run; several files: that of the first. */
static void default_output(const char *path, char *out, size_t out_bytes)
{
	static const char *const endings[] = { ".gz", ".json", ".trace", ".pt", NULL };
	char stem[KYMO_PATH_BYTES];
	size_t bytes;

	snprintf(stem, sizeof(stem), "%s", path);
	for (bytes = strlen(stem); bytes > 1 && stem[bytes - 1] == '/'; bytes--)
		stem[bytes - 1] = '\0';
	if (strrchr(stem, '/'))
		memmove(stem, strrchr(stem, '/') + 1, strlen(strrchr(stem, '/') + 1) + 1);
	for (int i = 0; endings[i]; i++) {
		size_t ending = strlen(endings[i]);

		bytes = strlen(stem);
		if (bytes > ending && !strcmp(stem + bytes - ending, endings[i]))
			stem[bytes - ending] = '\0';
	}
	snprintf(out, out_bytes, "kymo-%s", stem[0] && strcmp(stem, ".") ? stem : "import");
}

static int import_take_option(void *context, struct cmds_args *args,
			      const struct cmds_option *option)
{
	struct import_request *request = context;

	if (!strcmp(option->name, "output")) {
		snprintf(request->output, sizeof(request->output), "%s", args->value);
		return -1;
	}
	if (!strcmp(option->name, "force")) {
		request->force = true;
		return -1;
	}
	if (!strcmp(option->name, "quiet")) {
		request->quiet = true;
		return -1;
	}
	/* --comm; one more for the NULL at the end */
	if (!grow_to((void **)&request->comm, request->comm_count + 2, sizeof(*request->comm)))
		return CMDS_FAILED;
	request->comm[request->comm_count++] = args->value;
	request->comm[request->comm_count] = NULL;
	return -1;
}

static void print_result(const struct import_request *request, const struct import_result *result)
{
	char skipped[64] = "";

	if (request->quiet)
		return;
	if (result->skipped)
		snprintf(skipped, sizeof(skipped), ", %s skipped",
			 format_count(result->skipped).text);
	text_line(stderr, "kymo: %s: %zu file%s, %s events%s", request->output, result->files,
		  result->files == 1 ? "" : "s", format_count(result->events).text, skipped);
	if (result->skipped)
		text_line(stderr, "kymo: `kymo query %s 'FROM kymo.imports'` counts them by reason",
			  request->output);
}

static int import_now(struct import_request *request, const struct cmds_args *args)
{
	struct import_options options = { .output = request->output,
					  .comm = request->comm,
					  .progress = import_progress,
					  .say = import_say,
					  .context = request };
	struct import_result result;
	struct kymo_error err = { 0 };
	int rc = request->force ? cmds_remove_old("import", request->output) : 0;

	if (rc)
		return rc;
	progress_begin(&request->progress, "importing", "bytes");
	rc = import_files((const char *const *)args->words, args->word_count, &options, &result,
			  &err);
	progress_end(&request->progress);
	if (rc)
		return cmds_fail("import", &err);
	store_remember(request->output, NULL);
	print_result(request, &result);
	return CMDS_OK;
}

int cmd_import(int argc, char **argv)
{
	struct import_request request = { .force = false };
	struct cmds_args args;
	int status;

	cmds_args_init(&args, "import", argc, argv);
	status = cmds_take_all(&args, import_take_option, &request);
	if (status < 0 && !args.word_count)
		status = cmds_wrong("import", "no FILE; usage: kymo import [OPTIONS] FILE...");
	if (status < 0) {
		if (!request.output[0])
			default_output(args.words[0], request.output, sizeof(request.output));
		status = import_now(&request, &args);
	}
	free(request.comm);
	return status;
}
