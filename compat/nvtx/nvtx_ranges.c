#include "nvtx.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- events ---- */

static const char no_message[] = "(no message)";

/* The wide message of an event, as UTF-8. */
static struct nvtx_name name_wide(struct nvtx_domain *domain, uint32_t category,
				  const wchar_t *wide, struct nvtx_text *storage)
{
	nvtx_text_wide(storage, wide);
	return nvtx_name_of(domain, category, storage->text);
}

/* The message of an event, as a text; NULL: none. */
static const char *message_text(const struct nvtx_attributes *event, struct nvtx_text *storage)
{
	switch (event->message_type) {
	case NVTX_ASCII: return event->message.ascii;
	case NVTX_WIDE: nvtx_text_wide(storage, event->message.wide); return storage->text;
	case NVTX_REGISTERED:
		return event->message.registered ? event->message.registered->text : NULL;
	default: return NULL;
	}
}

static void payload_text(const struct nvtx_attributes *event, struct nvtx_text *out)
{
	switch (event->payload_type) {
	case NVTX_U64: nvtx_text_print(out, "payload=%" PRIu64, event->payload.u64); break;
	case NVTX_I64: nvtx_text_print(out, "payload=%" PRId64, event->payload.i64); break;
	case NVTX_DOUBLE: nvtx_text_print(out, "payload=%.17g", event->payload.d); break;
	case NVTX_U32: nvtx_text_print(out, "payload=%" PRIu32, event->payload.u32); break;
	case NVTX_I32: nvtx_text_print(out, "payload=%" PRId32, event->payload.i32); break;
	case NVTX_FLOAT: nvtx_text_print(out, "payload=%.9g", (double)event->payload.f); break;
	default: break;
	}
}

/* An event with all that it carries; on the caller's stack, and only where something is carried. */
struct event {
	struct nvtx_decoded decoded;
	struct nvtx_text storage; /* of a wide message */
	struct nvtx_text whole; /* the message, where the name is not all of it */
	struct nvtx_name name;
	uint32_t category;
};

static void event_payloads(struct event *out, struct nvtx_domain *domain,
			   const struct nvtx_payload *payloads, size_t count)
{
	nvtx_decode(&out->decoded, domain, payloads, count);
	if (out->decoded.category)
		out->category = out->decoded.category;
}

static void event_none(struct event *out)
{
	nvtx_text_init(&out->decoded.values);
	nvtx_text_init(&out->decoded.message);
	out->decoded.category = 0;
}

/* A message that is an entry of a payload comes later, and so counts. */
static const char *event_message(const struct event *event, const char *message)
{
	if (event->decoded.message.bytes)
		return event->decoded.message.text;
	return message ? message : no_message;
}

static const char *event_read(struct event *out, struct nvtx_domain *domain,
			      const struct nvtx_attributes *attributes)
{
	const struct nvtx_payload *payloads = (const void *)(uintptr_t)attributes->payload.u64;

	event_none(out);
	out->category = attributes->category;
	if (attributes->payload_type != NVTX_EXTENDED)
		payload_text(attributes, &out->decoded.values);
	else if (attributes->payload_count > 0)
		event_payloads(out, domain, payloads, (size_t)attributes->payload_count);
	return event_message(out, message_text(attributes, &out->storage));
}

static void event_name(struct event *event, struct nvtx_domain *domain, const char *message)
{
	event->name = nvtx_name_of(domain, event->category, message);
	nvtx_text_init(&event->whole);
	if (event->name.whole)
		nvtx_text_add(&event->whole, message, strlen(message));
}

/* ---- push and pop: they nest on their thread ---- */

/* The domain is in the flags, so that a pop finds the latest push of its domain. */
static inline uint32_t range_flags(uint32_t number)
{
	return KYMO_OPEN_NVTX | KYMO_OPEN_REGION | number << 1;
}

static void open_with_texts(const struct nvtx_domain *domain, const struct event *event)
{
	if (!event->name.id)
		return;
	kymo__region_open(event->name.id, range_flags(domain->number));
	if (event->whole.bytes)
		kymo_zone_text(event->whole.text, event->whole.bytes);
	if (event->decoded.values.bytes)
		kymo_zone_text(event->decoded.values.text, event->decoded.values.bytes);
}

