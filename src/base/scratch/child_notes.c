#include "base/scratch/child_notes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <kymo/atomic.h>

#include "base/scratch/scratch.h"

static struct child_notes *page;

void child_notes_use(struct child_notes *shared)
{
	page = shared;
}

void child_notes_recording(const char *path)
{
	if (page)
		snprintf(page->recording, sizeof(page->recording), "%s", path);
}

void child_notes_deadline(uint64_t deadline_ns, uint32_t limit_ms)
{
	if (!page)
		return;
	page->limit_ms = limit_ms;
	kymo__store_release(&page->deadline_ns, deadline_ns);
}

void child_notes_file(const char *path)
{
	if (strlen(path) >= sizeof(page->files[0]))
		return; /* a path that is cut may be that of another file */
	for (size_t i = 0; page && i < CHILD_NOTES_FILES; i++)
		if (!page->files[i][0]) {
			snprintf(page->files[i], sizeof(page->files[i]), "%s", path);
			return;
		}
}

void child_notes_drop(const char *path)
{
	for (size_t i = 0; page && i < CHILD_NOTES_FILES; i++)
		if (!strcmp(page->files[i], path))
			page->files[i][0] = '\0';
}

void child_notes_clean(const struct child_notes *notes)
{
	static const char *const suffixes[] = { "", ".wal", ".spill" };
	char path[KYMO_PATH_BYTES + 80];

	for (size_t i = 0; i < CHILD_NOTES_FILES; i++)
		for (size_t k = 0; notes->files[i][0] && k < 3; k++) {
			snprintf(path, sizeof(path), "%s%s", notes->files[i], suffixes[k]);
			scratch_remove(AT_FDCWD, path, 1);
		}
}
