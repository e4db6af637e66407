#include "views/export/export_stacks.h"

#include <errno.h>
#include <stdlib.h>

#include "views/stacks/sampled_stacks.h"

static int export_stacks_begin_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
				    struct zone_walk_zone *parent)
{
	struct export_stacks *own = ((struct export *)walk->context)->own;

	zone->tag = call_tree_child(&own->tree, parent ? (uint32_t)parent->tag : 0, zone->frame);
	return 0;
}

static int export_stacks_end_zone(struct zone_walk *walk, struct zone_walk_zone *zone,
				  struct zone_walk_zone *parent)
{
	struct export_stacks *own = ((struct export *)walk->context)->own;
	struct call_tree_node *node = &own->tree.nodes[zone->tag];

	(void)parent;
	node->values[EXPORT_ZONES]++;
	own->marked = true;
	node->values[EXPORT_SELF_NS] += (double)(zone->end_ns - zone->start_ns - zone->inside_ns);
	return 0;
}

static int export_stacks_add_sample(const struct sampled_stack *stack, void *context)
{
	struct export *export = context;
	struct export_stacks *own = export->own;
	uint32_t node = 0;

	for (size_t i = 0; i < stack->depth; i++)
		node = call_tree_child(&own->tree, node, stack->frames[i]);
	own->tree.nodes[node].values[EXPORT_SAMPLES] += (double)stack->count;
	own->tree.nodes[node].values[EXPORT_SAMPLED_NS] += (double)stack->time_ns;
	own->weighted = own->weighted || stack->time_ns;
	return 0;
}

static int sum_zones(struct export *export)
{
	static const struct zone_walk_visitor visitor = { .begin = export_stacks_begin_zone,
							  .end = export_stacks_end_zone };

	return export_walk(export, &visitor, false);
}

static int sum_samples(struct export *export)
{
	return sampled_stacks_each(export->tables, export->options->native, &export->frames,
				   export_stacks_add_sample, export, export->err);
}

int export_stacks_value(const struct export *export, const struct export_stacks *own)
{
	if (!export->options->samples)
		return EXPORT_SELF_NS;
	return own->weighted ? EXPORT_SAMPLED_NS : EXPORT_SAMPLES;
}

int export_stacks(struct export *export, bool zones, bool samples,
		  int (*write)(struct export *export, struct export_stacks *own))
{
	struct export_stacks *own = calloc(1, sizeof(*own));
	int rc = 0;

	if (!own || call_tree_init(&own->tree)) {
		free(own);
		return error_set(export->err, ENOMEM, "out of memory for stacks");
	}
	export->own = own;
	if (zones)
		rc = sum_zones(export);
	if (!rc && samples)
		rc = sum_samples(export);
	if (!rc)
		rc = write(export, own);
	call_tree_fini(&own->tree);
	free(own);
	return rc;
}