/* Not inlined: the texts of an event are some kilobytes of stack. */
static __attribute__((noinline)) void push_with_texts(struct nvtx_domain *domain,
						      const struct nvtx_attributes *attributes)
{
	struct event event;
	const char *message = event_read(&event, domain, attributes);

	event_name(&event, domain, message);
	open_with_texts(domain, &event);
}

/* Without an id (the table of names was full at the domain's first event) nothing is opened: an
   entry without a name would never be closed. */
static inline void push_name(struct nvtx_domain *domain, struct nvtx_name name)
{
	if (KYMO__LIKELY(name.id))
		kymo__region_open(name.id, range_flags(domain->number));
	if (KYMO__UNLIKELY(name.whole && name.id))
		kymo_zone_text(name.whole, strlen(name.whole));
}

static inline bool attributes_fit(const struct nvtx_attributes *attributes)
{
	return attributes && attributes->size >= sizeof(*attributes);
}

static __attribute__((noinline)) void push_other(struct nvtx_domain *domain,
						 const struct nvtx_attributes *attributes)
{
	domain = nvtx_domain_of(domain);
	if (!attributes->payload_type && attributes->message_type == NVTX_ASCII &&
	    attributes->message.ascii)
		push_name(domain,
			  nvtx_name_of(domain, attributes->category, attributes->message.ascii));
	else if (!attributes->payload_type && attributes->message_type == NVTX_REGISTERED &&
		 attributes->message.registered)
		push_name(domain, nvtx_name_of_string(attributes->message.registered,
						      attributes->category));
	else
		push_with_texts(domain, attributes);
}

/* Here is only what programs do most: a registered string of a domain. */
static int domain_push(struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
	uint32_t id;

	if (!kymo__is_on(KYMO_ON_ZONES) || !attributes_fit(attributes))
		return NVTX_NO_LEVEL;
	id = domain && !attributes->payload_type && attributes->message_type == NVTX_REGISTERED &&
			     attributes->message.registered
		     ? nvtx_cached_id(attributes->message.registered, attributes->category)
		     : 0;
	if (KYMO__LIKELY(id))
		kymo__region_open(id, range_flags(domain->number));
	else
		push_other(domain, attributes);
	return NVTX_NO_LEVEL;
}

static int plain_push(const struct nvtx_attributes *attributes)
{
	return domain_push(NULL, attributes);
}

static int push_ascii(const char *message)
{
	if (kymo__is_on(KYMO_ON_ZONES))
		push_name(&nvtx_default_domain,
			  nvtx_name_of(&nvtx_default_domain, 0, message ? message : no_message));
	return NVTX_NO_LEVEL;
}

static int push_wide(const wchar_t *message)
{
	struct nvtx_text storage;

	if (kymo__is_on(KYMO_ON_ZONES))
		push_name(&nvtx_default_domain,
			  name_wide(&nvtx_default_domain, 0, message, &storage));
	return NVTX_NO_LEVEL;
}

static __attribute__((noinline)) void pop_slow(uint32_t flags, uint64_t end_ticks)
{
	uint64_t start_ticks;

	kymo__region_pop(0, flags, end_ticks, &start_ticks);
}

/* Usually the range is the innermost zone. */
static inline void nvtx_ranges_pop(uint32_t flags)
{
	struct kymo__lane *lane = kymo__lane;
	uint64_t end_ticks;

	if (!lane) /* this thread has pushed nothing */
		return;
	end_ticks = kymo__ticks();
	if (KYMO__UNLIKELY(!kymo__region_close_top(lane, flags, end_ticks)))
		pop_slow(flags, end_ticks);
}

static __attribute__((flatten)) int domain_pop(struct nvtx_domain *domain)
{
	nvtx_ranges_pop(range_flags(nvtx_domain_of(domain)->number));
	return NVTX_NO_LEVEL;
}

static __attribute__((flatten)) int plain_pop(void)
{
	nvtx_ranges_pop(range_flags(nvtx_default_domain.number));
	return NVTX_NO_LEVEL;
}

/* ---- start and end: on any thread ---- */

static uint64_t range_start(const struct event *event)
{
	uint64_t range = kymo_range_begin_id(event->name.id);

	if (event->whole.bytes)
		kymo_range_text(range, event->whole.text, event->whole.bytes);
	if (event->decoded.values.bytes)
		kymo_range_text(range, event->decoded.values.text, event->decoded.values.bytes);
	return range;
}

