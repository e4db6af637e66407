/* The copied memory of one Python thread and the frames found in it. See pystack.h for the
   method. */
#ifndef KYMO_COLLECT_PYTHON_PYIMAGE_H
#define KYMO_COLLECT_PYTHON_PYIMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/python/pycode.h"
#include "collect/python/pyobj.h"
#include "collect/python/pystack.h"
#include "collect/native/process_memory.h"

#define PYIMAGE_HEAD_BYTES PYLAYOUT_THREAD_BYTES
#define PYIMAGE_COPIES 3
#define PYIMAGE_GUESSES_MOST 256 /* code objects of all threads; others need a second call */

/* Memory with frames: a chunk of the data stack, or a single frame elsewhere. */
struct pyimage_region {
	uint64_t address;
	size_t bytes;
	size_t at; /* in each copy */
	uint64_t first_frame; /* of a chunk: address of its first frame; 0: a single frame */
};

struct pyimage {
	uint64_t state; /* address of the PyThreadState */
	unsigned char head[PYIMAGE_HEAD_BYTES]; /* of the PyThreadState, as read with the sample */
	uint64_t cframe; /* 3.11, 3.12: holds the current frame; guessed, then checked */
	uint64_t current; /* the current frame, read between the copies */
	struct pyimage_region *regions;
	size_t region_count, region_room;
	size_t part; /* index of its first part in the batch */
	struct process_memory_batch *batch; /* contains its parts */
	unsigned char *copy[PYIMAGE_COPIES];
	size_t copy_bytes, copy_room;
	struct pystack_frame *frames;
	uint32_t *codes; /* for each frame: index in the wanted code objects */
	size_t frame_count, frame_room;
	/* Of the last accepted stack, outermost first: its code objects are expected again. */
	struct pyimage_hint {
		uint64_t code_address;
		uint32_t guess; /* its number in the guessed code objects */
	} * hints;
	size_t hint_count, hint_room;
	bool off_hints; /* the stack has other code objects */
	bool ran; /* the innermost instruction differs between copies */
	char name[PYSTACK_NAME_BYTES];
	unsigned name_tries;
	unsigned tries; /* in this sample */
	bool added; /* its parts are in the batch */
	bool known; /* the regions are known */
	bool partial; /* the innermost frames were left out */
	bool walked; /* frames contain a stack that did not change */
	bool done; /* all checks passed */
};

struct pyimage *pyimage_create(uint64_t state);
void pyimage_destroy(struct pyimage *image);
/* Adds its reads to the batch, after finding its regions if they are unknown. *room_bytes: the
   memory that copies may still take, decremented; a thread that needs more is not read. False: out
   of memory. */
bool pyimage_add(struct pyimage *image, const struct pymemory *memory,
		 struct process_memory_batch *batch, size_t *room_bytes);
/* After the batch: finds the frames. Sets .walked, or determines what to read the next time. */
void pyimage_walk(struct pyimage *image, const struct pymemory *memory);
/* Adds its code objects to the wanted ones, of which the first `guessed` were read as the hints of
   all images tell. False: out of memory. */
bool pyimage_want(struct pyimage *image, size_t guessed, struct pycode_wanted **wanted,
		  size_t *count, size_t *room);
/* Adds the code objects of its last accepted stack to those that are guessed for the next one. */
void pyimage_guess(struct pyimage *image, uint64_t **guesses, size_t *count, size_t *room);
/* Fills the frames after the code objects are read; true if all checks pass. */
bool pyimage_settle(struct pyimage *image, const struct pylayout *layout,
		    const struct pycode_wanted *wanted);

#endif
