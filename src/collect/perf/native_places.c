#include "collect/perf/native_places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/schema.h"
#include "collect/symbols/jit_map.h"
#include "record/record.h"

#define PLACES_MOST (1u << 22)
#define READ_AGAIN_NS 500000000ull
#define PAUSES_PER_READ 50u /* 2 % of a core */

/* ---- names ----------------------------------------------------------------------------------- */

static uint32_t native_name(const char *func, size_t func_bytes, const char *file,
			    size_t file_bytes, enum kymo_source source)
{
	return kymo__intern(func, func_bytes, file, file_bytes, 0, source, 0);
}

static uint32_t module_name(struct module *module)
{
	if (module && !module->path_name)
		module->path_name = native_name(module->path, strlen(module->path), "", 0,
						KYMO_SOURCE_C);
	return module ? module->path_name : 0;
}

/* Python frames are evaluated by one function or, since 3.14 and with some compilers, by one
   function for each instruction, connected by tail calls. */
static bool is_evaluator(const char *symbol)
{
	return !strncmp(symbol, "_PyEval_EvalFrameDefault", 24) ||
	       !strncmp(symbol, "_TAIL_CALL_", 11);
}

/* Assembler code that has no caller, in case that it has no call frame information either. */
static bool is_beginning(const char *symbol)
{
	static const char *const names[] = { "_start",	 "__clone", "clone",
					     "__clone3", "clone3",  "_dl_start_user" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(symbol, names[i]))
			return true;
	return false;
}

const char *native_wait_word(enum native_wait_kind kind)
{
	static const char *const words[] = {
		[NATIVE_WAIT_UNKNOWN] = "a futex",
		[NATIVE_WAIT_MUTEX] = "a mutex",
		[NATIVE_WAIT_RWLOCK] = "a read-write lock",
		[NATIVE_WAIT_CONDITION] = "a condition variable",
		[NATIVE_WAIT_THREAD] = "another thread",
		[NATIVE_WAIT_BARRIER] = "a barrier",
		[NATIVE_WAIT_SEMAPHORE] = "a semaphore",
	};

	return words[kind];
}

/* Of glibc and musl, which begin with _; of Rust, parking_lot and Abseil, within mangled names. */
enum native_wait_kind native_wait_of(const char *symbol)
{
	static const struct {
		const char *begin, *part;
		enum native_wait_kind kind;
	} rows[] = {
		{ "pthread_mutex_", "", NATIVE_WAIT_MUTEX },
		{ "lll_lock_wait", "", NATIVE_WAIT_MUTEX },
		{ "pthread_rwlock_", "", NATIVE_WAIT_RWLOCK },
		{ "pthread_cond_", "", NATIVE_WAIT_CONDITION },
		{ "pthread_join", "", NATIVE_WAIT_THREAD },
		{ "pthread_timedjoin", "", NATIVE_WAIT_THREAD },
		{ "pthread_clockjoin", "", NATIVE_WAIT_THREAD },
		{ "pthread_barrier_wait", "", NATIVE_WAIT_BARRIER },
		{ "gomp_barrier", "", NATIVE_WAIT_BARRIER },
		{ "gomp_team_barrier", "", NATIVE_WAIT_BARRIER },
		{ "gomp_mutex_lock", "", NATIVE_WAIT_MUTEX },
		{ "sem_wait", "", NATIVE_WAIT_SEMAPHORE },
		{ "sem_timedwait", "", NATIVE_WAIT_SEMAPHORE },
		{ "sem_clockwait", "", NATIVE_WAIT_SEMAPHORE },
		{ "new_sem_wait", "", NATIVE_WAIT_SEMAPHORE },
		{ "", "mutex5futex5Mutex14lock_contended", NATIVE_WAIT_MUTEX },
		{ "", "futex::Mutex::lock_contended", NATIVE_WAIT_MUTEX },
		{ "", "RawMutex9lock_slow", NATIVE_WAIT_MUTEX },
		{ "", "RawMutex::lock_slow", NATIVE_WAIT_MUTEX },
		{ "", "RawRwLock", NATIVE_WAIT_RWLOCK },
		{ "", "futex6RwLock", NATIVE_WAIT_RWLOCK },
		{ "", "futex::RwLock", NATIVE_WAIT_RWLOCK },
		{ "", "Mutex8LockSlow", NATIVE_WAIT_MUTEX },
		{ "", "Mutex::LockSlow", NATIVE_WAIT_MUTEX },
		{ "", "7Condvar4wait", NATIVE_WAIT_CONDITION },
		{ "", "Condvar::wait", NATIVE_WAIT_CONDITION },
		{ "", "7CondVar10WaitCommon", NATIVE_WAIT_CONDITION },
	};

	symbol += strspn(symbol, "_");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(symbol, rows[i].begin, strlen(rows[i].begin)) &&
		    strstr(symbol, rows[i].part))
			return rows[i].kind;
	return NATIVE_WAIT_UNKNOWN;
}