static uint64_t domain_start(struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
	struct event event;
	const char *message;

	if (!kymo__is_on(KYMO_ON_ZONES) || !attributes_fit(attributes))
		return 0;
	domain = nvtx_domain_of(domain);
	message = event_read(&event, domain, attributes);
	event_name(&event, domain, message);
	return range_start(&event);
}

static uint64_t plain_start(const struct nvtx_attributes *attributes)
{
	return domain_start(NULL, attributes);
}

static uint64_t start_ascii(const char *message)
{
	struct event event;

	if (!kymo__is_on(KYMO_ON_ZONES))
		return 0;
	event_none(&event);
	event.category = 0;
	event_name(&event, &nvtx_default_domain, message ? message : no_message);
	return range_start(&event);
}

static uint64_t start_wide(const wchar_t *message)
{
	struct nvtx_text storage;

	if (!kymo__is_on(KYMO_ON_ZONES))
		return 0;
	nvtx_text_wide(&storage, message);
	return start_ascii(storage.text);
}

static void plain_end(uint64_t range)
{
	if (range)
		kymo_range_end(range);
}

static void domain_end(struct nvtx_domain *domain, uint64_t range)
{
	(void)domain;
	plain_end(range);
}

/* ---- marks ---- */

/* The text of a mark: "DOMAIN/CATEGORY; MESSAGE; VALUES", of these what there is. */
static void nvtx_mark(struct event *event, struct nvtx_domain *domain, const char *message)
{
	struct nvtx_text folded, text;
	const char *name = nvtx_name_text(domain, message, &folded);

	nvtx_place(&text, domain, event->category);
	if (name != message)
		nvtx_text_print(&text, "%s%.400s", text.bytes ? "; " : "", message);
	if (text.bytes && event->decoded.values.bytes)
		nvtx_text_add(&text, "; ", 2);
	nvtx_text_add(&text, event->decoded.values.text, event->decoded.values.bytes);
	kymo_mark(name, text.text);
}

static void domain_mark(struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
	struct event event;

	if (!kymo__is_on(KYMO_ON_ZONES) || !attributes_fit(attributes))
		return;
	domain = nvtx_domain_of(domain);
	nvtx_mark(&event, domain, event_read(&event, domain, attributes));
}

static void plain_mark(const struct nvtx_attributes *attributes)
{
	domain_mark(NULL, attributes);
}

static void mark_ascii(const char *message)
{
	struct event event;

	if (!kymo__is_on(KYMO_ON_ZONES))
		return;
	event_none(&event);
	event.category = 0;
	nvtx_mark(&event, &nvtx_default_domain, message ? message : no_message);
}

static void mark_wide(const wchar_t *message)
{
	struct nvtx_text storage;

	if (!kymo__is_on(KYMO_ON_ZONES))
		return;
	nvtx_text_wide(&storage, message);
	mark_ascii(storage.text);
}

/* ---- events that consist of payloads ---- */

static const char *payload_event(struct event *out, struct nvtx_domain *domain,
				 const struct nvtx_payload *payloads, size_t count)
{
	event_none(out);
	out->category = 0;
	event_payloads(out, domain, payloads, count);
	return event_message(out, NULL);
}

static int payload_push(struct nvtx_domain *domain, const struct nvtx_payload *payloads,
			size_t count)
{
	struct event event;

	if (!kymo__is_on(KYMO_ON_ZONES))
		return NVTX_NO_LEVEL;
	domain = nvtx_domain_of(domain);
	event_name(&event, domain, payload_event(&event, domain, payloads, count));
	open_with_texts(domain, &event);
	return NVTX_NO_LEVEL;
}

/* The range is usually the innermost zone; a message does not replace its name. */
static int payload_pop(struct nvtx_domain *domain, const struct nvtx_payload *payloads,
		       size_t count)
{
	struct event event;

	if (kymo__is_on(KYMO_ON_ZONES) && kymo__lane) {
		payload_event(&event, nvtx_domain_of(domain), payloads, count);
		if (event.decoded.values.bytes)
			kymo_zone_text(event.decoded.values.text, event.decoded.values.bytes);
	}
	return domain_pop(domain);
}

