/*
 * The continuous mode of nrt_profile.h: how long a save of 100,000 operations takes, and what
 * memory a million of them come to.
 *
 *	compat_models FOLDER
 *		models.save, models.save.cpu (ms), models.op (ns), models.held, models.growth (MB)
 */
#include <dirent.h>
#include <sys/stat.h>

#include <nrt/nrt_profile.h>

#include "../bench.h"

#define OPERATIONS 100000 /* kernels and executions: half of each */
#define MILLION 1000000
#define FILLED 300000 /* operations after which the ring has gone round */
#define SAVES 9

static void must(NRT_STATUS status, const char *what)
{
	if (status == NRT_SUCCESS)
		return;
	fprintf(stderr, "%s: %s\n", what, nrt_get_status_as_str(status));
	exit(1);
}

static double now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void run(nrt_model_t *model, int operations)
{
	for (int i = 0; i < operations / 2; i++)
		must(nrt_execute(model, NULL, NULL), "execute");
}

static double resident_mb(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long all, resident = 0;

	if (!file || fscanf(file, "%lu %lu", &all, &resident) != 2)
		bench_die("/proc/self/statm");
	fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

/* What this process's files take. */
static double held_mb(void)
{
	DIR *directory = opendir(kymo_directory());
	struct dirent *entry;
	double bytes = 0;

	while (directory && (entry = readdir(directory))) {
		struct stat info;

		if (!fstatat(dirfd(directory), entry->d_name, &info, 0) && S_ISREG(info.st_mode))
			bytes += (double)info.st_blocks * 512.0;
	}
	if (directory)
		closedir(directory);
	return bytes / 1e6;
}

int main(int argc, char **argv)
{
	static const char text[] = "kymo-fake-model bench\nop 0\n";
	nrt_profile_continuous_options_t *options;
	nrt_model_t *model;
	double began, cpu, filled_mb;

	if (argc != 2)
		return 2;
	must(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""), "init");
	must(nrt_load(text, sizeof(text) - 1, 0, 1, &model), "load");
	must(nrt_profile_continuous_options_allocate(&options), "options");
	must(nrt_profile_continuous_options_set_output_dir(options, argv[1]), "directory");
	must(nrt_profile_continuous_start(options), "start");
	began = now_ns(CLOCK_MONOTONIC);
	run(model, OPERATIONS);
	bench_emit("models.op", "ns", (now_ns(CLOCK_MONOTONIC) - began) / OPERATIONS);
	for (int i = 0; i < SAVES; i++) {
		began = now_ns(CLOCK_MONOTONIC);
		cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
		must(nrt_profile_continuous_save(0, options), "save");
		bench_emit("models.save.cpu", "ms", (now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / 1e6);
		bench_emit("models.save", "ms", (now_ns(CLOCK_MONOTONIC) - began) / 1e6);
	}
	run(model, FILLED - OPERATIONS);
	filled_mb = resident_mb();
	run(model, MILLION - FILLED);
	bench_emit("models.growth", "MB", resident_mb() - filled_mb);
	bench_emit("models.held", "MB", held_mb());
	return 0;
}
