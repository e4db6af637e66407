#include "collect/perf/native_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/schema.h"
#include "record/record.h"

#define NODES_MOST (1u << 22)
#define FLIGHT_NODES 4000 /* less than half of a ring */
#define WAITING_MOST 20000
#define LATE_MOST (WAITING_MOST / 2)
#define LATE_NS 8000000000ull /* that samples wait for lines at most */
#define EVALUATOR_WORDS 128 /* of the interpreter loop's frame; about 60 in CPython 3.11 */
#define WORDS_MOST (16u << 20) /* of all samples that wait: 128 MB; those beyond are not merged */
#define INSTRUCTION_BYTES 32 /* the longest one with its inline caches has 22 */
#define PYTHON_MOST 512
#define LABELS_MOST 4096 /* of a stack with its inlined functions */

void native_rows_init(struct native_rows *rows, struct recent_stacks *recent, enum kymo_keep keep)
{
	memset(rows, 0, sizeof(*rows));
	rows->recent = recent;
	rows->nodes_most = keep == KYMO_KEEP_ALL ? NODES_MOST : FLIGHT_NODES;
}

void native_rows_fini(struct native_rows *rows)
{
	native_modules_fini(&rows->modules);
	native_places_fini(&rows->places);
	free(rows->waiting);
	free(rows->places_of);
	free(rows->words_of);
	free(rows->words);
	free(rows->nodes);
	intern_fini(&rows->nodes_index);
	memset(rows, 0, sizeof(*rows));
}

/* ---- samples that wait ----------------------------------------------------------------------- */

/* Data outside of the stack and of code, as Python's objects are. */
static bool may_be_data(const struct address_space *space, const struct frame_memory *memory,
			uint64_t word)
{
	return word > 0xffff && word < 1ull << 47 &&
	       (word < memory->start || word - memory->start >= memory->count) &&
	       !address_space_at(space, word);
}

static void put_word(struct native_rows *rows, const struct address_space *space,
		     const struct frame_memory *memory, uint64_t word)
{
	if (rows->words_count < WORDS_MOST && may_be_data(space, memory, word) &&
	    grow((void **)&rows->words, &rows->words_room, rows->words_count, sizeof(word)))
		rows->words[rows->words_count++] = word;
}

/* What the interpreter loop had in its registers and in its frame: among it is the address of the
   instruction that it executes. */
static void keep_words(struct native_rows *rows, const struct address_space *space,
		       const struct native_frame *frame, const struct frame_memory *memory)
{
	struct native_words words = { .first = (uint32_t)rows->words_count };
	uint64_t at = frame->sp, word;

	for (int i = 0; i < FRAME_REGISTERS; i++)
		put_word(rows, space, memory, frame->registers[i]);
	for (int i = 0; i < EVALUATOR_WORDS && at < frame->cfa; i++, at += 8)
		if (frame_memory_read(memory, at, &word))
			put_word(rows, space, memory, word);
	words.count = (uint32_t)rows->words_count - words.first;
	if (grow((void **)&rows->words_of, &rows->words_of_room, rows->words_of_count,
		 sizeof(words)))
		rows->words_of[rows->words_of_count++] = words;
}

static bool native_rows_put_place(struct native_rows *rows, uint32_t place)
{
	if (place == INTERN_NONE ||
	    !grow((void **)&rows->places_of, &rows->places_room, rows->places_count, sizeof(place)))
		return false;
	rows->places_of[rows->places_count++] = place;
	return true;
}

static bool begin_waiting(struct native_rows *rows, struct native_waiting *waiting)
{
	if (rows->waiting_count >= WAITING_MOST ||
	    !grow((void **)&rows->waiting, &rows->waiting_room, rows->waiting_count,
		  sizeof(*waiting))) {
		kymo__lost(SCHEMA_NATIVE_SAMPLES, KYMO_DROP_FULL);
		return false;
	}
	waiting->first = (uint32_t)rows->places_count;
	waiting->first_words = (uint32_t)rows->words_of_count;
	waiting->evaluators = 0;
	return true;
}

