/*
 * libcupti.so.12 of the stand-in. Records are CUPTI's structs, written when an operation has ended;
 * a thread of its own returns full buffers. STANDIN_SUBSCRIBE is what cuptiSubscribe() returns, for
 * machines without a driver. -DSEVERAL adds the functions of 13.4, whose types are declared here,
 * so that any version's headers do.
 */
#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "standin.h"
#include "callback_names.h" /* of the headers: runtime_names[], driver_names[] by id */

#define PENDING 65536u
#define SUBSCRIBERS 2
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

typedef void request_2(uint8_t **buffer, size_t *bytes, size_t *records, void *info);
typedef void complete_2(uint8_t *buffer, size_t bytes, size_t valid, void *info);

struct subscriber_params {
	size_t bytes;
	const char *name;
	char *other;
	size_t other_bytes;
	uint8_t several;
};

struct CUpti_Subscriber_st {
	CUpti_CallbackFunc callback; /* NULL: free */
	void *user;
	unsigned char calls[7][2048];
	unsigned char kinds[64]; /* v2 */
	request_2 *request; /* v2 */
	complete_2 *complete;
	uint8_t *buffer;
	size_t bytes, used;
};

static struct CUpti_Subscriber_st subscribers[SUBSCRIBERS]; /* [0] also has what v1 sets */
static int several;
static uint64_t (*timestamp)(void);
static struct operation pending[PENDING];
static size_t pending_count, dropped;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* pending, buffers */
static unsigned char enabled_kinds[64]; /* v1 */
static CUpti_BuffersCallbackRequestFunc request_v1;
static CUpti_BuffersCallbackCompleteFunc complete_v1;
static uint8_t *buffer_v1;
static size_t bytes_v1, used_v1;

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t now(void)
{
	struct timespec at;

	if (timestamp)
		return timestamp();
	clock_gettime(CLOCK_REALTIME, &at);
	return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* CUPTI converts between two readings of both clocks; the stand-in from the narrowest of some. */
static uint64_t converted(uint64_t ns)
{
	static uint64_t base, base_ns, narrowest = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		uint64_t before = standin_now(), here = now(), width = standin_now() - before;

		if (width < narrowest || here - base > 1000000000u) {
			narrowest = width;
			base = here;
			base_ns = before + width / 2;
		}
	}
	return base + (ns - base_ns);
}

/* ---- records --------------------------------------------------------------------------------- */

static size_t make_record(const struct operation *o, uint8_t *out)
{
	uint64_t start = converted(o->start_ns), end = start + (o->end_ns - o->start_ns);

	switch (o->kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		*(KERNEL_T *)out = (KERNEL_T){ .kind = o->kind,
					       .start = start,
					       .end = end,
					       .completed = end,
					       .deviceId = o->device,
					       .contextId = o->context,
					       .streamId = o->stream,
					       .correlationId = o->correlation,
					       .name = o->name,
					       .graphNodeId = o->graph_node,
					       .graphId = o->graph };
		return sizeof(KERNEL_T);
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		*(MEMCPY_T *)out = (MEMCPY_T){ .kind = o->kind,
					       .copyKind = o->copy,
					       .srcKind = o->from,
					       .dstKind = o->to,
					       .bytes = o->bytes,
					       .start = start,
					       .end = end,
					       .deviceId = o->device,
					       .contextId = o->context,
					       .streamId = o->stream,
					       .correlationId = o->correlation };
		return sizeof(MEMCPY_T);
	case CUPTI_ACTIVITY_KIND_MEMSET:
		*(MEMSET_T *)out = (MEMSET_T){ .kind = o->kind,
					       .bytes = o->bytes,
					       .start = start,
					       .end = end,
					       .deviceId = o->device,
					       .contextId = o->context,
					       .streamId = o->stream,
					       .correlationId = o->correlation,
					       .memoryKind = o->to };
		return sizeof(MEMSET_T);
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		*(SYNCHRONIZATION_T *)out = (SYNCHRONIZATION_T){ .kind = o->kind,
								 .type = o->wait,
								 .start = start,
								 .end = end,
								 .correlationId = o->correlation,
								 .contextId = o->context,
								 .streamId = o->stream };
		return sizeof(SYNCHRONIZATION_T);
	default:
		*(MEMORY_T *)out = (MEMORY_T){ .kind = o->kind,
					       .memoryOperationType = o->release ? 2 : 1,
					       .memoryKind = 3,
					       .correlationId = o->correlation,
					       .address = o->address,
					       .bytes = o->bytes,
					       .timestamp = start,
					       .deviceId = o->device,
					       .contextId = o->context };
		return sizeof(MEMORY_T);
	}
}

