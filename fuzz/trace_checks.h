/* What the targets for traces share: a reader takes the bytes, all events are counted, and what is
   written of them is a recording. */
#ifndef KYMO_FUZZ_TRACE_CHECKS_H
#define KYMO_FUZZ_TRACE_CHECKS_H

#include <string.h>

#include "scratch.h"
#include "import/import.h"
#include "import/input/input.h"
#include "import/trace.h"
#include "store/store.h"

typedef int trace_reader(struct trace *trace, struct input *input, struct kymo_error *damage,
			 struct kymo_error *err);

static char run_path[600];

/* The folder for files of the target. */
static const char *trace_checks_begin(const char *name)
{
	const char *folder = scratch_make(name);

	snprintf(run_path, sizeof(run_path), "%s/run", folder);
	return folder;
}

static void check_counts(const struct trace *trace)
{
	uint64_t counted = 0;

	for (size_t i = 0; i < trace->categories.count; i++)
		for (int phase = 0; phase < 128; phase++)
			for (int outcome = 0; outcome < TRACE_OUTCOME_COUNT; outcome++)
				counted += trace->categories.list[i].outcomes[phase][outcome];
	if (counted != trace->events)
		abort();
}

static void write_recording(struct trace *trace)
{
	struct import_result result = { 0 };
	struct import_pids taken = { .files = 1, .result = &result };
	struct recording_writer writer;
	struct recording *recording = NULL;

	if (recording_writer_begin(&writer, run_path, NULL))
		return;
	if (trace_write(trace, &writer, &taken, NULL)) {
		recording_writer_discard(&writer);
	} else if (!recording_writer_commit(&writer, NULL)) {
		check_counts(trace);
		if (store_open(run_path, &recording, NULL) || recording->partial)
			abort();
		store_close(recording);
		if (store_remove(run_path, NULL))
			abort();
	}
	free(taken.list);
	intern_fini(&taken.index);
}

/* Files are slow: one input of eight, by its bytes, so that a failure happens again. */
static bool is_written(const uint8_t *data, size_t bytes)
{
	return (intern_hash(1, data, bytes) & 7) == 0;
}

/* True: the reader reported damage, or no trace. */
static bool trace_checks_read(const uint8_t *data, size_t bytes, trace_reader *read)
{
	const struct import_options options = { 0 };
	struct kymo_error damage = { 0 }, err = { 0 };
	struct input input;
	struct trace trace;
	int rc;

	if (input_open_memory(&input, data, bytes, NULL))
		return true;
	trace_begin(&trace, &options, "fuzz");
	rc = read(&trace, &input, &damage, &err);
	if (!rc) {
		check_counts(&trace);
		if (is_written(data, bytes))
			write_recording(&trace);
	}
	input_close(&input);
	trace_end(&trace);
	return rc || damage.code;
}

#endif
