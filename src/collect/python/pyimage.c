#include "collect/python/pyimage.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define CHUNKS_MOST 8192
#define CHUNK_BYTES_MOST (64u << 20)
#define BEYOND_TOP 1024u /* bytes for frames that are pushed during the read */
#define SINGLES_MOST 256 /* frames outside of the data stack, known from the last read */
#define OWNER_NOT_PYTHON 3 /* and above: frames of the interpreter itself */
#define OWNER_HIGHEST 4
#define TRIES_STRICT 8
#define TRIES_WHOLE 12 /* after these, a stack of callers only is accepted */

struct pyimage *pyimage_create(uint64_t state)
{
	struct pyimage *image = calloc(1, sizeof(*image));

	if (image)
		image->state = state;
	return image;
}

void pyimage_destroy(struct pyimage *image)
{
	for (int i = 0; i < PYIMAGE_COPIES; i++)
		free(image->copy[i]);
	free(image->regions);
	free(image->frames);
	free(image->codes);
	free(image->hints);
	free(image);
}

/* ---- regions with frames --------------------------------------------------------------------- */

static bool pyimage_add_region(struct pyimage *image, uint64_t address, size_t bytes,
			       uint64_t first_frame)
{
	if (!grow((void **)&image->regions, &image->region_room, image->region_count,
		  sizeof(*image->regions)))
		return false;
	image->regions[image->region_count++] = (struct pyimage_region){ address, bytes,
									 image->copy_bytes,
									 first_frame };
	image->copy_bytes += (bytes + 15) & ~(size_t)15;
	return true;
}

static const struct pyimage_region *region_of(const struct pyimage *image, uint64_t frame,
					      size_t bytes, const struct pyimage_region *guess)
{
	if (guess && frame >= guess->address && frame - guess->address <= guess->bytes - bytes)
		return guess;
	for (size_t i = 0; i < image->region_count; i++) {
		const struct pyimage_region *region = &image->regions[i];

		if (region->bytes >= bytes && frame >= region->address &&
		    frame - region->address <= region->bytes - bytes)
			return region;
	}
	return NULL;
}

static size_t pyimage_frame_bytes(const struct pylayout *layout)
{
	return (size_t)layout->frame_localsplus;
}

/*
 * Finds out whether a list leads back to itself: the address at step 1, 2, 4, 8, … is kept and
 * compared with all later ones.
 */
struct cycle {
	uint64_t kept;
	size_t steps, next;
};

static bool has_met(struct cycle *cycle, uint64_t address)
{
	if (cycle->steps && address == cycle->kept)
		return true;
	if (cycle->steps++ >= cycle->next) {
		cycle->kept = address;
		cycle->next = 2 * cycle->steps;
	}
	return false;
}

/* The chunks of the data stack, newest first; only their used part. */
static bool find_chunks(struct pyimage *image, const struct pymemory *memory)
{
	const struct pylayout *layout = memory->layout;
	uint64_t chunk = process_memory_word(image->head, layout->thread_datastack_chunk);
	uint64_t top = process_memory_word(image->head, layout->thread_datastack_top);
	unsigned char head[32];
	struct cycle cycle = { 0 };

	for (int i = 0; chunk && i < CHUNKS_MOST && !has_met(&cycle, chunk); i++) {
		uint64_t bytes, used, previous;

		if (process_memory_read(memory->pid, chunk, head, sizeof(head)))
			return true; /* inconsistent: the walk detects it */
		bytes = process_memory_word(head, layout->chunk_size);
		previous = process_memory_word(head, layout->chunk_previous);
		used = i ? (uint64_t)layout->chunk_data +
				       8 * process_memory_word(head, layout->chunk_top)
			 : (top > chunk ? top - chunk : 0) + BEYOND_TOP;
		if (bytes > CHUNK_BYTES_MOST)
			return true;
		if (used > bytes)
			used = bytes;
		/* The first word of the first chunk is unused. */
		if (!pyimage_add_region(image, chunk, used,
					chunk + (uint64_t)layout->chunk_data + (previous ? 0 : 8)))
			return false;
		chunk = previous;
	}
	return true;
}

static uint64_t current_of(const struct pyimage *image, const struct pylayout *layout,
			   uint64_t in_cframe)
{
	return layout->thread_cframe >= 0
		       ? in_cframe
		       : process_memory_word(image->head, layout->thread_current_frame);
}

