/*
 * Every kind of event of NVTX 3, with its real headers.
 *
 *	nvtx_checks            all kinds, once
 *	nvtx_checks kill       ends by SIGKILL with open ranges
 *	nvtx_checks names N    N ranges with names of their own
 *	nvtx_checks plugin SO  run() of a library with a part of NVTX of its own, then this one
 *	nvtx_checks fork       ranges before a fork, in the child, and after it
 *	nvtx_checks broken     payloads and schemas that are wrong
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSync.h>

static nvtxDomainHandle_t domain, other;

static nvtxEventAttributes_t event(const char *message)
{
	nvtxEventAttributes_t attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
	attributes.message.ascii = message;
	return attributes;
}

/* ---- the default domain ---- */

static void plain(void)
{
	nvtxEventAttributes_t with = event("push ex");

	nvtxMarkA("mark ascii");
	nvtxMarkW(L"mark wide \x20ac");
	nvtxRangePushA("push ascii");
	nvtxRangePushW(L"push wide \x1f40d");
	nvtxRangePushEx(&with);
	printf("%d\n", nvtxRangePop());
	nvtxRangePop();
	nvtxRangePop();
	nvtxRangePop(); /* one too many */
	with = event("mark ex");
	with.payloadType = NVTX_PAYLOAD_TYPE_INT32;
	with.payload.iValue = -3;
	nvtxMarkEx(&with);
	nvtxRangeEnd(nvtxRangeStartA("start ascii"));
	nvtxRangeEnd(nvtxRangeStartW(L"start wide"));
	nvtxNameCategoryA(7, "seven");
	nvtxNameCategoryW(8, L"eight");
	with = event("categorised");
	with.category = 7;
	nvtxRangePushEx(&with);
	nvtxRangePop();
	with.category = 9; /* without a name */
	nvtxRangePushEx(&with);
	nvtxRangePop();
}

/* ---- domains, registered strings, payloads ---- */

static void payloads(void)
{
	nvtxEventAttributes_t with = event("payload");

	with.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
	with.payload.ullValue = 1ull << 63;
	nvtxDomainRangePushEx(domain, &with);
	nvtxDomainRangePop(domain);
	with.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	with.payload.dValue = 0.5;
	nvtxDomainRangePushEx(domain, &with);
	nvtxDomainRangePop(domain);
}

static void domains(void)
{
	nvtxStringHandle_t narrow = nvtxDomainRegisterStringA(domain, "registered");
	nvtxStringHandle_t wide = nvtxDomainRegisterStringW(domain, L"registered wide");
	nvtxEventAttributes_t with = event(NULL);

	with.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	with.message.registered = narrow;
	nvtxDomainRangePushEx(domain, &with);
	with.message.registered = wide;
	/* Ranges of two domains need not nest. */
	nvtxDomainRangePushEx(other, &with);
	nvtxDomainRangePop(domain);
	nvtxDomainRangePop(other);
	nvtxDomainNameCategoryA(domain, 1, "io");
	with.category = 1;
	nvtxDomainRangePushEx(domain, &with);
	nvtxDomainRangePop(domain);
	nvtxDomainMarkEx(domain, &with);
	with = event(NULL);
	with.messageType = NVTX_MESSAGE_UNKNOWN;
	nvtxDomainRangePushEx(domain, &with);
	nvtxDomainRangePop(domain);
	payloads();
}

/* ---- threads ---- */

static nvtxRangeId_t crossing;
static pthread_barrier_t barrier;
static uint32_t worker_tid;

static void *worker(void *unused)
{
	(void)unused;
	worker_tid = (uint32_t)syscall(SYS_gettid);
	pthread_barrier_wait(&barrier); /* its number is known */
	pthread_barrier_wait(&barrier); /* it has a name */
	nvtxDomainRangeEnd(domain, crossing);
	nvtxRangePushA("by the worker");
	nvtxRangePop();
	pthread_barrier_wait(&barrier); /* it has recorded */
	pthread_barrier_wait(&barrier); /* it has another name */
	nvtxRangeEnd(nvtxRangeStartA("range of the worker"));
	return NULL;
}

static void threads(void)
{
	nvtxEventAttributes_t with = event("crossing");
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "nvtx main");
	crossing = nvtxDomainRangeStartEx(domain, &with);
	pthread_create(&thread, NULL, worker, NULL);
	pthread_barrier_wait(&barrier);
	nvtxNameOsThreadA(worker_tid, "named early");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	nvtxNameOsThreadW(worker_tid, L"worker of nvtx");
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
}

/* ---- schemas ---- */

struct inner {
	int16_t x, y;
};

struct sample {
	uint32_t count;
	double ratio;
	float values[3];
	uint8_t operation; /* an enumeration of one byte */
	struct inner place;
	const char *text;
	char fixed[6];
	nvtxStringHandle_t string;
	uint64_t hidden;
};

