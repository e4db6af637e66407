#include "nvtx.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- domains, categories, strings ---- */

static struct nvtx_domain *domain_create_wide(const wchar_t *name)
{
	struct nvtx_text text;

	nvtx_text_wide(&text, name);
	return nvtx_domain_create(text.text);
}

static void domain_name_category_wide(struct nvtx_domain *domain, uint32_t category,
				      const wchar_t *name)
{
	struct nvtx_text text;

	nvtx_text_wide(&text, name);
	nvtx_category_name(domain, category, text.text);
}

static void name_category(uint32_t category, const char *name)
{
	nvtx_category_name(NULL, category, name);
}

static void name_category_wide(uint32_t category, const wchar_t *name)
{
	domain_name_category_wide(NULL, category, name);
}

static struct nvtx_string *register_wide(struct nvtx_domain *domain, const wchar_t *string)
{
	struct nvtx_text text;

	nvtx_text_wide(&text, string);
	return nvtx_string_register(domain, text.text);
}

/* ---- threads and other resources ---- */

static void nvtx_values_name_thread(uint32_t tid, const char *name)
{
	if (name)
		kymo_thread_name_tid((int32_t)tid, name);
}

static void name_thread_wide(uint32_t tid, const wchar_t *name)
{
	struct nvtx_text text;

	nvtx_text_wide(&text, name);
	kymo_thread_name_tid((int32_t)tid, text.text);
}

/* What is not a thread becomes a mark, with the name that the program gave it. */
static void name_resource(const char *kind, uint64_t identifier, const char *name)
{
	struct nvtx_text text;

	if (!name || !kymo_enabled())
		return;
	nvtx_text_init(&text);
	nvtx_text_print(&text, "%s %#" PRIx64 ": ", kind, identifier);
	nvtx_text_add(&text, name, strlen(name));
	kymo_mark("NVTX resource name", text.text);
}

/* By class and index of the ABI. */
static const struct {
	uint32_t type;
	const char *kind;
} kinds[] = {
	{ 1 << 16 | 1, "pointer" },	   { 1 << 16 | 2, "handle" },
	{ 3 << 16 | 1, "mutex" },	   { 3 << 16 | 2, "condition variable" },
	{ 4 << 16 | 1, "CUDA device" },	   { 4 << 16 | 2, "CUDA context" },
	{ 4 << 16 | 3, "CUDA stream" },	   { 4 << 16 | 4, "CUDA event" },
	{ 5 << 16 | 0, "CUDA device" },	   { 5 << 16 | 1, "CUDA stream" },
	{ 5 << 16 | 2, "CUDA event" },	   { 6 << 16 | 1, "OpenCL device" },
	{ 6 << 16 | 2, "OpenCL context" }, { 6 << 16 | 3, "OpenCL queue" },
	{ 6 << 16 | 4, "OpenCL memory" },  { 6 << 16 | 5, "OpenCL sampler" },
	{ 6 << 16 | 6, "OpenCL program" }, { 6 << 16 | 7, "OpenCL event" },
};
#define THREAD_NATIVE (1 << 16 | 3)
#define THREAD_POSIX (1 << 16 | 4)

struct nvtx_resource {
	uint16_t version;
	uint16_t size;
	int32_t type;
	uint64_t identifier;
	int32_t message_type;
	union nvtx_message message;
};

static const char *resource_kind(uint32_t type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == type)
			return kinds[i].kind;
	return "resource";
}

static const char *resource_name(const struct nvtx_resource *resource, struct nvtx_text *storage)
{
	if (resource->message_type == NVTX_ASCII)
		return resource->message.ascii;
	if (resource->message_type == NVTX_REGISTERED)
		return resource->message.registered ? resource->message.registered->text : NULL;
	if (resource->message_type != NVTX_WIDE)
		return NULL;
	nvtx_text_wide(storage, resource->message.wide);
	return storage->text;
}