/* Follows the chain once, unchecked, to find frames outside of the data stack: generators and,
   since 3.12, frames of the interpreter on the C stack. */
static bool find_singles(struct pyimage *image, const struct pymemory *memory, uint64_t frame)
{
	const struct pylayout *layout = memory->layout;
	const struct pyimage_region *region = NULL;
	size_t bytes = pyimage_frame_bytes(layout);
	unsigned char one[PYLAYOUT_FRAME_BYTES];
	struct cycle cycle = { 0 };

	for (size_t i = 0; frame && i < PYSTACK_DEEPEST && !has_met(&cycle, frame); i++) {
		region = region_of(image, frame, bytes, NULL);
		if (!region && !pyimage_add_region(image, frame, bytes, 0))
			return false;
		if (process_memory_read(memory->pid, frame, one, bytes))
			return true;
		frame = process_memory_word(one, layout->frame_previous);
		/* Frames on the data stack are in the copies; only links that leave it are
		   followed. */
		if (region && region->first_frame)
			return true;
	}
	return true;
}

static size_t pyimage_head_bytes(const struct pylayout *layout)
{
	size_t bytes = (size_t)layout->thread_datastack_top + 8;

	return bytes <= PYIMAGE_HEAD_BYTES ? bytes : PYIMAGE_HEAD_BYTES;
}

static bool find_regions(struct pyimage *image, const struct pymemory *memory)
{
	const struct pylayout *layout = memory->layout;
	uint64_t current = 0;

	image->region_count = 0;
	image->copy_bytes = 0;
	image->known = true;
	if (process_memory_read(memory->pid, image->state, image->head, pyimage_head_bytes(layout)))
		return true;
	if (layout->thread_cframe >= 0) {
		image->cframe = process_memory_word(image->head, layout->thread_cframe);
		current = process_memory_pointer(
			memory->pid, image->cframe + (uint64_t)layout->cframe_current_frame);
	}
	return find_chunks(image, memory) &&
	       find_singles(image, memory, current_of(image, layout, current));
}

/* ---- copies ---------------------------------------------------------------------------------- */

static bool pyimage_make_room(struct pyimage *image)
{
	if (image->copy_bytes <= image->copy_room && image->copy[0])
		return true;
	for (int i = 0; i < PYIMAGE_COPIES; i++) {
		unsigned char *larger = realloc(image->copy[i], image->copy_bytes + 64);

		if (!larger)
			return false;
		image->copy[i] = larger;
	}
	image->copy_room = image->copy_bytes;
	return true;
}

static bool pyimage_add_copy(struct pyimage *image, struct process_memory_batch *batch, int copy)
{
	for (size_t i = 0; i < image->region_count; i++)
		if (!process_memory_batch_add(batch, image->regions[i].address,
					      image->copy[copy] + image->regions[i].at,
					      image->regions[i].bytes))
			return false;
	return true;
}

bool pyimage_add(struct pyimage *image, const struct pymemory *memory,
		 struct process_memory_batch *batch, size_t *room_bytes)
{
	const struct pylayout *layout = memory->layout;

	image->walked = image->added = false;
	image->tries++;
	if (!image->known && !find_regions(image, memory))
		return false;
	if (image->copy_bytes > *room_bytes / PYIMAGE_COPIES)
		return true;
	*room_bytes -= image->copy_bytes * PYIMAGE_COPIES;
	if (!pyimage_make_room(image))
		return false;
	image->added = true;
	image->part = batch->count;
	image->batch = batch;
	if (!pyimage_add_copy(image, batch, 0) ||
	    !process_memory_batch_add(batch, image->state, image->head, pyimage_head_bytes(layout)))
		return false;
	if (layout->thread_cframe >= 0 &&
	    !process_memory_batch_add(batch, image->cframe + (uint64_t)layout->cframe_current_frame,
				      &image->current, 8))
		return false;
	return pyimage_add_copy(image, batch, 1) && pyimage_add_copy(image, batch, 2);
}

