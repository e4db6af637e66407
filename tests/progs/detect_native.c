/*
 * What a program in C has to show for a detector: `tiny` many operations of a microsecond, `large`
 * few of a millisecond, `blocked` a thread in the kernel that cannot be interrupted, `asleep` one
 * that can, `crowd N` N threads that compute, `faults FILE` pages of a file that come back from
 * storage, and how many did, to stdout; `read FILE` the same read; `contended` threads that share
 * a lock, `own` ones that do not; `unmarked` a zone that is a small part of the run.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/kymo.h>

#define FILE_BYTES ((size_t)32 << 20)
#define PAGE 4096u

static volatile unsigned sink;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void work(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		sink += i;
}

static void operations(unsigned count, unsigned each)
{
	for (unsigned i = 0; i < count; i++) {
		KYMO_SCOPE("add");
		work(each);
	}
}

/* The parent of a vfork waits as one that waits for a disk does, for as long as the child says;
   here again and again, as programs do that read. */
static void blocked(void)
{
	for (int i = 0; i < 40; i++) {
		pid_t pid = vfork();

		if (!pid) {
			nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void *burn(void *unused)
{
	double until = now_s() + 1.5;

	(void)unused;
	while (now_s() < until)
		work(1000);
	return NULL;
}

static void crowd(int count)
{
	pthread_t threads[64];

	count = count > 64 ? 64 : count;
	for (int i = 1; i < count; i++)
		pthread_create(&threads[i], NULL, burn, NULL);
	burn(NULL);
	for (int i = 1; i < count; i++)
		pthread_join(threads[i], NULL);
}

static int make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *block = malloc(FILE_BYTES);

	if (fd < 0 || !block || write(fd, memset(block, 1, FILE_BYTES), FILE_BYTES) < 0)
		exit(1);
	free(block);
	return fd;
}

static void faults(const char *path)
{
	int fd = make_file(path);
	double until = now_s() + 1.5;
	struct rusage used;

	while (now_s() < until) {
		const volatile char *map;

		fsync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			exit(1);
		madvise((void *)map, FILE_BYTES, MADV_RANDOM);
		for (size_t at = 0; at < FILE_BYTES && now_s() < until; at += PAGE)
			sink += (unsigned)map[at];
		munmap((void *)map, FILE_BYTES);
	}
	getrusage(RUSAGE_SELF, &used);
	printf("%ld\n", used.ru_majflt);
}

static void read_file(const char *path)
{
	int fd = make_file(path);
	double until = now_s() + 1.5;
	char block[65536];

	while (now_s() < until)
		if (pread(fd, block, sizeof(block), 0) > 0)
			sink += (unsigned)block[0];
}

/* ---- locks ---------------------------------------------------------------------------------- */

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static double words_until;

/* Long enough under the lock that another thread finds it taken. */
__attribute__((noinline)) static void count_word(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	work(20000);
	pthread_mutex_unlock(lock);
}

__attribute__((noinline)) static void *tokenize_shard(void *lock)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

	while (now_s() < words_until) {
		count_word(lock ? lock : &own);
		work(1000);
	}
	return NULL;
}

static void count_words(pthread_mutex_t *lock)
{
	pthread_t threads[4];

	words_until = now_s() + 1.8;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, tokenize_shard, lock);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* ---- zones ---------------------------------------------------------------------------------- */

__attribute__((noinline)) static void prepare_tables(double until)
{
	while (now_s() < until)
		for (unsigned i = 0; i < 1000; i++)
			sink += i;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "", *more = argc > 2 ? argv[2] : "";

	if (!strcmp(word, "tiny"))
		operations(1000000, 500);
	else if (!strcmp(word, "large"))
		operations(500, 1000000);
	else if (!strcmp(word, "blocked"))
		blocked();
	else if (!strcmp(word, "asleep"))
		nanosleep(&(struct timespec){ 1, 200000000 }, NULL);
	else if (!strcmp(word, "crowd"))
		crowd(atoi(more));
	else if (!strcmp(word, "faults"))
		faults(more);
	else if (!strcmp(word, "read"))
		read_file(more);
	else if (!strcmp(word, "contended"))
		count_words(&shared_lock);
	else if (!strcmp(word, "own"))
		count_words(NULL);
	else if (!strcmp(word, "unmarked")) {
		operations(2, 1000);
		prepare_tables(now_s() + 1.3);
	} else
		return 2;
	return 0;
}
