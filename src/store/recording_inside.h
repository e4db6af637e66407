/* Internals of the store: the private part of an open recording, and the steps of opening one. */
#ifndef KYMO_STORE_RECORDING_INSIDE_H
#define KYMO_STORE_RECORDING_INSIDE_H

#include "base/files/run_files.h"
#include "base/files/stream_image.h"
#include "base/intern.h"
#include "store/arena.h"
#include "store/store.h"

#define INSIDE_PROBLEMS_MAX 200 /* problems with a sentence; further ones are only counted */

/* recording->arena */
struct inside {
	struct run_files source;
	struct arena arena;
	struct stream_image *copies; /* of streams, with rows, totals and descriptors */
	size_t copy_count, copy_room;
	size_t open_files; /* descriptors that may still be opened */
	uint64_t room_bytes; /* memory that copies of streams may still take */
	size_t unsaid; /* problems beyond INSIDE_PROBLEMS_MAX */
	struct intern name_index; /* of recording->names + 1 */
	size_t name_room, thread_room, stream_room, process_room;
	bool no_memory;
	bool same_boot; /* the recording is of this machine and boot */
	struct kymo_clock_pair now; /* set if same_boot */
	int64_t latest_ns; /* later times are ignored when determining the end of a process */
};

static inline struct inside *inside_of(const struct recording *recording)
{
	return recording->arena;
}

/* Add a sentence to recording->problems; the second has the signature of a sink. */
__attribute__((format(printf, 2, 3))) void inside_say(struct recording *recording,
						      const char *format, ...);
void inside_hear(void *recording, const char *sentence);
/* Makes room for one more item; NULL: out of memory, and opening fails at its end. */
void *inside_grow(struct recording *recording, void *items, size_t count, size_t *room,
		  size_t item_bytes);

/* Takes ownership of source, also on error. path is for messages. parts: as many recordings share
   the descriptors and the memory that there are. */
int inside_open(struct run_files *source, const char *path, size_t parts, struct recording **out,
		struct kymo_error *err);
/* Index 0 of names and threads, which is "unknown". */
void inside_begin_lists(struct recording *recording);
/* Adds the number of problems that have no sentence. */
void inside_end_problems(struct recording *recording);
/* For a recording without files of its own. */
void inside_no_source(struct inside *inside);

/* open_process.c: the control pages and states of all processes; then, once the clocks are known,
   the rest. */
void open_process_controls(struct recording *recording);
void open_process_contents(struct recording *recording);
/* Agents that start the ranks of a host have numbers of their own from their launcher: these do not
   count where torch has numbered its ranks otherwise. */
void open_process_ranks(struct recording *recording);
enum store_state open_process_state(const struct kymo_control *control,
				    const struct kymo_run_file *run, bool may_live);
/* Joins NUL-terminated words into one line for a shell, in the arena. */
char *open_process_command(struct recording *recording, const char *argv, size_t argv_bytes);

/* open_stream.c: copies the streams of a process; then, once names and threads are known, describes
   them. */
void open_stream_copy(struct recording *recording, uint32_t process, const char *directory);
void open_stream_describe(struct recording *recording, uint32_t process, size_t first_copy);

/* open_names.c */
void open_names_read(struct recording *recording, uint32_t process, const char *directory);
/* The index of a name in the recording's list, where it is added if it is new; 0: out of memory. */
uint32_t open_names_unify(struct recording *recording, const struct store_name *name);
void open_names_threads(struct recording *recording, uint32_t process, const char *directory);

#endif
