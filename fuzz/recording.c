/*
 * Directories of recordings, as `kymo ls`, `kymo query` and `kymo serve` read them: the list, the
 * rows of every stream, and the timeline of the server, which looks again after more edits and
 * keeps what it has read. Half of the inputs belong to a program that runs.
 *
 *	input	1 byte: bit 0 live; the rest: edits, the first half before the first look
 */
#include "edits.h"
#include "scratch.h"

#include "serve/feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static char directory[600], boot_id[64];
static uint64_t started; /* field 22 of /proc/self/stat */

static void read_text_of(const char *path, char *out, size_t out_bytes)
{
	FILE *file = fopen(path, "r");
	size_t got = file ? fread(out, 1, out_bytes - 1, file) : 0;

	out[got] = '\0';
	out[strcspn(out, "\n")] = '\0';
	if (file)
		fclose(file);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char stat[1024];
	const char *at;

	(void)argc, (void)argv;
	snprintf(directory, sizeof(directory), "%s/run-1", scratch_make("recording"));
	read_text_of("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
	read_text_of("/proc/self/stat", stat, sizeof(stat));
	at = strrchr(stat, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	started = at ? strtoull(at, NULL, 10) : 0;
	return 0;
}

/* As handmade_all(), but of this process. */
static void make_live(struct handmade *made)
{
	char process[64];
	struct kymo_run_file *run = (void *)(uintptr_t)handmade_find(made, "run")->data;
	struct kymo_control *control =
		(void *)(uintptr_t)handmade_find(made, "p10-77/control")->data;

	run->target_pid = control->pid = getpid();
	run->target_starttime = control->starttime = started;
	snprintf(run->boot_id, sizeof(run->boot_id), "%s", boot_id);
	snprintf(process, sizeof(process), "p%d-%llu", getpid(), (unsigned long long)started);
	for (size_t i = 0; i < made->count; i++) {
		char *path = made->files[i].path, rest[64];

		if (strncmp(path, "p10-77/", 7))
			continue;
		snprintf(rest, sizeof(rest), "%s", path + 7);
		snprintf(path, sizeof(made->files[i].path), "%s/%s", process, rest);
	}
}

static void read_all(void)
{
	struct kymo_error err = { 0 };
	struct recording *recording = NULL;
	struct store_entry *entries = NULL;
	size_t count = 0;

	edits_finish(store_open(directory, &recording, &err), recording, &err);
	if (!store_list(&entries, &count, &err))
		free(entries);
}

static void look(struct feed *feed)
{
	struct kymo_error err = { 0 };

	if (feed_look(feed, directory, &err) && !err.text[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct handmade made = { 0 };
	struct feed feed = { 0 };
	size_t half = bytes > 1 ? (bytes - 1) / 2 : 0;

	if (!bytes)
		return 0;
	handmade_all(&made);
	if (data[0] & 1)
		make_live(&made);
	edits_apply(&made, 0, data + 1, half);
	handmade_write(&made, directory);
	read_all();
	look(&feed);
	edits_apply(&made, 0, data + 1 + half, bytes - 1 - half);
	handmade_write(&made, directory);
	look(&feed);
	feed_fini(&feed);
	handmade_free(&made);
	return 0;
}