bool native_rows_add(struct native_rows *rows, struct address_space *space,
		     const struct native_walk *walk, const struct frame_memory *memory,
		     const struct native_waiting *sample)
{
	struct native_waiting waiting = *sample;

	if (!begin_waiting(rows, &waiting))
		return false;
	waiting.flags |= walk->complete ? SCHEMA_NATIVE_COMPLETE : 0;
	for (size_t i = 0; i < walk->count; i++) {
		uint32_t number = native_places_of(&rows->places, space, &walk->frames[i]);

		if (!native_rows_put_place(rows, number))
			break;
		native_modules_see(&rows->modules, waiting.pid, &walk->frames[i]);
		if (rows->places.list[number].evaluates)
			keep_words(rows, space, &walk->frames[i], memory);
	}
	waiting.count = (uint32_t)rows->places_count - waiting.first;
	waiting.evaluators = (uint32_t)rows->words_of_count - waiting.first_words;
	rows->waiting[rows->waiting_count++] = waiting;
	return true;
}

bool native_rows_add_again(struct native_rows *rows, const uint32_t *places, uint32_t count,
			   const struct native_waiting *sample)
{
	struct native_waiting waiting = *sample;

	if (!begin_waiting(rows, &waiting))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!native_rows_put_place(rows, places[i]))
			break;
	waiting.count = (uint32_t)rows->places_count - waiting.first;
	rows->waiting[rows->waiting_count++] = waiting;
	return true;
}

