#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmds/cmds.h"
#include "cmds/lake/lake_words.h"
#include "store/lake/lake_dir.h"
#include "views/query/json.h"
#include "views/term/format.h"
#include "views/term/text.h"

struct lake_size {
	uint64_t files, bytes;
	bool left_out; /* some files cannot be read */
};

static int lake_measure(const char *path, struct lake_listing *listing, struct lake_size *size,
			struct kymo_error *err)
{
	int rc = lake_list(path, listing, err);

	memset(size, 0, sizeof(*size));
	for (size_t i = 0; i < listing->count; i++)
		for (size_t k = 0; k < listing->tables[i].count; k++) {
			size->files++;
			size->bytes += listing->tables[i].files[k].bytes;
		}
	size->left_out = buf_get(&listing->problems)[0];
	return rc;
}

static void lake_print_json(const struct lake_job *job, const char *path,
			    const struct lake_size *size, bool first)
{
	struct buf out = { 0 };

	buf_text(&out, first ? "\n{\"path\":" : ",\n{\"path\":");
	json_text(&out, path, strlen(path));
	buf_text(&out, ",\"program\":");
	json_text(&out, job->program, strlen(job->program));
	buf_print(&out,
		  ",\"started_unix_ns\":%" PRIu64 ",\"files\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
		  job->epoch_unix_ns, size->files, size->bytes);
	fputs(buf_get(&out), stdout); /* not foreign: JSON */
	buf_fini(&out);
}

static void lake_print_line(const struct lake_job *job, const char *path,
			    const struct lake_size *size)
{
	const time_t start = (time_t)(job->epoch_unix_ns / 1000000000u);
	char when[32] = "";
	struct tm tm;

	if (localtime_r(&start, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	text_line(stdout, "%-19s  %-16s %10s %8s files  %s%s", when, job->program,
		  format_bytes((double)size->bytes).text, format_count(size->files).text, path,
		  size->left_out ? " (some files are left out: kymo lake check)" : "");
}

int lake_words_ls(struct lake_request *request)
{
	const char *lake = request->words[0];
	char(*jobs)[LAKE_RUN_BYTES] = NULL;
	char path[KYMO_PATH_BYTES + LAKE_RUN_BYTES];
	struct kymo_error err = { 0 };
	size_t count = 0;

	if (lake_jobs(lake, &jobs, &count, &err))
		return cmds_fail("lake", &err);
	if (request->json)
		fputs("[", stdout);
	for (size_t i = 0; i < count; i++) {
		struct lake_listing listing;
		struct lake_size size;

		snprintf(path, sizeof(path), "%s/%s", lake, jobs[i]);
		if (lake_measure(path, &listing, &size, &err))
			text_line(stderr, "kymo lake: %s", err.text);
		else if (request->json)
			lake_print_json(&listing.job, path, &size, !i);
		else
			lake_print_line(&listing.job, path, &size);
		lake_listing_fini(&listing);
	}
	if (request->json)
		fputs("\n]\n", stdout);
	free(jobs);
	return cmds_finish("lake");
}