/* A handle that is not NULL; nothing belongs to it. */
static void *resource_create(struct nvtx_domain *domain, const struct nvtx_resource *resource)
{
	static char handle;
	struct nvtx_text storage;
	const char *name;

	(void)domain;
	if (!resource || resource->size < sizeof(*resource))
		return NULL;
	name = resource_name(resource, &storage);
	if (!name)
		return &handle;
	if (resource->type == THREAD_NATIVE)
		kymo_thread_name_tid((int32_t)resource->identifier, name);
	else if (resource->type == THREAD_POSIX &&
		 resource->identifier == (uintptr_t)pthread_self())
		kymo_thread_name(name);
	else
		name_resource(resource_kind((uint32_t)resource->type), resource->identifier, name);
	return &handle;
}

static void resource_destroy(void *resource)
{
	(void)resource;
}

/* The functions that name one kind of object, with narrow and wide names. */
#define NVTX_NAMING(function, type, kind) \
	static void function(type object, const char *name) \
	{ \
		name_resource(kind, (uint64_t)(uintptr_t)object, name); \
	} \
	static void function##_wide(type object, const wchar_t *name) \
	{ \
		struct nvtx_text text; \
\
		nvtx_text_wide(&text, name); \
		name_resource(kind, (uint64_t)(uintptr_t)object, text.text); \
	}

NVTX_NAMING(name_cuda_device, int, "CUDA device")
NVTX_NAMING(name_cuda_context, void *, "CUDA context")
NVTX_NAMING(name_cuda_stream, void *, "CUDA stream")
NVTX_NAMING(name_cuda_event, void *, "CUDA event")
NVTX_NAMING(name_cl_device, void *, "OpenCL device")
NVTX_NAMING(name_cl_context, void *, "OpenCL context")
NVTX_NAMING(name_cl_queue, void *, "OpenCL queue")
NVTX_NAMING(name_cl_memory, void *, "OpenCL memory")
NVTX_NAMING(name_cl_sampler, void *, "OpenCL sampler")
NVTX_NAMING(name_cl_program, void *, "OpenCL program")
NVTX_NAMING(name_cl_event, void *, "OpenCL event")

/* ---- counters ---- */

#define COUNTERS_MOST 4096u
#define DYNAMIC_IDS (1ull << 32)

struct nvtx_counter {
	struct nvtx_domain *domain;
	uint64_t id;
	uint64_t schema;
	struct nvtx_counter *next;
	char name[];
};

struct nvtx_counter_attributes {
	size_t struct_size;
	uint64_t schema;
	const char *name, *description;
	uint64_t scope;
	const void *semantics;
	uint64_t id; /* 0: none yet */
};

static struct nvtx_counter *counters; /* as the lists of nvtx_names.c */
static uint32_t counter_count;

/* The latest one with the id. */
static struct nvtx_counter *counter_find(const struct nvtx_domain *domain, uint64_t id)
{
	struct nvtx_counter *counter = kymo__load_acquire(&counters);

	while (counter && (counter->id != id || counter->domain != domain))
		counter = counter->next;
	return counter;
}

static uint64_t counter_register(struct nvtx_domain *domain,
				 const struct nvtx_counter_attributes *attributes)
{
	uint32_t number = kymo__add_fetch_relaxed(&counter_count, 1);
	struct nvtx_counter *counter;
	const char *name;

	if (!attributes || attributes->struct_size < sizeof(*attributes) || number > COUNTERS_MOST)
		return 0;
	name = attributes->name ? attributes->name : "counter";
	counter = calloc(1, sizeof(*counter) + strlen(name) + 1);
	if (!counter)
		return 0;
	counter->domain = nvtx_domain_of(domain);
	counter->id = attributes->id ? attributes->id : DYNAMIC_IDS + number;
	counter->schema = attributes->schema;
	memcpy(counter->name, name, strlen(name));
	counter->next = kymo__load_relaxed(&counters);
	while (!kymo__cas_weak_release(&counters, &counter->next, counter))
		;
	return counter->id;
}