static bool all_read(const struct pyimage *image, const struct pylayout *layout)
{
	size_t parts = PYIMAGE_COPIES * image->region_count + 1 + (layout->thread_cframe >= 0);

	for (size_t i = 0; i < parts; i++)
		if (!image->batch->parts[image->part + i].ok)
			return false;
	return true;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static struct pystack_frame *pyimage_add_frame(struct pyimage *image)
{
	size_t codes_room = image->frame_room; /* codes grow with frames */

	if (!grow((void **)&image->codes, &codes_room, image->frame_count, sizeof(*image->codes)) ||
	    !grow((void **)&image->frames, &image->frame_room, image->frame_count,
		  sizeof(*image->frames)))
		return NULL;
	return memset(&image->frames[image->frame_count++], 0, sizeof(struct pystack_frame));
}

/* A frame outside of the known regions: it is read the next time. */
static void pyimage_learn(struct pyimage *image, const struct pymemory *memory, uint64_t frame)
{
	size_t singles = 0;

	for (size_t i = 0; i < image->region_count; i++)
		singles += !image->regions[i].first_frame;
	/* The data stack has grown or moved: all regions are searched again. */
	if (singles > SINGLES_MOST || frame % 8 ||
	    (frame >= process_memory_word(image->head, memory->layout->thread_datastack_chunk) &&
	     frame < process_memory_word(image->head, memory->layout->thread_datastack_top) +
			     BEYOND_TOP))
		image->known = false;
	else
		image->known = pyimage_add_region(image, frame, pyimage_frame_bytes(memory->layout),
						  0);
}

static bool pyimage_take_frame(struct pyimage *image, const struct pylayout *layout,
			       uint64_t address, const unsigned char *bytes)
{
	unsigned owner = bytes[layout->frame_owner];
	struct pystack_frame *frame;

	if (owner > OWNER_HIGHEST)
		return false;
	if (owner >= OWNER_NOT_PYTHON) {
		/* A frame of the interpreter: the frame before it was called from C and is an
		   entry. */
		if (image->frame_count)
			image->frames[image->frame_count - 1].entry = true;
		return true;
	}
	frame = pyimage_add_frame(image);
	if (!frame)
		return false;
	frame->address = address;
	frame->code_address = process_memory_word(bytes, layout->frame_code) & ~7ull;
	frame->instruction = process_memory_word(bytes, layout->frame_instr);
	frame->owner = (uint8_t)owner;
	frame->entry = layout->frame_is_entry >= 0 && bytes[layout->frame_is_entry];
	return true;
}

/* True if a frame was the same in copy 2 as in copies 1 and 3. */
static bool pyimage_is_steady(const struct pyimage *image, size_t at, size_t bytes)
{
	return !memcmp(image->copy[0] + at, image->copy[1] + at, bytes) &&
	       !memcmp(image->copy[1] + at, image->copy[2] + at, bytes);
}

/*
 * True if a frame has the same function and the same caller in all copies, at any instruction.
 * Without this check, a pause of this process in the middle of a copy shows the caller before the
 * pause and the function after it, and in a loop the next iterations of the caller look like the
 * first.
 */
static bool is_same_function(const struct pyimage *image, const struct pylayout *layout, size_t at)
{
	const int32_t fields[] = { layout->frame_code, layout->frame_previous };

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t middle = process_memory_word(image->copy[1] + at, fields[i]);

		if (process_memory_word(image->copy[0] + at, fields[i]) != middle ||
		    process_memory_word(image->copy[2] + at, fields[i]) != middle)
			return false;
	}
	return true;
}

/*
 * While a frame runs, the height of its stack is kept elsewhere and the frame has -1; when it calls
 * another Python function, the frame has the height. So the innermost frame is running and its
 * callers are not, unless C is between them. A stale frame of an earlier call is not running. (The
 * interpreter may store the height during C code, too, so an unchanged frame is accepted after some
 * tries.)
 */
static bool is_in_right_state(const struct pyimage *image, const struct pylayout *layout,
			      const unsigned char *frame, bool innermost, bool steady)
{
	bool called_by_c = image->frame_count && image->frames[image->frame_count - 1].entry;
	int32_t height;

	if (layout->frame_stacktop < 0 || frame[layout->frame_owner] >= OWNER_NOT_PYTHON)
		return true;
	memcpy(&height, frame + layout->frame_stacktop, 4);
	if (!image->frame_count && image->partial)
		return true; /* the frame it called was left out */
	if (innermost)
		return height < 0 || (steady && image->tries > TRIES_STRICT);
	return height >= 0 || called_by_c;
}

