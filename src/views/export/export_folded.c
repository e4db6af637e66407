/* Folded lines: a;b;c 1234, with the self time in ns, or with samples. */
#include <string.h>

#include "views/export/export_stacks.h"
#include "views/term/text.h"

/* A semicolon separates names, so it is replaced; the last blank ends the stack. */
static void add_folded_name(struct buf *out, const struct name_entry *frame)
{
	size_t from = out->used;

	text_visible(out, frame->name, frame->name_bytes);
	if (!frame->name_bytes)
		buf_char(out, '?');
	for (size_t i = from; i < out->used; i++)
		out->data[i] = (char)(out->data[i] == ';' ? ':' : out->data[i]);
}

static int write_folded(struct export *export, struct export_stacks *own)
{
	int value = export_stacks_value(export, own), rc = 0;

	for (uint32_t i = 1; !rc && i < own->tree.count; i++) {
		size_t depth;

		if (own->tree.nodes[i].values[value] <= 0)
			continue;
		depth = call_tree_path(&own->tree, i, own->path, EXPORT_STACKS_DEPTH);
		for (size_t k = 0; k < depth; k++) {
			if (k)
				buf_char(&export->buf, ';');
			add_folded_name(&export->buf,
					&export->frames.list[own->tree.nodes[own->path[k]].frame]);
		}
		buf_print(&export->buf, " %.0f\n", own->tree.nodes[i].values[value]);
		rc = export_flush(export, false);
	}
	return rc ? rc : export_flush(export, true);
}

static int export_folded_write(struct export *export)
{
	return export_stacks(export, !export->options->samples, export->options->samples,
			     write_folded);
}

const struct export_format export_folded = {
	.name = "folded",
	.extension = ".folded",
	.about = "stacks with their self time, for flamegraph.pl",
	.stacks = true,
	.media_type = "text/plain; charset=utf-8",
	.download = "kymo.folded",
	.write = export_folded_write,
};
