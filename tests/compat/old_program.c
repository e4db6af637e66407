/* A program that was built long ago, against a library with vAccel's calls and a struct of that
   layout; it knows nothing of kymo. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct vaccel_prof_region {
	const char *title;
	bool owns_title;
	size_t entries;
	void *array;
	size_t room;
};

extern int vaccel_prof_region_init(struct vaccel_prof_region *, const char *);
extern int vaccel_prof_region_start(struct vaccel_prof_region *);
extern int vaccel_prof_region_stop(struct vaccel_prof_region *);
extern int vaccel_prof_region_print(const struct vaccel_prof_region *);
extern int vaccel_prof_region_destroy(struct vaccel_prof_region *);

static struct vaccel_prof_region fixed = { "old_static", false, 0, NULL, 0 };

int main(void)
{
	struct vaccel_prof_region made;

	vaccel_prof_region_init(&made, "old_made");
	for (int i = 0; i < 3; i++) {
		vaccel_prof_region_start(&fixed);
		vaccel_prof_region_start(&made);
		vaccel_prof_region_stop(&made);
		vaccel_prof_region_stop(&fixed);
	}
	printf("%s %zu, %s %zu\n", fixed.title, fixed.entries, made.title, made.entries);
	vaccel_prof_region_print(&fixed);
	vaccel_prof_region_print(&made);
	vaccel_prof_region_destroy(&made);
	return 0;
}