/* False: reject the frame. An innermost frame is taken from copy 2, its callers must be the same in
   all copies. */
static bool pyimage_is_kept(const struct pyimage *image, const struct pylayout *layout, size_t at,
			    bool innermost)
{
	bool steady = pyimage_is_steady(image, at, pyimage_frame_bytes(layout));

	if (innermost ? !is_same_function(image, layout, at) : !steady)
		return false;
	return is_in_right_state(image, layout, image->copy[1] + at, innermost, steady);
}

/* A function that changes during every read is left out together with its callees, if its caller is
   certain. */
static bool leave_out(struct pyimage *image, const struct pylayout *layout, size_t at)
{
	uint64_t caller = process_memory_word(image->copy[1] + at, layout->frame_previous);

	image->frame_count = 0;
	image->partial = true;
	return image->tries > TRIES_WHOLE &&
	       process_memory_word(image->copy[0] + at, layout->frame_previous) == caller &&
	       process_memory_word(image->copy[2] + at, layout->frame_previous) == caller;
}

/* The innermost frame at two instructions: the thread had a CPU between the copies. */
static bool pyimage_has_run(const struct pyimage *image, const struct pylayout *layout, size_t at)
{
	return process_memory_word(image->copy[0] + at, layout->frame_instr) !=
	       process_memory_word(image->copy[2] + at, layout->frame_instr);
}

/* From the innermost frame outwards. */
static void pyimage_follow(struct pyimage *image, const struct pymemory *memory)
{
	const struct pylayout *layout = memory->layout;
	size_t bytes = pyimage_frame_bytes(layout), steps = 0;
	const struct pyimage_region *region = NULL;
	uint64_t frame = image->current;
	struct cycle cycle = { 0 };

	image->frame_count = 0;
	image->partial = image->ran = false;
	for (; frame && steps < PYSTACK_DEEPEST; steps++) {
		const unsigned char *middle;
		size_t at;

		if (has_met(&cycle, frame) || (!(steps % 1024) && process_memory_late()))
			return;

		region = frame % 8 ? NULL : region_of(image, frame, bytes, region);
		if (!region) {
			pyimage_learn(image, memory, frame);
			return;
		}
		at = region->at + (size_t)(frame - region->address);
		middle = image->copy[1] + at;
		if (!steps)
			image->ran = pyimage_has_run(image, layout, at);
		if (pyimage_is_kept(image, layout, at, !steps)
			    ? !pyimage_take_frame(image, layout, frame, middle)
			    : !leave_out(image, layout, at))
			return;
		frame = process_memory_word(middle, layout->frame_previous);
	}
	image->walked = !frame && (image->frame_count || !image->partial);
}

void pyimage_walk(struct pyimage *image, const struct pymemory *memory)
{
	const struct pylayout *layout = memory->layout;

	if (!image->added || !all_read(image, layout)) {
		image->known = false;
		return;
	}
	image->current = current_of(image, layout, image->current);
	if (layout->thread_cframe >= 0 &&
	    process_memory_word(image->head, layout->thread_cframe) != image->cframe) {
		image->cframe = process_memory_word(image->head, layout->thread_cframe);
		return;
	}
	pyimage_follow(image, memory);
}

/* ---- code ------------------------------------------------------------------------------------ */

#define LATEST 64u /* entries that are compared: stacks repeat, and duplicates are allowed */

/* The entry of a code object that was read for the same place of the last stack; count: none. */
static size_t hinted(const struct pyimage *image, size_t guessed,
		     const struct pycode_wanted *wanted, size_t count, size_t frame)
{
	size_t at = image->frame_count - 1 - frame;
	size_t guess = at < image->hint_count ? image->hints[at].guess : guessed;

	return guess < guessed && wanted[guess].address == image->frames[frame].code_address
		       ? guess
		       : count;
}

static size_t latest_entry(const struct pycode_wanted *wanted, size_t count, uint64_t address)
{
	size_t first = count > LATEST ? count - LATEST : 0;

	for (size_t at = count; at > first; at--)
		if (wanted[at - 1].address == address)
			return at - 1;
	return count;
}