static size_t record_bytes(const uint8_t *record)
{
	switch (*(const uint32_t *)record) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(KERNEL_T);
	case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(MEMCPY_T);
	case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(MEMSET_T);
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(SYNCHRONIZATION_T);
	case CUPTI_ACTIVITY_KIND_MEMORY2: return sizeof(MEMORY_T);
	default: return 0;
	}
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
					      CUpti_Activity **record)
{
	uint8_t *next = *record ? (uint8_t *)*record + record_bytes((uint8_t *)*record) : buffer;

	if (next >= buffer + valid || !record_bytes(next))
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)next;
	return CUPTI_SUCCESS;
}

/* ---- buffers --------------------------------------------------------------------------------- */

struct full {
	uint8_t *buffer;
	size_t bytes, used;
	struct CUpti_Subscriber_st *of; /* NULL: v1 */
};
static struct full full[256];
static size_t full_count;

/* Kernels in buffers that were handed over, and of those the ones whose buffer came back: in a file
   (STANDIN_COUNTS) that outlives the process. */
static uint64_t *counts;

static void open_counts(void)
{
	const char *path = getenv("STANDIN_COUNTS");
	int file = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
	void *map;

	if (file < 0 || ftruncate(file, 16))
		return;
	map = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	counts = map == MAP_FAILED ? NULL : map;
	close(file);
}

static uint64_t kernels_in(const struct full *one)
{
	CUpti_Activity *record = NULL;
	uint64_t count = 0;

	while (!cuptiActivityGetNextRecord(one->buffer, one->used, &record))
		count += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	return count;
}

static void deliver_full(void)
{
	uint64_t kernels;

	for (;;) {
		struct full one;

		pthread_mutex_lock(&lock);
		if (!full_count) {
			pthread_mutex_unlock(&lock);
			return;
		}
		one = full[0];
		memmove(full, full + 1, --full_count * sizeof(full[0]));
		pthread_mutex_unlock(&lock);
#ifdef SEVERAL
		if (one.of) {
			one.of->complete(one.buffer, one.bytes, one.used, NULL);
			continue;
		}
#endif
		kernels = counts ? kernels_in(&one) : 0;
		if (counts)
			__atomic_fetch_add(&counts[0], kernels, __ATOMIC_SEQ_CST);
		if (complete_v1)
			complete_v1(NULL, 0, one.buffer, one.bytes, one.used);
		if (counts)
			__atomic_fetch_add(&counts[1], kernels, __ATOMIC_SEQ_CST);
	}
}

/* With the lock held. */
static void close_buffer(uint8_t **buffer, size_t *bytes, size_t *used,
			 struct CUpti_Subscriber_st *of)
{
	if (*buffer && full_count < COUNT(full))
		full[full_count++] = (struct full){ *buffer, *bytes, *used, of };
	*buffer = NULL;
	*used = 0;
}

static void write_into(const struct operation *o, uint8_t **buffer, size_t *bytes, size_t *used,
		       struct CUpti_Subscriber_st *of)
{
	uint8_t record[512];
	size_t size = make_record(o, record), most;