uint32_t native_rows_word(const char *text)
{
	return *text ? kymo__intern(text, strlen(text), "", 0, 0, KYMO_SOURCE_C, 0) : 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool same_native_node(const void *nodes, uint32_t number, const void *wanted)
{
	return !memcmp((const struct native_node *)nodes + number, wanted,
		       sizeof(struct native_node));
}

static uint32_t add_native_node(struct native_rows *rows, uint32_t parent,
				const struct native_label *label)
{
	struct native_node wanted = { .parent = parent, .label = *label };
	struct schema_native_frame_row row = { .parent = parent,
					       .name = label->name,
					       .line = label->line,
					       .module = label->module,
					       .flags = label->flags };
	uint64_t hash = intern_hash(0, &wanted, sizeof(wanted));
	uint32_t number = intern_find(&rows->nodes_index, hash, same_native_node, rows->nodes,
				      &wanted);

	if (number != INTERN_NONE)
		return rows->nodes_before + number + 1;
	if (!grow((void **)&rows->nodes, &rows->nodes_room, rows->nodes_index.count,
		  sizeof(wanted)))
		return 0;
	number = intern_add(&rows->nodes_index, hash);
	if (number == INTERN_NONE)
		return 0;
	rows->nodes[number] = wanted;
	row.node = rows->nodes_before + number + 1;
	rows->stats.frames++;
	kymo__append(SCHEMA_NATIVE_FRAMES, &row);
	return row.node;
}

/* Rings keep the newest rows: nodes are written again before they are overwritten. */
static void begin_native_nodes(struct native_rows *rows)
{
	if (rows->nodes_index.count < rows->nodes_most)
		return;
	rows->nodes_before += (uint32_t)rows->nodes_index.count;
	intern_clear(&rows->nodes_index);
}

/* ---- merging --------------------------------------------------------------------------------- */

struct native_stack {
	struct native_label labels[LABELS_MOST]; /* innermost first */
	size_t count;
	struct recent_frame python[PYTHON_MOST];
	size_t python_count;
};

static void put_stack_label(struct native_stack *stack, const struct native_label *label)
{
	if (stack->count < LABELS_MOST)
		stack->labels[stack->count++] = *label;
}

static void put_place_labels(struct native_stack *stack, const struct native_places *places,
			     const struct native_place *place)
{
	for (uint32_t i = 0; i < place->label_count; i++)
		put_stack_label(stack, &places->labels[place->label + i]);
}

/* Whether the interpreter loop has the address of the function's instruction. In a call, it points
   to the next one or to the inline caches between; a loop that is itself on the CPU may be at any
   instruction of the function. */
static bool evaluates_frame(const struct native_rows *rows, const struct native_words *words,
			    const struct recent_frame *frame, bool calls)
{
	uint64_t first = calls ? frame->instruction : frame->code;
	uint64_t end = calls ? frame->instruction + INSTRUCTION_BYTES : frame->code_end;

	for (uint32_t i = 0; i < words->count; i++)
		if (rows->words[words->first + i] >= first && rows->words[words->first + i] < end)
			return true;
	return false;
}

/*
 * Each frame of the interpreter loop evaluates the Python frames up to the next that was called
 * from C. Both stacks agree if there are as many loops as such frames, and each loop is at the
 * instruction of the innermost of its Python frames.
 */
static bool stacks_agree(const struct native_rows *rows, const struct native_waiting *sample,
			 const struct native_stack *stack)
{
	bool calls = !rows->places.list[rows->places_of[sample->first]].evaluates;
	bool innermost = true;
	uint32_t loop = 0;

	for (size_t i = 0; i < stack->python_count; i++) {
		const struct recent_frame *frame = &stack->python[i];

		if (innermost &&
		    (loop >= sample->evaluators ||
		     !evaluates_frame(rows, &rows->words_of[sample->first_words + loop], frame,
				      calls || loop)))
			return false;
		innermost = frame->entry;
		loop += frame->entry;
	}
	return innermost && loop == sample->evaluators;
}

static bool find_python_stack(struct native_rows *rows, const struct native_waiting *sample,
			      struct native_stack *stack)
{
	stack->python_count = rows->recent && sample->evaluators
				      ? recent_stacks_at(rows->recent, sample->tid, sample->time_ns,
							 stack->python, PYTHON_MOST)
				      : 0;
	return stack->python_count && stack->python_count <= PYTHON_MOST &&
	       stacks_agree(rows, sample, stack);
}

/* The Python frames of one loop. */
static size_t put_python(struct native_stack *stack, size_t from)
{
	bool entry = false;

	for (; from < stack->python_count && !entry; from++) {
		entry = stack->python[from].entry;
		put_stack_label(stack, &(struct native_label){ .name = stack->python[from].name,
							       .line = stack->python[from].line,
							       .flags = SCHEMA_NATIVE_PYTHON });
	}
	return from;
}

static void put_frames(struct native_rows *rows, const struct native_waiting *sample,
		       struct native_stack *stack, bool merged)
{
	size_t python = 0;

	stack->count = 0;
	for (uint32_t i = 0; i < sample->count; i++) {
		const struct native_place *place =
			&rows->places.list[rows->places_of[sample->first + i]];

		if (merged && place->evaluates)
			python = put_python(stack, python);
		else
			put_place_labels(stack, &rows->places, place);
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void count_row(struct native_rows *rows, uint32_t flags)
{
	rows->stats.rows++;
	rows->stats.complete += (flags & SCHEMA_NATIVE_COMPLETE) != 0;
	rows->stats.merged += (flags & SCHEMA_NATIVE_MERGED) != 0;
	rows->stats.apart += (flags & SCHEMA_NATIVE_APART) != 0;
}

#define WAITS_DEEPEST 16 /* frames of the C library and of a language's own above a lock */

/* The innermost function that is known to wait tells what a futex is. */
static void name_futex(const struct native_rows *rows, const struct native_waiting *sample,
		       struct schema_native_row *row)
{
	enum native_wait_kind kind = NATIVE_WAIT_UNKNOWN;
	const char *word;

	for (uint32_t i = 0; i < sample->count && i < WAITS_DEEPEST && !kind; i++)
		kind = rows->places.list[rows->places_of[sample->first + i]].waits;
	if (sample->holder && kind != NATIVE_WAIT_RWLOCK)
		kind = NATIVE_WAIT_MUTEX;
	word = native_wait_word(kind);
	row->activity = native_rows_word(kind ? "lock" : "wait");
	row->waits_for = native_rows_word(word);
}

static void write_sample_row(struct native_rows *rows, const struct native_waiting *sample,
			     struct native_stack *stack)
{
	bool merged = find_python_stack(rows, sample, stack);
	const struct native_place *last =
		sample->count
			? &rows->places.list[rows->places_of[sample->first + sample->count - 1]]
			: NULL;
	struct schema_native_row row = { .ts_ticks = sample->ts_ticks,
					 .pid = sample->pid,
					 .tid = sample->tid,
					 .thread_name = sample->thread_name,
					 .flags = sample->flags,
					 .holder = sample->holder,
					 .weight_ns = sample->weight_ns,
					 .activity = sample->activity,
					 .waits_for = sample->waits_for };

	if (sample->futex)
		name_futex(rows, sample, &row);
	if (last && last->begins)
		row.flags |= SCHEMA_NATIVE_COMPLETE;
	if (sample->evaluators)
		row.flags |= merged ? SCHEMA_NATIVE_MERGED : SCHEMA_NATIVE_APART;
	put_frames(rows, sample, stack, merged);
	begin_native_nodes(rows);
	for (size_t i = stack->count; i-- > 0;) {
		row.stack = add_native_node(rows, row.stack, &stack->labels[i]);
		if (!row.stack)
			break;
	}
	if (!kymo__append(SCHEMA_NATIVE_SAMPLES, &row))
		count_row(rows, row.flags);
}

/* Those that still wait stay in their order, with what they refer to. */
static void drop_written(struct native_rows *rows, size_t written)
{
	const struct native_waiting *first;
	uint32_t places, words_of, words;

	rows->waiting_count -= written;
	memmove(rows->waiting, rows->waiting + written,
		rows->waiting_count * sizeof(*rows->waiting));
	if (!rows->waiting_count) {
		rows->places_count = rows->words_of_count = rows->words_count = 0;
		return;
	}
	first = &rows->waiting[0];
	places = first->first;
	words_of = first->first_words;
	words = words_of < rows->words_of_count ? rows->words_of[words_of].first
						: (uint32_t)rows->words_count;
	rows->places_count -= places;
	memmove(rows->places_of, rows->places_of + places,
		rows->places_count * sizeof(*rows->places_of));
	rows->words_of_count -= words_of;
	if (rows->words_of_count)
		memmove(rows->words_of, rows->words_of + words_of,
			rows->words_of_count * sizeof(*rows->words_of));
	rows->words_count -= words;
	if (rows->words_count)
		memmove(rows->words, rows->words + words, rows->words_count * sizeof(*rows->words));
	for (size_t i = 0; i < rows->waiting_count; i++) {
		rows->waiting[i].first -= places;
		rows->waiting[i].first_words -= words_of;
	}
	for (size_t i = 0; i < rows->words_of_count; i++)
		rows->words_of[i].first -= words;
}

/* Source lines are read by a process that yields to everything else. Samples wait for it, as a
   function would otherwise have two places, with its line and without. Those with Python frames do
   not: the Python samples around them are forgotten soon. */
static bool lines_are_worth_waiting(const struct native_rows *rows, uint64_t before_ns)
{
	if (before_ns == UINT64_MAX || rows->waiting_count > LATE_MOST ||
	    rows->waiting[0].time_ns + LATE_NS < before_ns || !native_places_wait(&rows->places))
		return false;
	for (size_t i = 0; i < rows->waiting_count; i++)
		if (rows->waiting[i].evaluators)
			return false;
	return true;
}

void native_rows_write(struct native_rows *rows, uint64_t before_ns, uint64_t deadline_ns)
{
	struct native_stack *stack;
	size_t written = 0;

	if (!rows->waiting_count || rows->waiting[0].time_ns >= before_ns)
		return;
	native_places_name(&rows->places, deadline_ns);
	if (lines_are_worth_waiting(rows, before_ns))
		return;
	native_modules_write(&rows->modules);
	stack = malloc(sizeof(*stack));
	for (; stack && written < rows->waiting_count && rows->waiting[written].time_ns < before_ns;
	     written++)
		write_sample_row(rows, &rows->waiting[written], stack);
	free(stack);
	drop_written(rows, written);
}
