/* Lists the processes of a recording and the files of a process: in both directories, a snapshot or
   memory. */
#include "base/files/run_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/files/dir_names.h"
#include "base/page_memory.h"

static int list_add(struct run_files_list *list, const struct run_files_item *item)
{
	void *items = page_memory_grow(list->items, &list->room_bytes,
				       (list->count + 1) * sizeof(*item));

	if (!items)
		return -ENOMEM;
	list->items = items;
	list->items[list->count++] = *item;
	return 0;
}

/* Adds a name if it belongs in the list: of processes, or of a process's files. */
static int run_files_list_consider(struct run_files_list *list, const char *name, bool processes)
{
	struct run_files_item item = { .kind = RUN_FILES_FOREIGN };

	if (!processes)
		return run_files_parse(name, &item) == RUN_FILES_FOREIGN ? 0
									 : list_add(list, &item);
	if (!run_files_is_process(name, NULL) || strlen(name) >= sizeof(item.name))
		return 0;
	strcpy(item.name, name);
	return list_add(list, &item);
}

struct wanted {
	struct run_files_list *list;
	bool processes;
};

static int consider_name(const char *name, void *context)
{
	const struct wanted *wanted = context;

	return run_files_list_consider(wanted->list, name, wanted->processes);
}

static int list_dir(int run_dir, const char *process, struct run_files_list *list)
{
	struct wanted wanted = { list, !process };
	int dir = openat(run_dir, process ? process : ".", RUN_FILES_OPEN_FLAGS | O_DIRECTORY);
	int rc;

	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	rc = dir_names_each(dir, consider_name, &wanted);
	close(dir);
	return rc;
}

/* "p12-3/s1.head" belongs to process "p12-3"; with process NULL, its first part is listed. */
static int consider_path(struct run_files_list *list, const char *path, const char *process)
{
	char first[RUN_FILES_PATH_BYTES];
	const char *slash = memchr(path, '/', strnlen(path, RUN_FILES_PATH_BYTES));
	size_t bytes = slash ? (size_t)(slash - path) : 0;

	if (!slash || strnlen(path, RUN_FILES_PATH_BYTES) == RUN_FILES_PATH_BYTES)
		return 0;
	memcpy(first, path, bytes);
	first[bytes] = '\0';
	if (process)
		return strcmp(first, process) ? 0 : run_files_list_consider(list, slash + 1, false);
	return run_files_list_consider(list, first, true);
}

static int compare_items(const void *left, const void *right)
{
	const struct run_files_item *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void sort_and_keep_one_each(struct run_files_list *list)
{
	size_t kept = 0;

	page_memory_sort(list->items, list->count, sizeof(*list->items), compare_items);
	for (size_t i = 0; i < list->count; i++)
		if (!kept || compare_items(&list->items[kept - 1], &list->items[i]))
			list->items[kept++] = list->items[i];
	list->count = kept;
}

/* Entries are sorted: those of a process are contiguous. */
static size_t first_entry(const struct run_files *source, const char *process)
{
	size_t low = 0, high = process ? source->entry_count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strncmp(source->entries[middle].path, process, RUN_FILES_PATH_BYTES) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int files_run_files_list_all(const struct run_files *source, const char *process,
				    struct run_files_list *list)
{
	int rc = 0;

	list->count = 0;
	for (int which = 0; which < 2 && !rc; which++)
		if (source->dirs[which] >= 0)
			rc = list_dir(source->dirs[which], process, list);
	for (size_t i = first_entry(source, process); i < source->entry_count && !rc; i++) {
		if (process && strncmp(source->entries[i].path, process, strlen(process)))
			break;
		rc = consider_path(list, source->entries[i].path, process);
	}
	for (size_t i = 0; i < source->blob_count && !rc; i++)
		rc = consider_path(list, source->blobs[i].path, process);
	sort_and_keep_one_each(list);
	return rc;
}

int run_files_processes(const struct run_files *source, struct run_files_list *list)
{
	return files_run_files_list_all(source, NULL, list);
}

int run_files_list_all(const struct run_files *source, const char *process,
		       struct run_files_list *list)
{
	return files_run_files_list_all(source, process, list);
}

void run_files_list_free(struct run_files_list *list)
{
	page_memory_give(list->items, list->room_bytes);
	memset(list, 0, sizeof(*list));
}
