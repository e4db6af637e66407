/*
 * speedscope's own format: for zones a profile per thread, of events that open and close frames, in
 * ns; for samples one profile of weighted stacks. Frames come last, when all are known.
 */
#include "views/export/export.h"

#include <inttypes.h>
#include <string.h>

#include "views/query/json.h"
#include "views/stacks/sampled_stacks.h"
#include "views_sql.h"

struct speedscope {
	uint64_t profiles, events; /* events of the current profile */
	bool open;
	int64_t first_ns, last_ns;
	bool weighted; /* the samples have a time */
	struct buf weights;
};

static void end_profile(struct export *export)
{
	struct speedscope *own = export->own;

	if (own->open)
		buf_print(&export->buf, "\n],\"startValue\":%" PRId64 ",\"endValue\":%" PRId64 "}",
			  own->first_ns, own->last_ns);
	own->open = false;
}

static int export_speedscope_begin_thread(struct zone_walk *walk,
					  const struct zone_walk_thread *thread)
{
	struct export *export = walk->context;
	struct speedscope *own = export->own;
	char name[128];

	end_profile(export);
	snprintf(name, sizeof(name), "%s%s%d of process %d", thread->name,
		 thread->name[0] ? ", thread " : "thread ", thread->tid, thread->pid);
	buf_text(&export->buf, own->profiles++ ? ",\n" : "");
	buf_text(&export->buf, "{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":");
	json_text(&export->buf, name, strlen(name));
	buf_text(&export->buf, ",\"events\":[\n");
	own->events = 0;
	own->open = true;
	own->first_ns = own->last_ns = 0;
	return export_flush(export, false);
}

static int export_speedscope_add_event(struct export *export, char type, uint32_t frame,
				       int64_t at_ns)
{
	struct speedscope *own = export->own;

	own->first_ns = own->events ? own->first_ns : at_ns;
	own->last_ns = at_ns;
	buf_print(&export->buf, "%s{\"type\":\"%c\",\"frame\":%u,\"at\":%" PRId64 "}",
		  own->events++ ? ",\n" : "", type, frame, at_ns);
	return export_flush(export, false);
}

static int export_speedscope_begin_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
					struct zone_walk_zone *parent)
{
	(void)parent;
	return export_speedscope_add_event(walk->context, 'O', zone->frame, zone->start_ns);
}

static int export_speedscope_end_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
				      struct zone_walk_zone *parent)
{
	(void)parent;
	return export_speedscope_add_event(walk->context, 'C', zone->frame, zone->end_ns);
}

static int export_speedscope_add_sample(const struct sampled_stack *stack, void *context)
{
	struct export *export = context;
	struct speedscope *own = export->own;

	buf_text(&export->buf, own->events++ ? ",\n[" : "[");
	for (size_t i = 0; i < stack->depth; i++)
		buf_print(&export->buf, "%s%u", i ? "," : "", stack->frames[i]);
	buf_char(&export->buf, ']');
	buf_print(&own->weights, "%s%" PRIu64, own->events > 1 ? "," : "",
		  own->weighted ? stack->time_ns : stack->count);
	own->last_ns += (int64_t)(own->weighted ? stack->time_ns : stack->count);
	return export_flush(export, false);
}

static int write_samples(struct export *export)
{
	struct speedscope *own = export->own;
	int rc;

	own->weighted = export->options->native ||
			tables_number(export->tables, sql_sampled_time, 0) > 0;
	buf_print(&export->buf,
		  "{\"type\":\"sampled\",\"unit\":\"%s\",\"name\":\"%s "
		  "samples\",\"samples\":[\n",
		  own->weighted ? "nanoseconds" : "none",
		  export_samples_word(export)); /* not foreign: Python or native */
	rc = sampled_stacks_each(export->tables, export->options->native, &export->frames,
				 export_speedscope_add_sample, export, export->err);
	buf_print(&export->buf, "\n],\"weights\":[%s],\"startValue\":0,\"endValue\":%" PRId64 "}",
		  buf_get(&own->weights), own->last_ns);
	export->buf.failed |= own->weights.failed;
	return rc;
}

static int write_zones(struct export *export)
{
	static const struct zone_walk_visitor visitor = { export_speedscope_begin_thread,
							  export_speedscope_begin_zone,
							  export_speedscope_end_zone };
	int rc = export_walk(export, &visitor, false);

	end_profile(export);
	return rc;
}

static int write_frames(struct export *export)
{
	int rc = 0;

	buf_text(&export->buf, "\n],\"shared\":{\"frames\":[\n");
	for (size_t i = 0; !rc && i < export->frames.count; i++) {
		const struct name_entry *frame = &export->frames.list[i];

		buf_text(&export->buf, i ? ",\n{\"name\":" : "{\"name\":");
		json_text(&export->buf, frame->name_bytes ? frame->name : "?",
			  frame->name_bytes ? frame->name_bytes : 1);
		if (frame->file_bytes) {
			buf_text(&export->buf, ",\"file\":");
			json_text(&export->buf, frame->file, frame->file_bytes);
			buf_print(&export->buf, ",\"line\":%d", frame->line);
		}
		buf_char(&export->buf, '}');
		rc = export_flush(export, false);
	}
	return rc;
}

static int export_speedscope_write(struct export *export)
{
	struct speedscope own = { .profiles = 0 };
	char program[256];
	int rc;

	export->own = &own;
	export_program(export, program, sizeof(program));
	buf_text(&export->buf,
		 "{\"$schema\":\"https://www.speedscope.app/"
		 "file-format-schema.json\",\"exporter\":\"kymo " KYMO_VERSION "\",\"name\":");
	json_text(&export->buf, program, strlen(program));
	buf_text(&export->buf, ",\"activeProfileIndex\":0,\"profiles\":[\n");
	rc = export->options->samples ? write_samples(export) : write_zones(export);
	if (!rc)
		rc = write_frames(export);
	buf_text(&export->buf, "\n]}}\n");
	buf_fini(&own.weights);
	return rc ? rc : export_flush(export, true);
}

const struct export_format export_speedscope = {
	.name = "speedscope",
	.extension = ".speedscope.json",
	.about = "zones (or samples) for speedscope.app",
	.stacks = true,
	.media_type = "application/json",
	.download = "kymo.speedscope.json",
	.write = export_speedscope_write,
};