static bool put_label(struct native_places *places, struct native_place *place,
		      const struct native_label *label)
{
	if (!grow((void **)&places->labels, &places->label_room, places->label_count,
		  sizeof(*label)))
		return false;
	if (!place->label_count)
		place->label = (uint32_t)places->label_count;
	places->labels[places->label_count++] = *label;
	place->label_count++;
	return true;
}

static const char *file_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* "libfoo.so+0x1234": where the function begins, so that all its samples are one function. */
static void format_unnamed(char *out, size_t out_bytes, const struct module *module, uint64_t at)
{
	snprintf(out, out_bytes, "%s+0x%" PRIx64, file_part(module->path), at);
}

static void name_by_symbol(struct native_places *places, struct native_place *place)
{
	char name[ELF_SYMBOLS_NAME_BYTES];
	struct module *module = place->module;
	const struct elf_symbols *symbols = module->open ? module_symbols(module) : NULL;
	const struct elf_symbol *symbol = symbols ? elf_symbols_find(symbols, place->address)
						  : NULL;

	if (symbol) {
		elf_symbols_name(symbols, module_symbol_image(module), symbol, name, sizeof(name));
		place->evaluates = is_evaluator(name);
		place->begins = is_beginning(name);
		place->waits = native_wait_of(name);
	} else {
		format_unnamed(name, sizeof(name), module,
			       place->function ? place->function : place->address);
	}
	put_label(places, place,
		  &(struct native_label){
			  .name = native_name(name, strlen(name), module->path,
					      strlen(module->path), KYMO_SOURCE_C),
			  .module = module_name(module),
		  });
	places->functions++;
	place->named = true;
}

/* "py::NAME:FILE" is a Python function: python -X perf. */
static uint32_t compiled_name(const char *name)
{
	const char *colon = strrchr(name, ':');

	if (!strncmp(name, "py::", 4) && colon && colon > name + 4)
		return native_name(name + 4, (size_t)(colon - name - 4), colon + 1,
				   strlen(colon + 1), KYMO_SOURCE_PYTHON);
	return native_name(name, strlen(name), "", 0, KYMO_SOURCE_C);
}

