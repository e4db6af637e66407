/*
 * Ranges of NVTX through libkymo_nvtx.so against the native zone.
 *
 *	KYMO=on NVTX_INJECTION64_PATH=build/libkymo_nvtx.so compat_nvtx
 *		compat.nvtx_registered, compat.nvtx_ascii
 *	KYMO=off NVTX_INJECTION64_PATH=build/libkymo_nvtx.so compat_nvtx
 *		compat.nvtx_off: ns of a push or a pop
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "../bench.h"

#define SLICE 16384u
#define PAIRS 240
#define WORK() __asm__ volatile("" ::: "memory")
#define FUNCTIONS 16u

/* The program's part of the protocol, as far as it is used: tables of pointers to functions. */
static void *core_functions[FUNCTIONS], *core2_functions[FUNCTIONS];
static void **core_table[FUNCTIONS], **core2_table[FUNCTIONS];

enum { CORE = 1, CORE2 = 5, PUSH_ASCII = 9, POP = 11, DOMAIN_PUSH = 4, DOMAIN_POP = 5 };
enum { REGISTER = 10, DOMAIN = 12 };

static int module_table(uint32_t module, void ****out_table, unsigned int *out_size)
{
	*out_table = module == CORE ? core_table : module == CORE2 ? core2_table : NULL;
	*out_size = *out_table ? FUNCTIONS : 0;
	return *out_table != NULL;
}

static const struct {
	size_t struct_size;
	int (*table)(uint32_t, void ****, unsigned int *);
} callbacks = { sizeof(callbacks), module_table };

static const void *get_exports(uint32_t id)
{
	return id == 1 ? &callbacks : NULL;
}

struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t colour_type;
	uint32_t colour;
	int32_t payload_type, payload_count;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};

static int (*push_ascii)(const char *);
static int (*pop)(void);
static int (*domain_push)(void *, const struct attributes *);
static int (*domain_pop)(void *);
static void *domain;
static struct attributes registered = { .version = 3,
					.size = sizeof(registered),
					.message_type = 3 };

static void registered_ranges(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		domain_push(domain, &registered);
		WORK();
		domain_pop(domain);
	}
}

static void ascii_ranges(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		push_ascii("bench.range of a name");
		WORK();
		pop();
	}
}

static void zones(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++) {
		KYMO_SCOPE("bench.zone");
		WORK();
	}
}

/* An empty loop: what remains is the range's own. */
static void nothing(uint64_t count, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < count; i++)
		WORK();
}

static bool attach(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	int (*init)(const void *(*)(uint32_t)) = NULL;

	for (uint32_t i = 1; i < FUNCTIONS; i++) {
		core_table[i] = &core_functions[i];
		core2_table[i] = &core2_functions[i];
	}
	if (library)
		*(void **)&init = dlsym(library, "InitializeInjectionNvtx2");
	if (!init || !init(get_exports))
		return false;
	*(void **)&push_ascii = core_functions[PUSH_ASCII];
	*(void **)&pop = core_functions[POP];
	*(void **)&domain_push = core2_functions[DOMAIN_PUSH];
	*(void **)&domain_pop = core2_functions[DOMAIN_POP];
	return true;
}

static void name_range(void)
{
	void *(*create)(const char *), *(*name)(void *, const char *);

	*(void **)&create = core2_functions[DOMAIN];
	*(void **)&name = core2_functions[REGISTER];
	domain = create("bench");
	registered.message = name(domain, "bench.range");
}

int main(void)
{
	static struct bench_comparison result;

	if (!attach()) {
		fprintf(stderr, "compat_nvtx: set KYMO and NVTX_INJECTION64_PATH\n");
		return 1;
	}
	name_range();
	if (!kymo_enabled()) {
		bench_compare(&result, registered_ranges, nothing, SLICE, PAIRS, NULL);
		for (size_t i = 0; i < result.pairs; i++)
			result.extra_ns[i] /= 2;
		bench_emit_samples("compat.nvtx_off", "ns", result.extra_ns, result.pairs);
		return 0;
	}
	bench_compare(&result, registered_ranges, zones, SLICE, PAIRS, NULL);
	bench_emit_comparison("compat.nvtx_registered", &result);
	bench_compare(&result, ascii_ranges, zones, SLICE, PAIRS, NULL);
	bench_emit_comparison("compat.nvtx_ascii", &result);
	return 0;
}
