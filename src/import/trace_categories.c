/* Categories of events, and what became of the events of each. */
#include <string.h>

#include "base/grow.h"
#include "import/trace.h"

static const struct {
	const char *word;
	enum trace_class class;
	uint32_t source;
} known_categories[] = {
	{ "cpu_op", TRACE_CLASS_OPERATOR, KYMO_SOURCE_OP },
	{ "Operator", TRACE_CLASS_OPERATOR, KYMO_SOURCE_OP },
	{ "user_annotation", TRACE_CLASS_ANNOTATION, KYMO_SOURCE_MARK },
	{ "python_function", TRACE_CLASS_PYTHON, KYMO_SOURCE_PYTHON },
	{ "FEE", TRACE_CLASS_PYTHON, KYMO_SOURCE_PYTHON }, /* VizTracer: function entry, exit */
	{ "cuda_runtime", TRACE_CLASS_RUNTIME, KYMO_SOURCE_DEVICE },
	{ "cuda_driver", TRACE_CLASS_RUNTIME, KYMO_SOURCE_DEVICE },
	{ "Runtime", TRACE_CLASS_RUNTIME, KYMO_SOURCE_DEVICE },
	{ "hip_runtime", TRACE_CLASS_RUNTIME, KYMO_SOURCE_DEVICE },
	{ "xpu_runtime", TRACE_CLASS_RUNTIME, KYMO_SOURCE_DEVICE },
	{ "xpu_driver", TRACE_CLASS_RUNTIME, KYMO_SOURCE_DEVICE },
	{ "mtia_runtime", TRACE_CLASS_RUNTIME, KYMO_SOURCE_DEVICE },
	{ "privateuse1_runtime", TRACE_CLASS_RUNTIME, KYMO_SOURCE_DEVICE },
	{ "privateuse1_driver", TRACE_CLASS_RUNTIME, KYMO_SOURCE_DEVICE },
	{ "kernel", TRACE_CLASS_KERNEL, KYMO_SOURCE_DEVICE },
	{ "Kernel", TRACE_CLASS_KERNEL, KYMO_SOURCE_DEVICE },
	{ "gpu_memcpy", TRACE_CLASS_MEMCPY, KYMO_SOURCE_DEVICE },
	{ "Memcpy", TRACE_CLASS_MEMCPY, KYMO_SOURCE_DEVICE },
	{ "gpu_memset", TRACE_CLASS_MEMSET, KYMO_SOURCE_DEVICE },
	{ "Memset", TRACE_CLASS_MEMSET, KYMO_SOURCE_DEVICE },
	{ "gpu_user_annotation", TRACE_CLASS_DEVICE_SPAN, KYMO_SOURCE_DEVICE },
	{ "cuda_profiler_range", TRACE_CLASS_DEVICE_SPAN, KYMO_SOURCE_DEVICE },
	{ "cuda_sync", TRACE_CLASS_SYNC, KYMO_SOURCE_DEVICE },
	{ "Trace", TRACE_CLASS_PROFILER, KYMO_SOURCE_MARK },
	/* sources, as kymo export writes them */
	{ "c", TRACE_CLASS_OWN, KYMO_SOURCE_C },
	{ "python", TRACE_CLASS_OWN, KYMO_SOURCE_PYTHON },
	{ "line", TRACE_CLASS_OWN, KYMO_SOURCE_LINE },
	{ "torch", TRACE_CLASS_OWN, KYMO_SOURCE_TORCH },
	{ "device", TRACE_CLASS_OWN, KYMO_SOURCE_DEVICE },
	{ "op", TRACE_CLASS_OWN, KYMO_SOURCE_OP },
	{ "mark", TRACE_CLASS_OWN, KYMO_SOURCE_MARK },
	{ "itt", TRACE_CLASS_OWN, KYMO_SOURCE_ITT },
	{ "nvtx", TRACE_CLASS_OWN, KYMO_SOURCE_NVTX },
	{ "xla", TRACE_CLASS_OWN, KYMO_SOURCE_XLA },
	{ TRACE_OWN_OPS, TRACE_CLASS_OWN_OP, KYMO_SOURCE_DEVICE },
	{ TRACE_OWN_STEPS, TRACE_CLASS_OWN_STEP, KYMO_SOURCE_MARK },
};
#define CATEGORIES_MOST 256u

static void fill_category(struct trace *trace, struct trace_category *category,
			  const struct json_text *raw)
{
	char text[64];

	json_text_plain(raw, text, sizeof(text));
	category->source = KYMO_SOURCE_MARK;
	category->name = trace_name_text(trace, KYMO_SOURCE_C, text);
	for (size_t i = 0; i < sizeof(known_categories) / sizeof(known_categories[0]); i++)
		if (!strcmp(text, known_categories[i].word)) {
			category->class = known_categories[i].class;
			category->source = known_categories[i].source;
		}
}

static bool same_category(const void *owner, uint32_t number, const void *key)
{
	const struct json_text *raw = key;

	((struct trace *)owner)->compared++;
	return json_text_is(&((const struct trace *)owner)->categories.list[number].raw, raw->at,
			    raw->bytes);
}

static uint32_t add_category(struct trace *trace, const struct json_text *raw, uint64_t hash)
{
	struct trace_category *category = TRACE_ADD(&trace->categories);

	if (!category)
		return TRACE_NONE;
	category->raw.at = trace_keep(trace, raw->bytes ? raw->at : "", raw->bytes);
	category->raw.bytes = raw->bytes;
	if (!category->raw.at ||
	    intern_add(&trace->indexes[TRACE_INDEX_CATEGORIES], hash) == INTERN_NONE) {
		trace->categories.count--;
		return TRACE_NONE;
	}
	fill_category(trace, category, raw);
	return (uint32_t)(trace->categories.count - 1);
}

uint32_t trace_category(struct trace *trace, const struct json_text *raw)
{
	const struct intern *index = &trace->indexes[TRACE_INDEX_CATEGORIES];
	uint64_t hash;
	uint32_t number;

	if (trace->last_category < trace->categories.count &&
	    same_category(trace, trace->last_category, raw))
		return trace->last_category;
	hash = intern_hash(trace->seed, raw->bytes ? raw->at : "", raw->bytes);
	number = intern_find(index, hash, same_category, trace, raw);
	if (number == INTERN_NONE)
		number = trace->categories.count >= CATEGORIES_MOST
				 ? CATEGORIES_MOST - 1
				 : add_category(trace, raw, hash);
	if (number != TRACE_NONE)
		trace->last_category = number;
	return number;
}

enum trace_class trace_class_of(struct trace *trace, const struct json_text *category)
{
	const uint32_t number = trace_category(trace, category);

	return number == TRACE_NONE ? TRACE_CLASS_OTHER : trace->categories.list[number].class;
}

void trace_count(struct trace *trace, const struct json_text *category, char phase,
		 enum trace_outcome outcome, int64_t events)
{
	const struct json_text none = { .at = "" };
	uint32_t number = trace_category(trace, category ? category : &none);

	trace->events += events > 0 ? (uint64_t)events : 0;
	if (number != TRACE_NONE)
		trace->categories.list[number].outcomes[phase & 127][outcome] += (uint64_t)events;
}

/* An event that was counted as a row has none after all. */
void trace_recount(struct trace *trace, uint32_t category, char phase, enum trace_outcome from,
		   enum trace_outcome to)
{
	uint64_t *counts = trace->categories.list[category].outcomes[phase & 127];

	counts[from]--;
	counts[to]++;
}