static void name_compiled(struct native_places *places, struct native_place *place,
			  const struct address_space *space)
{
	uint64_t start = 0;
	const char *name = jit_map_find(space->jit, place->address, &start);

	put_label(places, place,
		  &(struct native_label){ .name = compiled_name(name ? name : "(compiled code)"),
					  .flags = SCHEMA_NATIVE_COMPILED });
	place->named = true;
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool same_place(const void *list, uint32_t number, const void *wanted)
{
	const struct native_place *a = (const struct native_place *)list + number, *b = wanted;

	return a->address == b->address && a->module == b->module && a->pid == b->pid;
}

static void native_places_want_lines(struct native_places *places, uint32_t number)
{
	if (grow((void **)&places->asking, &places->asking_room, places->asking_count,
		 sizeof(number)))
		places->asking[places->asking_count++] = number;
}

/* Code that was compiled since the map was read has no name yet: the map is read again, but not all
   the time. */
static void read_names(struct address_space *space, uint64_t address)
{
	uint64_t start, took_ns, now_ns = clock_monotonic_ns();

	if (space->jit_tried &&
	    (now_ns < space->jit_next_ns || jit_map_find(space->jit, address, &start)))
		return;
	jit_map_free(space->jit);
	space->jit_tried = true;
	space->jit = jit_map_open(space->pid);
	took_ns = clock_monotonic_ns() - now_ns;
	space->jit_next_ns = now_ns + (took_ns > READ_AGAIN_NS / PAUSES_PER_READ
					       ? took_ns * PAUSES_PER_READ
					       : READ_AGAIN_NS);
}

uint32_t native_places_of(struct native_places *places, struct address_space *space,
			  const struct native_frame *frame)
{
	struct native_place wanted = { .module = frame->module,
				       .address = frame->module ? frame->in_file : frame->address,
				       .function = frame->function,
				       .pid = frame->module ? 0 : space->pid };
	uint64_t hash = intern_hash_number(
		intern_hash_number(frame->module ? frame->module->number : (uint64_t)space->pid,
				   wanted.address),
		frame->module != NULL);
	uint32_t number = intern_find(&places->index, hash, same_place, places->list, &wanted);

	if (number != INTERN_NONE || places->index.count >= PLACES_MOST ||
	    !grow((void **)&places->list, &places->room, places->index.count, sizeof(wanted)))
		return number;
	number = intern_add(&places->index, hash);
	if (number == INTERN_NONE)
		return number;
	/* Frames of the interpreter loop have to be known at once, and compiled code may change. */
	if (!wanted.module) {
		read_names(space, wanted.address);
		name_compiled(places, &wanted, space);
	} else if (strstr(file_part(wanted.module->path), "python")) {
		name_by_symbol(places, &wanted);
	}
	places->list[number] = wanted;
	return number;
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct lines_batch {
	struct native_places *places;
	uint32_t numbers[SOURCE_LINES_AT_ONCE];
	uint64_t addresses[SOURCE_LINES_AT_ONCE];
	size_t count;
};

/* Replaces the label by those with lines. The containing function keeps the symbol's name if the
   debug information lacks one. */
static void take_lines(void *context, size_t index, const struct source_frame *frames, size_t count)
{
	struct lines_batch *batch = context;
	struct native_places *places = batch->places;
	struct native_place *place = &places->list[batch->numbers[index]];
	uint32_t fallback = places->labels[place->label].name;

	if (!count)
		return;
	place->label_count = 0;
	places->with_lines++;
	for (size_t i = 0; i < count; i++) {
		const struct source_frame *frame = &frames[i];

		put_label(places, place,
			  &(struct native_label){
				  .name = frame->func_bytes
						  ? native_name(frame->func, frame->func_bytes,
								frame->file, frame->file_bytes,
								KYMO_SOURCE_C)
						  : fallback,
				  .line = frame->line,
				  .module = module_name(place->module),
				  .flags = i + 1 < count ? SCHEMA_NATIVE_INLINED : 0,
			  });
	}
}

static int lines_fd(const struct module *module)
{
	struct elf_image_section section;

	if (module->debug.fd >= 0 &&
	    elf_image_section(&module->debug, 1 /* SHT_PROGBITS */, ".debug_line", &section))
		return module->debug.fd;
	return module->image.fd;
}

/* The next places of one module. */
static void gather_batch(struct native_places *places, struct lines_batch *batch)
{
	const struct module *module = NULL;
	size_t kept = 0;

	batch->places = places;
	batch->count = 0;
	for (size_t i = 0; i < places->asking_count; i++) {
		struct native_place *place = &places->list[places->asking[i]];

		if (!module)
			module = place->module;
		if (place->module != module || batch->count == SOURCE_LINES_AT_ONCE) {
			places->asking[kept++] = places->asking[i];
			continue;
		}
		batch->numbers[batch->count] = places->asking[i];
		batch->addresses[batch->count++] = place->address;
	}
	places->asking_count = kept;
}

/* There is room: they were taken from there. */
static void ask_again(struct native_places *places, const struct lines_batch *batch)
{
	memcpy(places->asking + places->asking_count, batch->numbers,
	       batch->count * sizeof(*batch->numbers));
	places->asking_count += batch->count;
}

/* Debug information of the system's libraries and of Python is large, and its lines are of little
   use to the author of a program. */
static bool has_useful_lines(const struct module *module)
{
	static const char *const system[] = { "/usr/lib", "/usr/bin/", "/lib" };
	const char *file = file_part(module->path);

	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		if (!strncmp(module->path, system[i], strlen(system[i])))
			return false;
	return module->open && module->has_lines && strncmp(file, "libpython", 9) != 0 &&
	       strncmp(file, "python", 6) != 0;
}

static void name_new_places(struct native_places *places)
{
	for (; places->named < places->index.count; places->named++) {
		struct native_place *place = &places->list[places->named];

		if (!place->named)
			name_by_symbol(places, place);
		if (place->module && has_useful_lines(place->module))
			native_places_want_lines(places, (uint32_t)places->named);
	}
}

/* Answers that are late are taken at the next call. */
static void keep_late(struct native_places *places, const struct lines_batch *batch)
{
	if (!places->lines.owed)
		return;
	places->late = malloc(sizeof(*places->late));
	if (places->late)
		*places->late = *batch;
}

static void take_late(struct native_places *places, uint64_t deadline_ns)
{
	if (!places->late)
		return;
	source_lines_late(&places->lines, deadline_ns, take_lines, places->late);
	if (places->lines.owed)
		return;
	free(places->late);
	places->late = NULL;
}

bool native_places_wait(const struct native_places *places)
{
	return !places->lines.failed && (places->late || places->asking_count);
}

void native_places_name(struct native_places *places, uint64_t deadline_ns)
{
	struct lines_batch batch;

	name_new_places(places);
	take_late(places, deadline_ns);
	while (places->asking_count && !places->late && !places->lines.failed &&
	       clock_monotonic_ns() < deadline_ns) {
		const struct module *module;

		gather_batch(places, &batch);
		module = places->list[batch.numbers[0]].module;
		if (!source_lines_ask(&places->lines, module->number, lines_fd(module),
				      batch.addresses, batch.count, deadline_ns, take_lines,
				      &batch)) {
			ask_again(places, &batch);
			break;
		}
		keep_late(places, &batch);
	}
}

void native_places_fini(struct native_places *places)
{
	source_lines_stop(&places->lines);
	free(places->late);
	free(places->list);
	free(places->labels);
	free(places->asking);
	intern_fini(&places->index);
	memset(places, 0, sizeof(*places));
}
