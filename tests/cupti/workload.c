/* What a CUDA program does, by word. Linked with libcuda.so.1 of the stand-in; the zones and steps
   are those of a program that uses kymo. */
#include <kymo/kymo.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "standin.h"

#define MS 1000000u
#define US 1000u

static const struct kernel gemm = { "_Z4gemmPfS_i", 2 * MS, 0 };
static const struct kernel relu = { "_Z4reluPf", 500 * US, 0 };
static const struct kernel reduce_all = { "ncclDevKernel_AllReduce_Sum_f32", 1 * MS, 0 };
static const struct kernel tiny = { "tiny", 2 * US, 0 };

static void sleep_ms(long ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * MS };

	nanosleep(&pause, NULL);
}

/* Three steps: a copy from pageable memory, two kernels, a collective on another stream, a wait. */
static int train(void)
{
	uint64_t weights;

	cudaMalloc(&weights, 1 << 20);
	for (int i = 0; i < 3; i++) {
		kymo_step("train");
		{
			KYMO_SCOPE("load");
			sleep_ms(10);
			cudaMemcpyAsync(HOST_TO_DEVICE, 1, 3, 4096, 200 * US, 7);
		}
		{
			KYMO_SCOPE("forward");
			cudaLaunchKernel(&gemm, 7);
			cuLaunchKernel(&relu, 7);
		}
		{
			KYMO_SCOPE("backward");
			cudaStreamWaitEvent(13, 7);
			cudaLaunchKernel(&reduce_all, 13);
		}
		cudaMemsetAsync(1024, 50 * US, 7);
		cudaDeviceSynchronize();
	}
	kymo_step_end("train");
	cudaFree(weights, 1 << 20);
	return 0;
}

static int graphs(void)
{
	const struct kernel kernels[3] = { gemm, relu, gemm };
	const struct graph graph = { 5, 3, kernels };

	for (int i = 0; i < 4; i++) {
		KYMO_SCOPE("replay");
		cudaGraphLaunch(&graph, 7);
	}
	cudaStreamSynchronize(7);
	return 0;
}

static int copies(void)
{
	KYMO_SCOPE("copies");
	cudaMemcpyAsync(DEVICE_TO_DEVICE, 3, 3, 100, 10 * US, 7);
	cudaMemcpyAsync(DEVICE_TO_HOST, 3, 2, 200, 10 * US, 7);
	cudaMemcpy(HOST_TO_DEVICE, 1, 3, 300, 5 * MS);
	cudaMemcpy(DEVICE_TO_HOST, 3, 1, 400, 5 * MS);
	return 0;
}

static int errors(void)
{
	const struct kernel bad = { "bad", 0, 719 };
	int rc = 0;

	for (int i = 0; i < 5; i++)
		rc = cudaLaunchKernel(&bad, 7);
	printf("%d\n", rc);
	cudaLaunchKernel(&gemm, 7);
	return cudaDeviceSynchronize();
}

/* Two devices, four threads, as many streams. */
static void *drive(void *number)
{
	unsigned stream = 20 + *(unsigned *)number;

	cudaSetDevice(*(unsigned *)number % 2);
	for (int i = 0; i < 250; i++) {
		KYMO_SCOPE("drive");
		cudaLaunchKernel(&tiny, stream);
	}
	cudaStreamSynchronize(stream);
	return NULL;
}

static int threads(void)
{
	unsigned numbers[4] = { 0, 1, 2, 3 };
	pthread_t list[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&list[i], NULL, drive, &numbers[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(list[i], NULL);
	return 0;
}

/* Counts its launches in a file that outlives it. */
static _Noreturn void endless(const char *path)
{
	FILE *count = fopen(path, "w+");

	for (uint64_t i = 1;; i++) {
		cudaLaunchKernel(&tiny, 7);
		if (i % 64)
			continue;
		cudaStreamSynchronize(7);
		rewind(count);
		fprintf(count, "%llu\n", (unsigned long long)i);
		fflush(count);
		if (i == 20032)
			puts("at work"), fflush(stdout);
	}
}

static int hang(void)
{
	const struct kernel deadlock = { "deadlock", 3600ull * 1000 * MS, 0 };

	KYMO_SCOPE("step");
	cudaLaunchKernel(&deadlock, 7);
	puts("at work"), fflush(stdout);
	return cudaDeviceSynchronize();
}

static int forks(void)
{
	pid_t child;

	cudaLaunchKernel(&gemm, 7);
	child = fork();
	if (!child) {
		KYMO_SCOPE("child");
		exit(3); /* with its exit handlers */
	}
	waitpid(child, NULL, 0);
	cudaLaunchKernel(&gemm, 7);
	return cudaDeviceSynchronize();
}

/* One stream: busy for 4 ms, then a gap of a known cause, five times each. */
static int gaps(void)
{
	const struct kernel work = { "work", 4 * MS, 0 };

	for (int i = 0; i < 5; i++) {
		cudaLaunchKernel(&work, 7);
		cudaStreamSynchronize(7); /* the gap after it begins while the host waits */
		cudaLaunchKernel(&work, 7);
		sleep_ms(20); /* the host is late */
	}
	return cudaDeviceSynchronize();
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (!strcmp(word, "train"))
		return train();
	if (!strcmp(word, "graphs"))
		return graphs();
	if (!strcmp(word, "copies"))
		return copies();
	if (!strcmp(word, "errors"))
		return errors();
	if (!strcmp(word, "threads"))
		return threads();
	if (!strcmp(word, "endless"))
		endless(argv[2]);
	if (!strcmp(word, "hang"))
		return hang();
	if (!strcmp(word, "forks"))
		return forks();
	if (!strcmp(word, "gaps"))
		return gaps();
	return 2;
}