bool pyimage_want(struct pyimage *image, size_t guessed, struct pycode_wanted **wanted,
		  size_t *count, size_t *room)
{
	image->off_hints = image->frame_count != image->hint_count;
	for (size_t i = 0; i < image->frame_count; i++) {
		uint64_t address = image->frames[i].code_address;
		size_t at = hinted(image, guessed, *wanted, *count, i);

		if (at == *count) {
			image->off_hints = true;
			at = latest_entry(*wanted, *count, address);
		}
		if (at == *count) {
			if (!grow((void **)wanted, room, *count, sizeof(**wanted)))
				return false;
			(*wanted)[(*count)++].address = address;
		}
		(*wanted)[at].used = true;
		image->codes[i] = (uint32_t)at;
	}
	return true;
}

static uint32_t guess_of(uint64_t address, uint64_t **guesses, size_t *count, size_t *room)
{
	size_t first = *count > LATEST ? *count - LATEST : 0;

	for (size_t at = *count; at > first; at--)
		if ((*guesses)[at - 1] == address)
			return (uint32_t)(at - 1);
	if (*count >= PYIMAGE_GUESSES_MOST ||
	    !grow((void **)guesses, room, *count, sizeof(**guesses)))
		return UINT32_MAX;
	(*guesses)[*count] = address;
	return (uint32_t)(*count)++;
}

void pyimage_guess(struct pyimage *image, uint64_t **guesses, size_t *count, size_t *room)
{
	for (size_t i = 0; i < image->hint_count; i++)
		image->hints[i].guess = guess_of(image->hints[i].code_address, guesses, count,
						 room);
}

/* Before frames of the interpreter are left out. */
static void keep_hints(struct pyimage *image)
{
	if (!image->off_hints)
		return;
	image->hint_count = 0;
	for (size_t i = image->frame_count; i-- > 0;) {
		if (image->hint_count >= PYIMAGE_GUESSES_MOST ||
		    !grow((void **)&image->hints, &image->hint_room, image->hint_count,
			  sizeof(*image->hints)))
			return;
		image->hints[image->hint_count++] = (struct pyimage_hint){
			image->frames[i].code_address, UINT32_MAX
		};
	}
}

/* On the data stack a frame begins at the end of the previous one, or at the start of a chunk. */
static bool is_adjacent(const struct pyimage *image, const struct pystack_frame *inner,
			const struct pystack_frame *outer, const struct pyimage_region *region)
{
	if (!outer || outer->address < region->address || outer->address > inner->address)
		return inner->address == region->first_frame;
	(void)image;
	return !outer->code->frame_bytes ||
	       inner->address == outer->address + outer->code->frame_bytes;
}

static bool fits_together(const struct pyimage *image, size_t bytes)
{
	const struct pyimage_region *region = NULL;
	const struct pystack_frame *inner = NULL;

	for (size_t i = 0; i < image->frame_count; i++) {
		const struct pystack_frame *frame = &image->frames[i];

		if (frame->owner)
			continue; /* in a generator */
		if (inner && !is_adjacent(image, inner, frame, region))
			return false;
		region = region_of(image, frame->address, bytes, region);
		if (!region || !region->first_frame)
			return false;
		inner = frame;
	}
	return !inner || !inner->code->frame_bytes || is_adjacent(image, inner, NULL, region);
}

/* After the check of places, which needs them. */
static void drop_internal(struct pyimage *image)
{
	size_t kept = 0;

	for (size_t i = 0; i < image->frame_count; i++)
		if (!image->frames[i].code->internal)
			image->frames[kept++] = image->frames[i];
	image->frame_count = kept;
}

bool pyimage_settle(struct pyimage *image, const struct pylayout *layout,
		    const struct pycode_wanted *wanted)
{
	for (size_t i = 0; i < image->frame_count; i++) {
		struct pystack_frame *frame = &image->frames[i];
		int64_t unit;

		if (process_memory_late())
			return false; /* a line table takes up to a millisecond */
		frame->code = wanted[image->codes[i]].code;
		if (!frame->code)
			return false;
		unit = (int64_t)(frame->instruction - frame->code_address -
				 (uint64_t)layout->code_adaptive) /
		       2;
		if (unit < -1 || unit > (int64_t)frame->code->units || frame->instruction % 2)
			return false;
		frame->line = pycode_line(frame->code, unit);
	}
	if (fits_together(image, pyimage_frame_bytes(layout))) {
		keep_hints(image);
		drop_internal(image);
		return true;
	}
	image->known = false; /* the kind of a region may have been misjudged */
	return false;
}
