/* A flame graph as one SVG file, the outermost frames at the top. It has no script: a browser shows
   the whole name of a box under the pointer. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "views/export/flame_layout.h"
#include "views/term/format.h"
#include "views/term/text.h"

#define WIDTH 1200.0
#define MARGIN 10.0
#define LINE 17.0
#define HEAD 46.0
#define LETTER 6.6 /* width of a character of the font below */
#define LEAST_PIXELS 0.4

static void add_xml(struct buf *out, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		switch (text[i]) {
		case '&': buf_text(out, "&amp;"); break;
		case '<': buf_text(out, "&lt;"); break;
		case '>': buf_text(out, "&gt;"); break;
		case '"': buf_text(out, "&quot;"); break;
		default: buf_char(out, text[i]); break;
		}
	}
}

static void svg_add_label(struct buf *out, const struct name_entry *frame, size_t columns)
{
	struct buf visible = { 0 }, fitted = { 0 };

	text_visible(&visible, frame->name, frame->name_bytes);
	if (!visible.used)
		buf_char(&visible, '?');
	text_fit(&fitted, buf_get(&visible), columns, 0, &(struct text_style){ .utf8 = true });
	add_xml(out, buf_get(&fitted), fitted.used);
	buf_fini(&visible);
	buf_fini(&fitted);
}

/* The file of a frame, which samples have in the name: "step (/home/ada/train.py:22)". Else the
   name. */
static const char *svg_file_of(const struct name_entry *frame, size_t *bytes)
{
	const char *open = memrchr(frame->name, '(', frame->name_bytes);
	const char *end = frame->name + frame->name_bytes;
	const char *colon = open ? memrchr(open, ':', (size_t)(end - open)) : NULL;

	*bytes = frame->file_bytes ? frame->file_bytes
		 : colon	   ? (size_t)(colon - open)
				   : frame->name_bytes;
	return frame->file_bytes ? frame->file : colon ? open : frame->name;
}

/* Frames of one file have one colour, which shows modules at a glance. */
static uint32_t hue_of(const struct name_entry *frame)
{
	uint32_t hash = 2166136261u;
	size_t bytes;
	const char *text = svg_file_of(frame, &bytes);

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return hash % 300; /* without the reds next to 360, which mean an error elsewhere */
}

static void add_amount(struct buf *out, double amount, bool samples)
{
	if (samples)
		buf_print(out, "%s sample%s", format_count((uint64_t)(amount + 0.5)).text,
			  amount > 0.5 && amount < 1.5 ? "" : "s");
	else
		buf_text(out, format_duration(amount, true).text);
}

static bool svg_shows_counts(const struct export *export)
{
	return export_stacks_value(export, export->own) == EXPORT_SAMPLES;
}

static void add_box(struct export *export, const struct flame_layout *layout,
		    const struct flame_layout_box *box, const struct name_entry *frame)
{
	double x = MARGIN + box->left * (WIDTH - 2 * MARGIN), w = box->width * (WIDTH - 2 * MARGIN);
	double y = HEAD + (box->depth - 1) * LINE;
	struct buf *out = &export->buf;

	buf_print(out,
		  "<g><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"16\" "
		  "fill=\"hsl(%" PRIu32 ",55%%,74%%)\"/><title>",
		  x, y, w > 0.8 ? w - 0.4 : w, hue_of(frame));
	svg_add_label(out, frame, 400);
	buf_print(out, ", %.1f %%, ", 100 * box->width);
	add_amount(out, box->width * layout->whole, svg_shows_counts(export));
	buf_text(out, "</title>");
	if (w >= 4 * LETTER) {
		buf_print(out, "<text x=\"%.2f\" y=\"%.0f\">", x + 3, y + 12);
		svg_add_label(out, frame, (size_t)((w - 6) / LETTER));
		buf_text(out, "</text>");
	}
	buf_text(out, "</g>\n");
}

static void add_head(struct export *export, const struct flame_layout *layout)
{
	struct buf *out = &export->buf;
	char program[256];

	export_program(export, program, sizeof(program));
	buf_print(out,
		  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		  "font-family=\"ui-monospace,Menlo,Consolas,monospace\" font-size=\"11\">\n"
		  "<style>rect{stroke:#fff;stroke-width:.4}g:hover rect{stroke:#000;stroke-width:1}"
		  "text{fill:#111;pointer-events:none}</style>\n"
		  "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		  "<text x=\"%.0f\" y=\"26\" font-size=\"15\">",
		  WIDTH, HEAD + layout->deepest * LINE + MARGIN, MARGIN);
	svg_add_label(
		out,
		&(struct name_entry){ .name = program, .name_bytes = (uint32_t)strlen(program) },
		80);
	buf_text(out, ": ");
	add_amount(out, layout->whole, svg_shows_counts(export));
	if (export->options->samples)
		buf_print(out, " of %s stacks", export_samples_word(export)); /* not foreign */
	else
		buf_text(out, " in zones");
	buf_text(out, "</text>\n");
}

static int write_svg(struct export *export, struct export_stacks *own)
{
	int value = export_stacks_value(export, own);
	double least = LEAST_PIXELS / (WIDTH - 2 * MARGIN);
	struct flame_layout layout;
	int rc = flame_layout_make(&layout, &own->tree, value, least);

	if (rc)
		return error_set(export->err, ENOMEM, "out of memory for the flame graph");
	add_head(export, &layout);
	for (size_t i = 1; !rc && i < own->tree.count && layout.whole > 0; i++) {
		if (layout.boxes[i].width >= least)
			add_box(export, &layout, &layout.boxes[i],
				&export->frames.list[own->tree.nodes[i].frame]);
		rc = export_flush(export, false);
	}
	flame_layout_fini(&layout);
	buf_text(&export->buf, "</svg>\n");
	return rc ? rc : export_flush(export, true);
}

static int export_svg_write(struct export *export)
{
	return export_stacks(export, !export->options->samples, export->options->samples,
			     write_svg);
}

const struct export_format export_svg = {
	.name = "svg",
	.extension = ".svg",
	.about = "a flame graph of zones (or samples) as a picture",
	.stacks = true,
	.media_type = "image/svg+xml",
	.download = "kymo.svg",
	.write = export_svg_write,
};
