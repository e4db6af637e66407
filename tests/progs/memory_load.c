/*
 * Allocates as requested, and prints the totals of its own bookkeeping.
 *
 *	memory_load plain       kinds of allocation, one after another
 *	memory_load threads N   N threads, each with its own
 *	memory_load late N      N threads that allocate as they end, perhaps without their lanes
 *	memory_load walk SEED   random sites; prints the live blocks at the peak, by brute force
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noinline, noclone))

static long long allocated, freed_bytes, allocations, frees;

static void *counted(void *ptr, size_t bytes)
{
	if (!ptr)
		exit(3);
	__atomic_fetch_add(&allocated, (long long)bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
	return ptr;
}

static void given_back(size_t bytes)
{
	__atomic_fetch_add(&freed_bytes, (long long)bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&frees, 1, __ATOMIC_RELAXED);
}

NOINLINE void *site_a(size_t bytes)
{
	return counted(malloc(bytes), bytes);
}

NOINLINE void *site_b(size_t bytes)
{
	return counted(calloc(1, bytes), bytes);
}

NOINLINE void *site_c(size_t bytes)
{
	void *ptr = NULL;

	return posix_memalign(&ptr, 64, bytes) ? NULL : counted(ptr, bytes);
}

NOINLINE void *site_d(size_t bytes)
{
	return counted(aligned_alloc(64, bytes), bytes);
}

NOINLINE void plain(void)
{
	volatile size_t too_many = (size_t)-1;
	void *kept[100], *map;

	for (int i = 0; i < 100; i++)
		kept[i] = site_a(1000);
	for (int i = 0; i < 50; i++) {
		free(kept[i]);
		given_back(1000);
	}
	for (int i = 0; i < 100; i++) {
		free(site_b(5000));
		given_back(5000);
	}
	kept[0] = site_c(100000);
	kept[1] = site_d(1024);
	for (size_t bytes = 2048; bytes <= 65536; bytes *= 2) {
		kept[1] = counted(realloc(kept[1], bytes), bytes);
		given_back(bytes / 2);
	}
	kept[2] = reallocarray(NULL, too_many, 16); /* fails, and nothing is counted */
	map = counted(
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		1 << 20);
	munmap(map, 1 << 20);
	given_back(1 << 20);
	free(kept[0]);
	given_back(100000);
}

static void *own(void *unused)
{
	void *kept[64] = { 0 };

	(void)unused;
	for (int i = 0; i < 20000; i++) {
		void **slot = &kept[i * 7 % 64];

		if (*slot) {
			free(*slot);
			given_back(200);
		}
		*slot = site_a(200);
	}
	return NULL;
}

static void threads(int count)
{
	pthread_t all[64];

	for (int i = 0; i < count; i++)
		pthread_create(&all[i], NULL, own, NULL);
	for (int i = 0; i < count; i++)
		pthread_join(all[i], NULL);
}

static pthread_key_t key;

/* A destructor of the thread's own: behind those of libraries that were there first. */
static void at_thread_end(void *kept)
{
	free(kept);
	given_back(300);
	free(site_a(400));
	given_back(400);
}

static void *until_the_end(void *unused)
{
	(void)unused;
	pthread_setspecific(key, site_a(300));
	return NULL;
}

static void late(int count)
{
	pthread_key_create(&key, at_thread_end);
	for (int i = 0; i < count; i++) {
		pthread_t one;

		pthread_create(&one, NULL, until_the_end, NULL);
		pthread_join(one, NULL);
	}
}

/* What is live at the highest moment, by site, kept the slow way: the table is copied at each new
   peak. */
NOINLINE void walk(unsigned seed)
{
	void *(*const sites[])(size_t) = { site_a, site_b, site_c, site_d };
	static struct {
		void *ptr;
		int site;
		size_t bytes;
	} live[512];
	long long now[4] = { 0 }, peak[4] = { 0 }, total = 0, highest = 0;

	srandom(seed);
	for (int i = 0; i < 20000; i++) {
		int at = (int)(random() % 512), site = (int)(random() % 4);
		size_t bytes = (size_t)(random() % 64 + 1) * 64;

		if (live[at].ptr) {
			free(live[at].ptr);
			given_back(live[at].bytes);
			now[live[at].site] -= (long long)live[at].bytes;
			total -= (long long)live[at].bytes;
			live[at].ptr = NULL;
		} else {
			live[at].ptr = sites[site](bytes);
			live[at].site = site;
			live[at].bytes = bytes;
			now[site] += (long long)bytes;
			total += (long long)bytes;
		}
		if (total > highest) {
			highest = total;
			memcpy(peak, now, sizeof(peak));
		}
	}
	fprintf(stderr, "%lld %lld %lld %lld %lld\n", highest, peak[0], peak[1], peak[2], peak[3]);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "plain";
	char line[128];
	int bytes;

	setvbuf(stderr, NULL, _IONBF, 0);
	if (!strcmp(what, "threads"))
		threads(argc > 2 ? atoi(argv[2]) : 4);
	else if (!strcmp(what, "late"))
		late(argc > 2 ? atoi(argv[2]) : 4);
	else if (!strcmp(what, "walk"))
		walk(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
	else
		plain();
	bytes = snprintf(line, sizeof(line), "%lld %lld %lld %lld\n", allocations, allocated, frees,
			 freed_bytes);
	return fwrite(line, 1, (size_t)bytes, stderr) == (size_t)bytes ? 0 : 1;
}
