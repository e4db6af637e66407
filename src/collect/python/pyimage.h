/* What was copied of one Python thread, and the frames found in it. pystack.h says how and why. */
#ifndef KYMO_COLLECT_PYTHON_PYIMAGE_H
#define KYMO_COLLECT_PYTHON_PYIMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/python/pycode.h"
#include "collect/python/pyobj.h"
#include "collect/python/pystack.h"
#include "collect/native/process_memory.h"

#define PYIMAGE_HEAD_BYTES 512
#define PYIMAGE_COPIES 3

/* Memory that holds frames: a chunk of the data stack, or a single frame elsewhere. */
struct pyimage_region {
	uint64_t address;
	size_t bytes;
	size_t at; /* in each copy */
	uint64_t first_frame; /* a chunk: where its first frame lies; 0: a single frame */
};

struct pyimage {
	uint64_t state; /* address of the PyThreadState */
	unsigned char head[PYIMAGE_HEAD_BYTES]; /* of it, as read with the sample */
	uint64_t cframe; /* 3.11, 3.12: where the current frame is said; guessed, then checked */
	uint64_t current; /* the current frame, as read between the copies */
	struct pyimage_region *regions;
	size_t region_count, region_room;
	size_t part; /* its first part of the batch */
	struct process_memory_batch *batch; /* where its parts are */
	unsigned char *copy[PYIMAGE_COPIES];
	size_t copy_bytes, copy_room;
	struct pystack_frame *frames;
	uint32_t *codes; /* of each frame: place among the wanted */
	size_t frame_count, frame_room;
	char name[PYSTACK_NAME_BYTES];
	unsigned name_tries;
	unsigned tries; /* in this sample */
	bool known; /* regions have been looked for */
	bool partial; /* the innermost frames were left out */
	bool walked; /* frames hold a stack that did not change */
	bool done; /* and every check was passed */
};

struct pyimage *pyimage_create(uint64_t state);
void pyimage_destroy(struct pyimage *image);
/* Adds its reads to the batch; looks for its regions first, if they are not known. False: no
   memory. */
bool pyimage_add(struct pyimage *image, const struct pymemory *memory,
		 struct process_memory_batch *batch);
/* After the batch: finds the frames. Sets .walked, or learns what to read the next time. */
void pyimage_walk(struct pyimage *image, const struct pymemory *memory);
/* Adds its code objects to those wanted. False: no memory. */
bool pyimage_want(struct pyimage *image, struct pycode_wanted **wanted, size_t *count,
		  size_t *room);
/* With the code objects known: fills the frames; true where all fits together. */
bool pyimage_settle(struct pyimage *image, const struct pylayout *layout,
		    const struct pycode_wanted *wanted);

#endif