static void nvtx_values_counter_write(void *context, const char *entry, double value)
{
	const struct nvtx_counter *counter = context;
	const char *domain = counter->domain->name;
	struct nvtx_text name;

	nvtx_text_init(&name);
	nvtx_text_add(&name, counter->name, strlen(counter->name));
	if (*entry)
		nvtx_text_print(&name, ".%.200s", entry);
	kymo_counter_id(kymo_name_full(name.text, name.bytes, domain, strlen(domain), 0,
				       KYMO_SOURCE_NVTX, 0),
			value);
}

static void counter_double(struct nvtx_domain *domain, uint64_t id, double value)
{
	struct nvtx_counter *counter;

	if (!kymo_enabled())
		return;
	counter = counter_find(nvtx_domain_of(domain), id);
	if (counter)
		nvtx_values_counter_write(counter, "", value);
}

static void counter_integer(struct nvtx_domain *domain, uint64_t id, int64_t value)
{
	counter_double(domain, id, (double)value);
}

static void counter_sample(struct nvtx_domain *domain, uint64_t id, const void *values,
			   size_t bytes)
{
	struct nvtx_payload sample = { 0, bytes, values };
	struct nvtx_counter *counter;

	domain = nvtx_domain_of(domain);
	if (!values || !kymo_enabled())
		return;
	counter = counter_find(domain, id);
	if (!counter)
		return;
	sample.schema = counter->schema;
	nvtx_decode_numbers(domain, &sample, nvtx_values_counter_write, counter);
}

#define COUNTER_IS_ZERO 0u

static void counter_without_value(struct nvtx_domain *domain, uint64_t id, uint8_t reason)
{
	if (reason == COUNTER_IS_ZERO)
		counter_double(domain, id, 0);
}

/* ---- tables ---- */

const struct nvtx_function nvtx_core_names[] = {
	{ 12, (void *)name_category },
	{ 13, (void *)name_category_wide },
	{ 14, (void *)nvtx_values_name_thread },
	{ 15, (void *)name_thread_wide },
	{ 0, NULL },
};

const struct nvtx_function nvtx_core2_names[] = {
	{ 6, (void *)resource_create },
	{ 7, (void *)resource_destroy },
	{ 8, (void *)nvtx_category_name },
	{ 9, (void *)domain_name_category_wide },
	{ 10, (void *)nvtx_string_register },
	{ 11, (void *)register_wide },
	{ 12, (void *)nvtx_domain_create },
	{ 13, (void *)domain_create_wide },
	{ 0, NULL },
};

#define NVTX_BOTH(index, function) \
	{ index, (void *)(function) }, \
	{ \
		(index) + 1, (void *)(function##_wide) \
	}

const struct nvtx_function nvtx_cuda[] = {
	NVTX_BOTH(1, name_cuda_device),
	NVTX_BOTH(3, name_cuda_context),
	NVTX_BOTH(5, name_cuda_stream),
	NVTX_BOTH(7, name_cuda_event),
	{ 0, NULL },
};

const struct nvtx_function nvtx_cudart[] = {
	NVTX_BOTH(1, name_cuda_device),
	NVTX_BOTH(3, name_cuda_stream),
	NVTX_BOTH(5, name_cuda_event),
	{ 0, NULL },
};

const struct nvtx_function nvtx_opencl[] = {
	NVTX_BOTH(1, name_cl_device),  NVTX_BOTH(3, name_cl_context),
	NVTX_BOTH(5, name_cl_queue),   NVTX_BOTH(7, name_cl_memory),
	NVTX_BOTH(9, name_cl_sampler), NVTX_BOTH(11, name_cl_program),
	NVTX_BOTH(13, name_cl_event),  { 0, NULL },
};

const struct nvtx_function nvtx_counters[] = {
	{ 0, (void *)counter_register },      { 1, (void *)counter_integer },
	{ 2, (void *)counter_double },	      { 3, (void *)counter_sample },
	{ 4, (void *)counter_without_value }, { 0, NULL },
};