static uint64_t enumeration(void)
{
	static const nvtxPayloadEnum_t values[] = { { "SUM", 0, 0 }, { "MAX", 2, 0 } };
	nvtxPayloadEnumAttr_t attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
			       NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
			       NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
	attributes.entries = values;
	attributes.numEntries = 2;
	attributes.sizeOfEnum = 1;
	return nvtxPayloadEnumRegister(domain, &attributes);
}

static uint64_t schema(uint64_t type, const nvtxPayloadSchemaEntry_t *entries, size_t count,
		       uint64_t id)
{
	nvtxPayloadSchemaAttr_t attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
			       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
	if (id)
		attributes.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
	attributes.type = type;
	attributes.entries = entries;
	attributes.numEntries = count;
	attributes.schemaId = id;
	return nvtxPayloadSchemaRegister(domain, &attributes);
}

static nvtxPayloadSchemaEntry_t entry(const char *name, uint64_t type, uint64_t flags,
				      uint64_t detail)
{
	nvtxPayloadSchemaEntry_t one;

	memset(&one, 0, sizeof(one));
	one.name = name;
	one.type = type;
	one.flags = flags;
	one.arrayOrUnionDetail = detail;
	return one;
}

/* Offsets are left to the tool: they have to be those of the compiler. */
static void static_schema(void)
{
	const nvtxPayloadSchemaEntry_t inner[] = { entry("x", NVTX_PAYLOAD_ENTRY_TYPE_INT16, 0, 0),
						   entry("y", NVTX_PAYLOAD_ENTRY_TYPE_INT16, 0,
							 0) };
	uint64_t operation = enumeration();
	uint64_t place = schema(NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, inner, 2, 0);
	const nvtxPayloadSchemaEntry_t entries[] = {
		entry("count", NVTX_PAYLOAD_ENTRY_TYPE_UINT32, 0, 0),
		entry("ratio", NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, 0, 0),
		entry("values", NVTX_PAYLOAD_ENTRY_TYPE_FLOAT,
		      NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, 3),
		entry("operation", operation, 0, 0),
		entry("place", place, 0, 0),
		entry("text", NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY,
		      0),
		entry("fixed", NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, 0, 6),
		entry("string", NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, 0, 0),
		entry("hidden", NVTX_PAYLOAD_ENTRY_TYPE_UINT64, NVTX_PAYLOAD_ENTRY_FLAG_HIDE, 0),
	};
	uint64_t id = schema(NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, 9,
			     NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5);
	struct sample sample = { 4,
				 0.25,
				 { 1, 2, 3.5f },
				 2,
				 { -1, 7 },
				 "pointed to",
				 "inline",
				 nvtxDomainRegisterStringA(domain, "by handle"),
				 1 };
	nvtxPayloadData_t payload = { id, sizeof(sample), &sample };
	nvtxEventAttributes_t with = event("static schema");

	with.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	with.reserved0 = 1;
	with.payload.ullValue = (uint64_t)(uintptr_t)&payload;
	nvtxDomainRangePushEx(domain, &with);
	nvtxDomainRangePop(domain);
}

/* A length, as many numbers, and the message: what follows has no fixed place. */
static void dynamic_schema(void)
{
	const nvtxPayloadSchemaEntry_t entries[] = {
		entry("length", NVTX_PAYLOAD_ENTRY_TYPE_UINT32, 0, 0),
		entry("sizes", NVTX_PAYLOAD_ENTRY_TYPE_UINT16,
		      NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, 0),
		entry("after", NVTX_PAYLOAD_ENTRY_TYPE_INT32, 0, 0),
		entry(NULL, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING,
		      NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED |
			      NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE,
		      0),
	};
	static const struct {
		uint32_t length;
		uint16_t sizes[3];
		int32_t after;
		char message[8];
	} data = { 3, { 10, 20, 30 }, -5, "dynamic" };
	nvtxPayloadData_t payload = { schema(NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC, entries, 4, 0),
				      sizeof(data), &data };
	nvtxPayloadData_t at_end = { NVTX_PAYLOAD_ENTRY_TYPE_INT32, sizeof(data.after),
				     &data.after };

	nvtxRangePushPayload(domain, &payload, 1);
	nvtxRangePopPayload(domain, &at_end, 1);
	nvtxMarkPayload(domain, &payload, 1);
	nvtxRangeEndPayload(domain, nvtxRangeStartPayload(domain, &payload, 1), &at_end, 1);
	printf("%d\n", nvtxDomainIsEnabled(domain));
}

/* ---- counters, resources, synchronisation ---- */