static uint64_t payload_start(struct nvtx_domain *domain, const struct nvtx_payload *payloads,
			      size_t count)
{
	struct event event;

	if (!kymo__is_on(KYMO_ON_ZONES))
		return 0;
	domain = nvtx_domain_of(domain);
	event_name(&event, domain, payload_event(&event, domain, payloads, count));
	return range_start(&event);
}

static void payload_end(struct nvtx_domain *domain, uint64_t range,
			const struct nvtx_payload *payloads, size_t count)
{
	struct event event;

	if (range && kymo__is_on(KYMO_ON_ZONES)) {
		payload_event(&event, nvtx_domain_of(domain), payloads, count);
		if (event.decoded.values.bytes)
			kymo_range_text(range, event.decoded.values.text,
					event.decoded.values.bytes);
	}
	plain_end(range);
}

static void payload_mark(struct nvtx_domain *domain, const struct nvtx_payload *payloads,
			 size_t count)
{
	struct event event;

	if (!kymo__is_on(KYMO_ON_ZONES))
		return;
	domain = nvtx_domain_of(domain);
	nvtx_mark(&event, domain, payload_event(&event, domain, payloads, count));
}

static uint8_t domain_is_enabled(const struct nvtx_domain *domain)
{
	(void)domain;
	return kymo_enabled();
}

/* ---- synchronisation objects: the wait for one is a zone ---- */

struct nvtx_object {
	struct nvtx_domain *domain;
	char name[];
};

struct nvtx_object_attributes {
	uint16_t version;
	uint16_t size;
	int32_t message_type;
	union nvtx_message message;
};

static struct nvtx_object *object_create(struct nvtx_domain *domain,
					 const struct nvtx_object_attributes *attributes)
{
	struct nvtx_attributes event = { 0 };
	struct nvtx_object *object;
	struct nvtx_text storage;
	const char *name;

	if (!attributes || attributes->size < sizeof(*attributes))
		return NULL;
	event.message_type = attributes->message_type;
	event.message = attributes->message;
	name = message_text(&event, &storage);
	name = name ? name : no_message;
	object = malloc(sizeof(*object) + strlen(name) + 1);
	if (object) {
		object->domain = nvtx_domain_of(domain);
		memcpy(object->name, name, strlen(name) + 1);
	}
	return object;
}

static void object_destroy(struct nvtx_object *object)
{
	free(object);
}

static void acquire_start(struct nvtx_object *object)
{
	struct nvtx_name name;

	if (!object || !kymo__is_on(KYMO_ON_ZONES))
		return;
	name = nvtx_name_of(object->domain, 0, object->name);
	if (name.id)
		kymo__region_open(name.id, range_flags(0));
}

static void acquire_end(struct nvtx_object *object)
{
	if (object)
		nvtx_ranges_pop(range_flags(0));
}

/* ---- tables ---- */

const struct nvtx_function nvtx_core[] = {
	{ 1, (void *)plain_mark },  { 2, (void *)mark_ascii },	{ 3, (void *)mark_wide },
	{ 4, (void *)plain_start }, { 5, (void *)start_ascii }, { 6, (void *)start_wide },
	{ 7, (void *)plain_end },   { 8, (void *)plain_push },	{ 9, (void *)push_ascii },
	{ 10, (void *)push_wide },  { 11, (void *)plain_pop },	{ 0, NULL },
};

const struct nvtx_function nvtx_core2[] = {
	{ 1, (void *)domain_mark }, { 2, (void *)domain_start }, { 3, (void *)domain_end },
	{ 4, (void *)domain_push }, { 5, (void *)domain_pop },	 { 0, NULL },
};

const struct nvtx_function nvtx_sync[] = {
	{ 1, (void *)object_create }, { 2, (void *)object_destroy }, { 3, (void *)acquire_start },
	{ 4, (void *)acquire_end },   { 5, (void *)acquire_end },    { 0, NULL },
};

const struct nvtx_function nvtx_payload_ranges[] = {
	{ 2, (void *)payload_mark },
	{ 3, (void *)payload_push },
	{ 4, (void *)payload_pop },
	{ 5, (void *)payload_start },
	{ 6, (void *)payload_end },
	{ 7, (void *)domain_is_enabled },
	{ 0, NULL },
};
