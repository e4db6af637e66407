/*
 * Makes the recording that the benchmarks of reading use: as many zones as asked for, of some forty
 * regions, three deep, in steps, by the given number of threads, with work of different lengths in
 * them. KYMO=on, KYMO_KEEP=all.
 *
 *	fill ZONES THREADS	prints the recording's directory
 */
#include <pthread.h>

#include "bench.h"

#define LAYERS 12
#define OPS 3 /* in a layer; with the layer itself four zones */

static uint32_t step_name, layer_names[LAYERS], op_names[LAYERS][OPS];

static void make_names(void)
{
	char name[64];

	step_name = kymo_name("step");
	for (int layer = 0; layer < LAYERS; layer++) {
		snprintf(name, sizeof(name), "layers.%d.forward", layer);
		layer_names[layer] = kymo_name(name);
		for (int op = 0; op < OPS; op++) {
			snprintf(name, sizeof(name), "layers.%d.op%d", layer, op);
			op_names[layer][op] = kymo_name(name);
		}
	}
}

/* Up to ~60 ns, most of them short. */
static void work(uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	for (uint64_t i = *random >> 58; i > 0; i--)
		__asm__ volatile("" ::: "memory");
}

static void one_op(int layer, int op, uint64_t *random)
{
	struct kymo_zone zone = kymo_zone_begin_id(op_names[layer][op]);

	work(random);
	kymo_zone_end(&zone);
}

/* A step: 1 + LAYERS * (1 + OPS) zones. */
static void one_step(uint64_t *random)
{
	struct kymo_zone step = kymo_zone_begin_id(step_name);

	for (int layer = 0; layer < LAYERS; layer++) {
		struct kymo_zone zone = kymo_zone_begin_id(layer_names[layer]);

		for (int op = 0; op < OPS; op++)
			one_op(layer, op, random);
		kymo_zone_end(&zone);
	}
	kymo_zone_end(&step);
}

struct share {
	pthread_t thread;
	long zones;
	int index;
};

static void *fill(void *context)
{
	struct share *share = context;
	uint64_t random = (uint64_t)share->index + 1;

	for (long done = 0; done < share->zones; done += 1 + LAYERS * (1 + OPS)) {
		if (!share->index)
			kymo_step(NULL);
		one_step(&random);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long zones = argc > 1 ? atol(argv[1]) : 0;
	int threads = argc > 2 ? atoi(argv[2]) : 0;
	struct share shares[16];

	if (zones < 1 || threads < 1 || threads > 16 || !kymo_enabled()) {
		fprintf(stderr, "usage: KYMO=on KYMO_KEEP=all fill ZONES THREADS\n");
		return 2;
	}
	make_names();
	for (int i = 0; i < threads; i++) {
		shares[i] = (struct share){ 0, zones / threads, i };
		if (pthread_create(&shares[i].thread, NULL, fill, &shares[i]))
			bench_die("pthread_create");
	}
	for (int i = 0; i < threads; i++)
		pthread_join(shares[i].thread, NULL);
	puts(bench_recording());
	return 0;
}