static void counters(void)
{
	const nvtxPayloadSchemaEntry_t group[] = {
		entry("used", NVTX_PAYLOAD_ENTRY_TYPE_UINT32, 0, 0),
		entry("free", NVTX_PAYLOAD_ENTRY_TYPE_UINT32, 0, 0)
	};
	const uint32_t values[] = { 30, 70 };
	nvtxCounterAttr_t attributes;
	uint64_t one;

	memset(&attributes, 0, sizeof(attributes));
	attributes.structSize = sizeof(attributes);
	attributes.name = "temperature";
	attributes.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE;
	one = nvtxCounterRegister(domain, &attributes);
	nvtxCounterSampleFloat64(domain, one, 36.5);
	nvtxCounterSampleInt64(domain, one, 37);
	attributes.name = "slots";
	attributes.schemaId = schema(NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, group, 2, 0);
	nvtxCounterSample(domain, nvtxCounterRegister(domain, &attributes), values, sizeof(values));
}

static void resources(void)
{
	nvtxResourceAttributes_t resource;
	nvtxSyncUserAttributes_t attributes;
	nvtxSyncUser_t lock;

	memset(&resource, 0, sizeof(resource));
	resource.version = NVTX_VERSION;
	resource.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
	resource.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
	resource.identifier.ullValue = 0x1234;
	resource.messageType = NVTX_MESSAGE_TYPE_ASCII;
	resource.message.ascii = "the pool";
	nvtxDomainResourceDestroy(nvtxDomainResourceCreate(domain, &resource));
	memset(&attributes, 0, sizeof(attributes));
	attributes.version = NVTX_VERSION;
	attributes.size = sizeof(attributes);
	attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
	attributes.message.ascii = "the lock";
	lock = nvtxDomainSyncUserCreate(domain, &attributes);
	nvtxDomainSyncUserAcquireStart(lock);
	nvtxDomainSyncUserAcquireSuccess(lock);
	nvtxDomainSyncUserReleasing(lock);
	nvtxDomainSyncUserDestroy(lock);
}

/* ---- the other ways to run ---- */

static void names(long count)
{
	nvtxEventAttributes_t with;
	char text[64];

	for (long i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "item %ld of %ld", i, count);
		with = event(text);
		nvtxDomainRangePushEx(domain, &with);
		nvtxDomainRangePop(domain);
	}
}

static void plugin(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*run)(void) = NULL;

	if (library)
		*(void **)&run = dlsym(library, "run");
	if (!run)
		exit(4);
	run();
	dlclose(library);
	nvtxRangePushA("of the program");
	nvtxRangePop();
}

static void forked(void)
{
	nvtxRangeId_t range = nvtxRangeStartA("before the fork");
	pid_t child;

	nvtxRangePushA("both");
	nvtxRangePop();
	child = fork();
	if (!child) {
		nvtxRangeEnd(range); /* of the parent: nothing */
		nvtxRangePushA("both");
		nvtxRangePop();
		nvtxRangePushA("in the child");
		nvtxRangePop();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	nvtxRangeEnd(range);
}

static void broken(void)
{
	const nvtxPayloadSchemaEntry_t entries[] = {
		entry("number", NVTX_PAYLOAD_ENTRY_TYPE_UINT64, 0, 0),
		entry("pointer", NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY,
		      0),
		entry("list", NVTX_PAYLOAD_ENTRY_TYPE_INT32,
		      NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, 77),
		entry("type", 9999, 0, 0),
		entry("handle", NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, 0, 0),
	};
	const uint64_t data[] = { 5, 16, 1, 2, 3 };
	uint64_t id = schema(NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, 5, 0);
	nvtxPayloadData_t wrong[] = {
		{ id, sizeof(data), data },  { id, 4, data },	   { id, 0, data }, { id, 8, NULL },
		{ 12345678901ull, 8, data }, { 3, SIZE_MAX, data }
	};
	nvtxEventAttributes_t with = event("broken");

	schema(99, entries, 5, 0);
	schema(NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, NULL, 5, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		nvtxRangePushPayload(domain, &wrong[i], 1);
		nvtxRangePopPayload(domain, NULL, 3);
	}
	with.size = 8; /* an older struct, or none */
	nvtxDomainRangePushEx(domain, &with);
	nvtxDomainRangePushEx(domain, NULL);
	nvtxRangePushA(NULL);
	nvtxRangePop();
	nvtxRangeEnd(12345);
	nvtxDomainRegisterStringA(domain, NULL);
	nvtxCounterSampleInt64(domain, 99, 1);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	domain = nvtxDomainCreateA("checks");
	other = nvtxDomainCreateW(L"other");
	if (!strcmp(what, "names")) {
		names(strtol(argv[2], NULL, 10));
	} else if (!strcmp(what, "plugin")) {
		plugin(argv[2]);
	} else if (!strcmp(what, "fork")) {
		forked();
	} else if (!strcmp(what, "broken")) {
		broken();
	} else {
		threads();
		plain();
		domains();
		static_schema();
		dynamic_schema();
		counters();
		resources();
	}
	if (!strcmp(what, "kill")) {
		nvtxRangePushA("last");
		nvtxRangeStartA("pending");
		kill(getpid(), SIGKILL);
	}
	nvtxDomainDestroy(domain);
	return 0;
}