	if (*buffer && *used + size > *bytes)
		close_buffer(buffer, bytes, used, of);
	if (!*buffer) {
		*bytes = 0;
#ifdef SEVERAL
		if (of)
			of->request(buffer, bytes, &most, NULL);
#endif
		if (!of && request_v1)
			request_v1(buffer, bytes, &most);
	}
	if (!*buffer) {
		dropped++;
		return;
	}
	memcpy(*buffer + *used, record, size);
	*used += size;
}

static void take_ended(int forced)
{
	uint64_t at = standin_now();
	size_t kept = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < pending_count; i++) {
		const struct operation *o = &pending[i];

		if (o->end_ns > at && !forced) {
			pending[kept++] = *o;
			continue;
		}
		if (o->end_ns > at)
			continue; /* not complete: lost by a forced flush */
		if ((o->traced & 1) && request_v1)
			write_into(o, &buffer_v1, &bytes_v1, &used_v1, NULL);
		for (int s = 0; s < SUBSCRIBERS; s++)
			if ((o->traced >> 1 & 1u << s) && subscribers[s].request)
				write_into(o, &subscribers[s].buffer, &subscribers[s].bytes,
					   &subscribers[s].used, &subscribers[s]);
	}
	pending_count = kept;
	pthread_mutex_unlock(&lock);
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	take_ended((int)flag);
	pthread_mutex_lock(&lock);
	close_buffer(&buffer_v1, &bytes_v1, &used_v1, NULL);
	for (int s = 0; s < SUBSCRIBERS; s++)
		close_buffer(&subscribers[s].buffer, &subscribers[s].bytes, &subscribers[s].used,
			     &subscribers[s]);
	pthread_mutex_unlock(&lock);
	deliver_full();
	return CUPTI_SUCCESS;
}

static void *work(void *unused)
{
	const struct timespec pause = { 0, 1000000 };

	(void)unused;
	for (;;) {
		nanosleep(&pause, NULL);
		take_ended(0);
		deliver_full();
	}
	return NULL;
}

static void begin_work(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, NULL);
}

EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
						  CUpti_BuffersCallbackCompleteFunc complete)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	request_v1 = request;
	complete_v1 = complete;
	pthread_once(&once, begin_work);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	enabled_kinds[kind] = 1;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	enabled_kinds[kind] = 0;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
						     size_t *out)
{
	(void)context, (void)stream;
	*out = __atomic_exchange_n(&dropped, 0, __ATOMIC_RELAXED);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityFlushPeriod(uint32_t ms)
{
	(void)ms;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function)
{
	timestamp = function;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetTimestamp(uint64_t *out)
{
	*out = now();
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **out)
{
	*out = result == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "of the stand-in";
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiFinalize(void)
{
	memset(subscribers, 0, sizeof(subscribers));
	memset(enabled_kinds, 0, sizeof(enabled_kinds));
	request_v1 = NULL;
	return CUPTI_SUCCESS;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **out)
{
	const char *const *names = domain == 1 ? driver_names : runtime_names;
	size_t count = domain == 1 ? COUNT(driver_names) : COUNT(runtime_names);

	*out = (domain == 1 || domain == 2) && id < count ? names[id] : NULL;
	return *out ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

static CUptiResult subscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *user)
{
	const char *refused = getenv("STANDIN_SUBSCRIBE");
	int most = several ? SUBSCRIBERS : 1;

	if (refused)
		return (CUptiResult)atoi(refused);
	for (int i = 0; i < most; i++)
		if (!subscribers[i].callback) {
			subscribers[i].user = user;
			subscribers[i].callback = callback;
			*out = &subscribers[i];
			return CUPTI_SUCCESS;
		}
	return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback,
				  void *user)
{
	return subscribe(out, callback, user);
}

EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	memset(handle, 0, sizeof(*handle));
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle,
				       CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
	if ((unsigned)domain >= 7 || id >= 2048)
		return CUPTI_ERROR_INVALID_PARAMETER;
	handle->calls[domain][id] = enable != 0;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle,
				     CUpti_CallbackDomain domain)
{
	memset(handle->calls[domain], enable != 0, sizeof(handle->calls[domain]));
	return CUPTI_SUCCESS;
}

#ifdef SEVERAL
EXPORT CUptiResult standin_subscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback,
				     void *user,
				     struct subscriber_params *params) __asm__("cuptiSubscribe_v2");
CUptiResult standin_subscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *user,
			      struct subscriber_params *params)
{
	several = several || (params && params->several);
	return subscribe(out, callback, user);
}

