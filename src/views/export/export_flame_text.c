/* The flame graph of `kymo flame` on a terminal: a tree of callers, the widest first. */
#include <errno.h>
#include <stdlib.h>

#include "views/export/flame_layout.h"
#include "views/term/format.h"
#include "views/term/text.h"

#define LEAST_SHARE 0.01
#define DEPTH_MOST 60
#define BAR_COLUMNS 12

struct tree {
	struct export *export;
	const struct call_tree *calls;
	struct flame_layout layout;
	uint32_t *first, *next; /* children of a node, the widest first; 0: none */
	struct text_style style;
};

/* Children that are too narrow are left out. */
static void insert_child(struct tree *tree, uint32_t node)
{
	const struct flame_layout_box *boxes = tree->layout.boxes;
	uint32_t *at = &tree->first[tree->calls->nodes[node].parent];

	if (boxes[node].width < LEAST_SHARE)
		return;
	while (*at && boxes[*at].width >= boxes[node].width)
		at = &tree->next[*at];
	tree->next[node] = *at;
	*at = node;
}

/*   61.2 %  ███████▍      step (/home/ada/train.py:22)  */
static void print_node(struct tree *tree, uint32_t node)
{
	const struct name_entry *frame = &tree->export->frames.list[tree->calls->nodes[node].frame];
	const struct flame_layout_box *box = &tree->layout.boxes[node];
	size_t indent = 2 * ((size_t)box->depth - 1), used = 11 + BAR_COLUMNS + indent;
	struct buf bar = { 0 }, line = { 0 };

	buf_print(&line, "  %5.1f %%  ", 100 * box->width);
	text_bar(&bar, box->width, BAR_COLUMNS, &tree->style);
	text_pad(&line, buf_get(&bar), BAR_COLUMNS, -1);
	for (size_t i = 0; i <= indent; i++)
		buf_char(&line, ' ');
	text_fit(&line, frame->name_bytes ? frame->name : "?",
		 (size_t)tree->style.columns > used + 20 ? (size_t)tree->style.columns - used : 20,
		 0, &tree->style);
	fprintf(tree->export->out, "%s\n", buf_get(&line));
	buf_fini(&bar);
	buf_fini(&line);
}

static void print_children(struct tree *tree, uint32_t node)
{
	for (uint32_t child = tree->first[node]; child; child = tree->next[child]) {
		print_node(tree, child);
		if (tree->layout.boxes[child].depth < DEPTH_MOST)
			print_children(tree, child);
	}
}

static void print_tree(struct tree *tree)
{
	for (uint32_t i = 1; i < tree->calls->count; i++)
		insert_child(tree, i);
	if (export_stacks_value(tree->export, tree->export->own) == EXPORT_SAMPLES)
		/* not foreign: Python or native */
		fprintf(tree->export->out, "%s samples of %s stacks\n",
			format_count((uint64_t)tree->layout.whole).text,
			export_samples_word(tree->export));
	else if (tree->export->options->samples)
		/* not foreign: Python or native */
		fprintf(tree->export->out, "%s in samples of %s stacks\n",
			format_duration(tree->layout.whole, tree->style.utf8).text,
			export_samples_word(tree->export));
	else
		fprintf(tree->export->out, "%s in zones\n",
			format_duration(tree->layout.whole, tree->style.utf8).text);
	print_children(tree, 0);
}

static int write_flame_text(struct export *export, struct export_stacks *own)
{
	struct tree tree = { .export = export,
			     .calls = &own->tree,
			     .first = calloc(own->tree.count, sizeof(uint32_t)),
			     .next = calloc(own->tree.count, sizeof(uint32_t)),
			     .style = text_style_of(export->out) };
	int value = export_stacks_value(export, own);
	int rc = flame_layout_make(&tree.layout, &own->tree, value, LEAST_SHARE);

	if (rc || !tree.first || !tree.next)
		rc = error_set(export->err, ENOMEM, "out of memory for the flame graph");
	else if (tree.layout.whole <= 0)
		rc = error_set(export->err, ENODATA,
			       "no stack samples and no zones recorded; kymo run samples stacks, "
			       "kymo run --python records every call");
	else
		print_tree(&tree);
	flame_layout_fini(&tree.layout);
	free(tree.first);
	free(tree.next);
	return rc;
}

static int export_flame_text_write(struct export *export)
{
	return export_stacks(export, !export->options->samples, export->options->samples,
			     write_flame_text);
}

const struct export_format export_flame_text = {
	.name = "text",
	.about = "a tree of callers",
	.stacks = true,
	.write = export_flame_text_write,
};
