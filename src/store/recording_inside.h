/* Inside the store: what an open recording holds besides its public fields, and the steps of
   opening one. */
#ifndef KYMO_STORE_RECORDING_INSIDE_H
#define KYMO_STORE_RECORDING_INSIDE_H

#include "base/files/run_files.h"
#include "base/files/stream_image.h"
#include "store/arena.h"
#include "store/store.h"

#define INSIDE_PROBLEMS_MAX 200 /* sentences; further ones are only counted */

/* recording->arena */
struct inside {
	struct run_files source;
	struct arena arena;
	struct stream_image *copies; /* of streams: they hold rows, totals and descriptors */
	size_t copy_count, copy_room;
	size_t open_files; /* descriptors that may still be held */
	size_t unsaid; /* problems beyond INSIDE_PROBLEMS_MAX */
	uint32_t *name_hash; /* index of names by hash; 0: free */
	size_t name_hash_slots; /* a power of two */
	size_t name_room, thread_room, stream_room, process_room;
	bool no_memory;
	bool same_boot; /* the recording is of this machine, since it started */
	struct kymo_clock_pair now; /* filled when same_boot */
	int64_t latest_ns; /* no time after this is believed when looking for a process's end */
};

static inline struct inside *inside_of(const struct recording *recording)
{
	return recording->arena;
}

/* Adds a sentence to recording->problems. The second is one for the sinks of others. */
__attribute__((format(printf, 2, 3))) void inside_say(struct recording *recording,
						      const char *format, ...);
void inside_hear(void *recording, const char *sentence);
/* Room for one more; NULL: no memory, and the opening fails at its end. */
void *inside_grow(struct recording *recording, void *items, size_t count, size_t *room,
		  size_t item_bytes);

/* Takes the source over, also on error. The directory's or file's name is for messages. */
int inside_open(struct run_files *source, const char *path, struct recording **out,
		struct kymo_error *err);

/* openprocess.c: the control pages of all processes and who of them lives; then, with the clocks
   known, all the rest. */
void open_process_controls(struct recording *recording);
void open_process_contents(struct recording *recording);
enum store_state open_process_state(const struct kymo_control *control,
				   const struct kymo_run_file *run, bool may_live);
/* Words, each ended by NUL, as one line for a shell; in the arena. */
char *open_process_command(struct recording *recording, const char *argv, size_t argv_bytes);

/* openstream.c: copies of a process's streams, then (names and threads being known) what can be
   said of them. */
void open_stream_copy(struct recording *recording, uint32_t process, const char *directory);
void open_stream_describe(struct recording *recording, uint32_t process, size_t first_copy);

/* opennames.c */
void open_names_read(struct recording *recording, uint32_t process, const char *directory);
void open_names_threads(struct recording *recording, uint32_t process, const char *directory);

#endif
