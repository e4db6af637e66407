/* Regions as one writes them in an afternoon: samples in an array that grows, one open sample, no
   thread in mind. The checks have to find each of its faults, else they would find none of ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vaccel_prof.h>

struct vaccel_prof_sample {
	uint64_t start, time;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool vaccel_prof_enabled(void)
{
	return true;
}

int vaccel_prof_region_init(struct vaccel_prof_region *region, const char *name)
{
	region->name = name ? strdup(name) : calloc(1, 256);
	region->name_owned = true;
	region->nr_entries = region->size = 0;
	region->samples = NULL;
	return 0;
}

int vaccel_prof_region_destroy(struct vaccel_prof_region *region)
{
	if (region->name_owned)
		free((char *)region->name);
	free(region->samples);
	return 0;
}

int vaccel_prof_region_release(struct vaccel_prof_region *region)
{
	return vaccel_prof_region_destroy(region);
}

int vaccel_prof_region_start(struct vaccel_prof_region *region)
{
	if (region->nr_entries == region->size) {
		region->size = region->size ? region->size * 2 : 1024;
		region->samples = realloc(region->samples, region->size * sizeof(*region->samples));
	}
	region->samples[region->nr_entries].start = now_ns();
	return 0;
}

int vaccel_prof_region_stop(struct vaccel_prof_region *region)
{
	struct vaccel_prof_sample *sample = &region->samples[region->nr_entries++];

	sample->time = now_ns() - sample->start;
	return 0;
}

static uint64_t total(const struct vaccel_prof_region *region)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < region->nr_entries; i++)
		sum += region->samples[i].time;
	return sum;
}

int vaccel_prof_region_print(const struct vaccel_prof_region *region)
{
	printf("[prof] %s: total_time: %llu nsec nr_entries: %zu\n", region->name,
	       (unsigned long long)total(region), region->nr_entries);
	return 0;
}

int vaccel_prof_regions_init(struct vaccel_prof_region *regions, int count)
{
	for (int i = 0; i < count; i++)
		vaccel_prof_region_init(&regions[i], NULL);
	return 0;
}

static int first_of_name(struct vaccel_prof_region *regions, int count, const char *name,
			 int (*call)(struct vaccel_prof_region *region))
{
	for (int i = 0; i < count; i++)
		if (!strcmp(regions[i].name, name))
			return call(&regions[i]);
	return 22;
}

int vaccel_prof_regions_start_by_name(struct vaccel_prof_region *regions, int count,
				      const char *name)
{
	return first_of_name(regions, count, name, vaccel_prof_region_start);
}

int vaccel_prof_regions_stop_by_name(struct vaccel_prof_region *regions, int count,
				     const char *name)
{
	return first_of_name(regions, count, name, vaccel_prof_region_stop);
}

int vaccel_prof_regions_clear(struct vaccel_prof_region *regions, int count)
{
	for (int i = 0; i < count; i++) {
		free(regions[i].samples);
		regions[i].samples = NULL;
	}
	return 0;
}

int vaccel_prof_regions_release(struct vaccel_prof_region *regions, int count)
{
	for (int i = 0; i < count; i++)
		vaccel_prof_region_destroy(&regions[i]);
	return 0;
}

int vaccel_prof_regions_print_all(const struct vaccel_prof_region *regions, int count)
{
	for (int i = 0; i < count; i++)
		vaccel_prof_region_print(&regions[i]);
	return 0;
}

int vaccel_prof_regions_print_all_to_buf(char **buf, size_t len,
					 const struct vaccel_prof_region *regions, int count)
{
	(void)count;
	*buf = malloc(len);
	snprintf(*buf, len, "[prof] %s: total_time: %llu nsec nr_entries: %zu", regions->name,
		 (unsigned long long)total(regions), regions->nr_entries);
	return 1;
}
