/* Stack samples of profiles. The process with most zones has the rows, as a collector has them;
   they name the process and the thread that was sampled. */
#include "base/grow.h"
#include "import/trace_out.h"

bool trace_sample(struct trace *trace, const struct trace_sample *sample)
{
	struct trace_sample *kept = sample->track == TRACE_NONE ? NULL : TRACE_ADD(&trace->samples);

	if (!kept)
		return false;
	*kept = *sample;
	trace->processes.list[trace->tracks.list[sample->track].process].is_known = true;
	return true;
}

static void samples_write_frames(struct trace_out *out, struct writer_process *process)
{
	const struct trace *trace = out->trace;

	for (size_t i = 1; i < trace->frames.count; i++) {
		const struct trace_frame *frame = &trace->frames.list[i];

		if (trace->native_samples) {
			struct schema_native_frame_row *row = writer_process_row(
				process, SCHEMA_NATIVE_FRAMES);

			row->node = (uint32_t)i;
			row->parent = frame->parent;
			row->name = frame->name;
			row->line = frame->line;
			row->module = frame->module;
		} else {
			struct schema_frame_row *row = writer_process_row(process, SCHEMA_FRAMES);

			row->node = (uint32_t)i;
			row->parent = frame->parent;
			row->name = frame->name;
			row->line = frame->line;
		}
	}
}

/* The names that rows of samples refer to. */
struct sample_words {
	uint32_t period, running;
};

static void write_native(struct trace_out *out, struct writer_process *process,
			 const struct trace_sample *sample, const struct sample_words *words)
{
	const struct trace_lane *lane = &out->lanes.list[trace_out_lane(out, sample->track, 0)];
	struct schema_native_row *row = writer_process_row(process, SCHEMA_NATIVE_SAMPLES);

	row->ts_ticks = trace_out_ticks(out, sample->ts_ns);
	row->stack = sample->node;
	row->pid = trace_out_process(out, sample->track)->control.pid;
	row->tid = lane->tid;
	row->thread_name = trace_name_text(out->trace, KYMO_SOURCE_C, lane->name);
	row->flags = SCHEMA_NATIVE_COMPLETE;
	row->weight_ns = sample->weight_ns;
	row->activity = words->running;
}

static void write_python(struct trace_out *out, struct writer_process *process,
			 const struct trace_sample *sample, const struct sample_words *words)
{
	const struct trace_lane *lane = &out->lanes.list[trace_out_lane(out, sample->track, 0)];
	struct schema_sample_row *row = writer_process_row(process, SCHEMA_SAMPLES);

	row->ts_ticks = trace_out_ticks(out, sample->ts_ns);
	row->stack = sample->node;
	row->pid = trace_out_process(out, sample->track)->control.pid;
	row->tid = lane->tid;
	row->thread_name = trace_name_text(out->trace, KYMO_SOURCE_C, lane->name);
	row->cause = words->period;
	row->state = 'R';
	row->weight_ns = sample->weight_ns;
	row->activity = words->running;
}

int trace_out_samples(struct trace_out *out)
{
	const struct trace *trace = out->trace;
	struct writer_process *process = &out->processes[out->main];
	struct sample_words words;

	if (!trace->samples.count)
		return 0;
	words.period = trace_name_text(out->trace, KYMO_SOURCE_C, "period");
	words.running = trace_name_text(out->trace, KYMO_SOURCE_C, "running");
	samples_write_frames(out, process);
	for (size_t i = 0; i < trace->samples.count; i++) {
		if (!trace_out_lane(out, trace->samples.list[i].track, 0))
			return -1;
		(trace->native_samples ? write_native : write_python)(
			out, process, &trace->samples.list[i], &words);
	}
	return 0;
}