EXPORT CUptiResult
standin_register(CUpti_SubscriberHandle handle, request_2 *request,
		 complete_2 *complete) __asm__("cuptiActivityRegisterCallbacks_v2");
CUptiResult standin_register(CUpti_SubscriberHandle handle, request_2 *request,
			     complete_2 *complete)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	handle->request = request;
	handle->complete = complete;
	pthread_once(&once, begin_work);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult standin_enable(CUpti_SubscriberHandle handle, uint32_t kind,
				  void *config) __asm__("cuptiActivityEnable_v2");
CUptiResult standin_enable(CUpti_SubscriberHandle handle, uint32_t kind, void *config)
{
	(void)config;
	handle->kinds[kind] = 1;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult standin_disable(CUpti_SubscriberHandle handle, uint32_t kind,
				   void *config) __asm__("cuptiActivityDisable_v2");
CUptiResult standin_disable(CUpti_SubscriberHandle handle, uint32_t kind, void *config)
{
	(void)config;
	handle->kinds[kind] = 0;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult standin_next(CUpti_SubscriberHandle handle, uint8_t *buffer, size_t valid,
				CUpti_Activity **record) __asm__("cuptiActivityGetNextRecord_v2");
CUptiResult standin_next(CUpti_SubscriberHandle handle, uint8_t *buffer, size_t valid,
			 CUpti_Activity **record)
{
	(void)handle;
	return cuptiActivityGetNextRecord(buffer, valid, record);
}
#endif

/* The id of a function is that of the last of its versions without _ptsz. */
static uint32_t id_of(int runtime, const char *function)
{
	const char *const *names = runtime ? runtime_names : driver_names;
	size_t count = runtime ? COUNT(runtime_names) : COUNT(driver_names),
	       length = strlen(function);

	for (uint32_t i = 1; i < count; i++)
		if (names[i] && !strncmp(names[i], function, length) &&
		    (!names[i][length] || !strncmp(names[i] + length, "_v", 2)))
			return i;
	return 0;
}

static void call(int exit, int runtime, const char *function, const char *symbol,
		 uint32_t correlation, int result)
{
	static __thread struct {
		const char *function;
		uint32_t id;
	} known[8];
	static __thread unsigned turn;
	CUpti_CallbackData data = { .callbackSite = exit,
				    .functionName = function,
				    .functionReturnValue = &result,
				    .symbolName = symbol,
				    .contextUid = 1,
				    .correlationId = correlation };
	uint32_t domain = runtime ? 2 : 1, id = 0;

	for (unsigned i = 0; i < 8 && !id; i++)
		id = known[i].function == function ? known[i].id : 0;
	if (!id) {
		id = id_of(runtime, function);
		known[turn % 8].function = function;
		known[turn++ % 8].id = id;
	}
	for (int s = 0; s < SUBSCRIBERS; s++)
		if (subscribers[s].callback && subscribers[s].calls[domain][id])
			subscribers[s].callback(subscribers[s].user, domain, id, &data);
}

/* For those that collect its kind now, not when it ends. */
static void enqueued(const struct operation *operation)
{
	uint32_t traced = enabled_kinds[operation->kind];

	for (int s = 0; s < SUBSCRIBERS; s++)
		traced |= (uint32_t)subscribers[s].kinds[operation->kind] << 1 << s;
	if (!traced)
		return;
	pthread_mutex_lock(&lock);
	if (pending_count < PENDING) {
		pending[pending_count] = *operation;
		pending[pending_count++].traced = traced;
	} else {
		dropped++;
	}
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void)
{
	static const struct tracer tracer = { call, enqueued };

	open_counts();
	standin_trace(&tracer);
}
