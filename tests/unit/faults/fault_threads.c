/* Threads without number (FAULTS 7), and names whose owner goes away (FAULTS 8). */
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "recorded.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IN_A_ROW 2000
#define AT_ONCE 50
#define MEMORY_IS_OURS 0 /* the sanitizer's own is in it */
#else
#define IN_A_ROW 20000 /* KYMO_TEST_THREADS=100000 for the whole of it */
#define AT_ONCE 200
#define MEMORY_IS_OURS 1
#endif

static int threads_in_a_row(void)
{
	const char *wish = getenv("KYMO_TEST_THREADS");

	return wish ? atoi(wish) : IN_A_ROW;
}

static uint64_t private_bytes(void)
{
	unsigned long size = 0, resident = 0, shared = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%lu %lu %lu", &size, &resident, &shared) != 3)
		abort();
	fclose(file);
	return (uint64_t)(resident - shared) * 4096;
}

/* Files of this process's recording, and the bytes that they take. */
static uint64_t files(uint64_t *out_bytes)
{
	char path[KYMO_PATH_BYTES + 300];
	DIR *dir = opendir(kymo_directory());
	uint64_t count = 0;
	struct stat st;

	*out_bytes = 0;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		snprintf(path, sizeof(path), "%s/%s", kymo_directory(), entry->d_name);
		if (!stat(path, &st) && S_ISREG(st.st_mode)) {
			count++;
			*out_bytes += (uint64_t)st.st_blocks * 512;
		}
	}
	closedir(dir);
	return count;
}

static void *one_zone(void *unused)
{
	KYMO_SCOPE("short");
	return unused;
}

static void run_in_a_row(int count)
{
	for (int i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, one_zone, NULL))
			abort();
		pthread_join(thread, NULL);
	}
}

static void many_threads_in_a_row(void)
{
	uint64_t *counts = shared_counts();

	run_in_a_row(100);
	counts[0] = files(&counts[1]);
	counts[2] = private_bytes();
	run_in_a_row(threads_in_a_row() - 100);
	counts[3] = files(&counts[4]);
	counts[5] = private_bytes();
}

static void twenty_thousand_threads_take_no_more_files_than_a_hundred(void **state)
{
	(void)state;
	struct recording *recording = recorded(many_threads_in_a_row, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	const uint64_t *counts = shared_counts(), all = (uint64_t)threads_in_a_row();
	struct kymo_zone_row *rows = calloc(all, sizeof(*rows));
	uint64_t kept = read_zones(zones, rows, all);

	assert_int_equal(counts[3], counts[0]);
	/* An entry of 64 bytes for each thread, and the ring grows to its size once. */
	assert_true(counts[4] - counts[1] < all * 64 + (1 << 20));
	if (MEMORY_IS_OURS)
		assert_true(counts[5] < counts[2] + (8 << 20));
	assert_int_equal(zones->emitted, all);
	assert_int_equal(zones->dropped_total, 0);
	assert_true(kept >= (all < 10000 ? all : 10000));
	for (uint64_t i = 0; i < kept; i++) /* the last ones, one from each thread */
		assert_int_equal(rows[i].thread, all - kept + i + 1);
	free(rows);
	recorded_close(recording);
}

static pthread_barrier_t all_recorded, all_may_end;

static void *fill_a_ring(void *number)
{
	char name[32];

	for (int i = 0; i < 12000; i++) {
		KYMO_SCOPE("filling");
	}
	snprintf(name, sizeof(name), "last of %d", (int)(intptr_t)number);
	{
		struct kymo_zone zone = kymo_zone_begin_id(kymo_name(name));

		kymo_zone_end(&zone);
	}
	pthread_barrier_wait(&all_recorded);
	pthread_barrier_wait(&all_may_end);
	return NULL;
}

static void many_threads_at_once(void)
{
	uint64_t *counts = shared_counts(), private_before = private_bytes();
	pthread_t thread[AT_ONCE];
	pthread_attr_t small;

	pthread_barrier_init(&all_recorded, NULL, AT_ONCE + 1);
	pthread_barrier_init(&all_may_end, NULL, AT_ONCE + 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	for (intptr_t i = 0; i < AT_ONCE; i++)
		if (pthread_create(&thread[i], &small, fill_a_ring, (void *)i))
			abort();
	pthread_barrier_wait(&all_recorded);
	counts[0] = files(&counts[1]);
	counts[2] = private_bytes() - private_before;
	pthread_barrier_wait(&all_may_end);
	for (int i = 0; i < AT_ONCE; i++)
		pthread_join(thread[i], NULL);
}

static void a_thread_that_is_alive_takes_at_most_2_mb_and_keeps_its_last_row(void **state)
{
	(void)state;
	struct recording *recording = recorded(many_threads_at_once, NULL);
	uint64_t found = 0;

	print_message("%llu kB of files and %llu kB of memory a thread\n",
		      (unsigned long long)(shared_counts()[1] / AT_ONCE >> 10),
		      (unsigned long long)(shared_counts()[2] / AT_ONCE >> 10));
	if (MEMORY_IS_OURS)
		assert_true(shared_counts()[1] + shared_counts()[2] <=
			    (uint64_t)AT_ONCE * (2 << 20));
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		const struct store_chunk *last = &stream->chunks[stream->chunk_count - 1];
		struct kymo_zone_row row;

		assert_int_equal(stream->dropped_total, 0);
		assert_int_equal(store_read_rows(stream, last, last->rows - 1, 1, &row), 1);
		found += !strncmp(name_of(recording, stream, row.name), "last of ", 8);
	}
	assert_int_equal(found, AT_ONCE);
	recorded_close(recording);
}

/* ---- 8: the memory of a name goes away, and another library comes to its place ---- */

/* What a library brings: a site and its texts. */
struct library {
	struct kymo_site site;
	char name[32], file[32];
};

static void *library_at;

static void use_library(const char *name)
{
	struct library *library = mmap(library_at, 4096, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | (library_at ? MAP_FIXED : 0),
				       -1, 0);

	if (library == MAP_FAILED)
		abort();
	library_at = library;
	strcpy(library->name, name);
	strcpy(library->file, "plugin.c");
	library->site = (struct kymo_site){ library->name, library->file, 7, 0 };
	for (int i = 0; i < 10; i++) {
		struct kymo_zone zone = kymo_zone_begin(&library->site);

		kymo_zone_end(&zone);
	}
	munmap(library, 4096);
}

static void libraries_come_and_go(void)
{
	use_library("of the first");
	use_library("of the second");
	use_library("of the first");
}

static void names_outlive_the_memory_they_came_from(void **state)
{
	(void)state;
	struct recording *recording = recorded(libraries_come_and_go, NULL);
	const struct store_stream *zones = stream_of(recording, "trace.zones");
	struct kymo_zone_row rows[30];

	assert_int_equal(read_zones(zones, rows, 30), 30);
	for (int i = 0; i < 30; i++)
		assert_string_equal(name_of(recording, zones, rows[i].name),
				    i / 10 == 1 ? "of the second" : "of the first");
	assert_int_equal(total_of(recording, zones, "of the first")->count, 20);
	assert_int_equal(rows[0].name, rows[29].name);
	recorded_close(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(twenty_thousand_threads_take_no_more_files_than_a_hundred),
		cmocka_unit_test(a_thread_that_is_alive_takes_at_most_2_mb_and_keeps_its_last_row),
		cmocka_unit_test(names_outlive_the_memory_they_came_from),
	};

	return cmocka_run_group_tests(tests, recorded_setup, recorded_teardown);
}
