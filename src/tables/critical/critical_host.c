/* Names of the path's pieces: a piece of a thread is split by what the thread did; the others get
   the function and the module that were around the call. */
#include "tables/critical/critical.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/schema.h"
#include "tables/scan/own_function.h"

/* What a name means on the path, found once for each. */
enum name_class {
	CLASS_UNKNOWN,
	CLASS_OTHER,
	CLASS_OPERATOR,
	CLASS_LAUNCH, /* a call of the runtime that launches */
	CLASS_WAIT, /* one that waits */
	CLASS_CALL, /* another one */
	CLASS_MODULE,
	CLASS_OWN, /* a Python function of own code */
	CLASS_PYTHON,
	CLASS_STEP, /* ProfilerStep#N */
};

/* An open zone, with function and module of it and of the zones around it. */
struct open_zone {
	int64_t end_ns;
	uint32_t name;
	uint32_t outer_op, function, module; /* names; 0: none */
};

/* What a thread does at a moment. */
struct label {
	uint32_t name, zone, function, module;
	uint8_t kind, word;
};

/* The zones of a thread that are open at a moment, which only moves on. */
struct cursor {
	CRITICAL_LIST(open_zone, open);
	uint32_t thread;
	size_t next; /* zone */
};

struct namer {
	const struct critical_input *input;
	uint8_t *classes; /* by name */
	uint32_t *mains; /* by process: its main thread */
	struct cursor own; /* the thread of the piece */
	struct cursor main; /* the main thread of its process */
	struct critical_table *out;
	/* Of the last row, before the main thread was asked: */
	struct label last;
	uint32_t last_point;
};

/* ---- names --------------------------------------------------------------------------------- */

static bool text_has(const struct store_name *name, const char *part)
{
	return memmem(name->text, name->text_bytes, part, strlen(part)) != NULL;
}

static enum name_class class_of_call(const struct store_name *name)
{
	if (text_has(name, "Synchronize"))
		return CLASS_WAIT;
	return text_has(name, "Launch") || text_has(name, "Memcpy") || text_has(name, "Memset")
		       ? CLASS_LAUNCH
		       : CLASS_CALL;
}

static enum name_class find_class(const struct namer *namer, const struct store_name *name)
{
	static const char step[] = "ProfilerStep";

	if (name->text_bytes > sizeof(step) && !memcmp(name->text, step, sizeof(step) - 1))
		return CLASS_STEP; /* an operator in older traces */
	switch (name->source) {
	case KYMO_SOURCE_OP: return CLASS_OPERATOR;
	case KYMO_SOURCE_TORCH: return CLASS_MODULE;
	case KYMO_SOURCE_DEVICE: return class_of_call(name);
	case KYMO_SOURCE_PYTHON:
		return own_function_is(namer->input->recording, name) ? CLASS_OWN : CLASS_PYTHON;
	default: return CLASS_OTHER;
	}
}

static enum name_class critical_class_of(struct namer *namer, uint32_t name)
{
	uint8_t *class = &namer->classes[name];

	if (*class == CLASS_UNKNOWN)
		*class = (uint8_t)find_class(namer, &namer->input->recording->names[name]);
	return (enum name_class) * class;
}

/* ---- open zones ---------------------------------------------------------------------------- */

static void describe_open(struct namer *namer, struct cursor *cursor, size_t at)
{
	struct open_zone *zone = &cursor->open.list[at];
	const struct open_zone *outer = at ? &cursor->open.list[at - 1] : NULL;
	const enum name_class class = critical_class_of(namer, zone->name);

	zone->outer_op = outer ? outer->outer_op : 0;
	zone->function = outer ? outer->function : 0;
	zone->module = outer ? outer->module : 0;
	if (class == CLASS_OPERATOR && !zone->outer_op)
		zone->outer_op = zone->name;
	if (class == CLASS_MODULE)
		zone->module = zone->name;
	/* A function of own code stays in front of those that it calls in libraries. */
	if (class == CLASS_OWN ||
	    (class == CLASS_PYTHON && namer->input->recording->names[zone->name].line &&
	     (!zone->function || critical_class_of(namer, zone->function) != CLASS_OWN)))
		zone->function = zone->name;
}

static bool open_zone(struct namer *namer, struct cursor *cursor, const struct critical_zone *zone)
{
	if (!grow((void **)&cursor->open.list, &cursor->open.room, cursor->open.count,
		  sizeof(*cursor->open.list)))
		return false;
	cursor->open.list[cursor->open.count] = (struct open_zone){ .end_ns = zone->end_ns,
								    .name = zone->name };
	describe_open(namer, cursor, cursor->open.count++);
	return true;
}

/* Zones of one thread may overlap without nesting, in traces. */
static void close_until(struct namer *namer, struct cursor *cursor, int64_t ns)
{
	size_t kept = 0;

	while (cursor->open.count && cursor->open.list[cursor->open.count - 1].end_ns <= ns)
		cursor->open.count--;
	while (kept < cursor->open.count && cursor->open.list[kept].end_ns > ns)
		kept++;
	for (size_t i = kept; i < cursor->open.count; i++)
		if (cursor->open.list[i].end_ns > ns) {
			cursor->open.list[kept] = cursor->open.list[i];
			describe_open(namer, cursor, kept++);
		}
	cursor->open.count = kept;
}

static const struct critical_zone *next_zone(const struct namer *namer, const struct cursor *cursor)
{
	const struct critical_thread *thread = &namer->input->threads.list[cursor->thread];

	return cursor->next < (size_t)thread->first + thread->zone_count
		       ? &namer->input->zones.list[cursor->next]
		       : NULL;
}

static void cursor_enter(const struct namer *namer, struct cursor *cursor, uint32_t thread)
{
	cursor->thread = thread;
	cursor->next = namer->input->threads.list[thread].first;
	cursor->open.count = 0;
}

/* Opens and closes zones up to a moment. */
static bool critical_advance(struct namer *namer, struct cursor *cursor, int64_t ns)
{
	const struct critical_zone *zone;

	while ((zone = next_zone(namer, cursor)) && zone->start_ns <= ns) {
		cursor->next++;
		if (zone->end_ns <= ns)
			continue;
		close_until(namer, cursor, zone->start_ns);
		if (!open_zone(namer, cursor, zone))
			return false;
	}
	close_until(namer, cursor, ns);
	return true;
}

/* The next moment at which a zone begins or ends. */
static int64_t next_change(const struct namer *namer, const struct cursor *cursor)
{
	const struct critical_zone *zone = next_zone(namer, cursor);
	int64_t ns = zone ? zone->start_ns : INT64_MAX;

	for (size_t i = 0; i < cursor->open.count; i++) {
		/* Usually the innermost ends first. */
		const int64_t end_ns = cursor->open.list[cursor->open.count - 1 - i].end_ns;

		ns = end_ns < ns ? end_ns : ns;
		if (i && end_ns >= cursor->open.list[cursor->open.count - i].end_ns)
			break;
	}
	return ns;
}

/* ---- labels -------------------------------------------------------------------------------- */

static void label_zone(struct namer *namer, const struct open_zone *zone, struct label *label)
{
	label->function = zone->function;
	label->module = zone->module;
	label->zone = zone->outer_op;
	switch (critical_class_of(namer, zone->name)) {
	case CLASS_LAUNCH: label->kind = CRITICAL_KIND_LAUNCH; break;
	case CLASS_WAIT: label->kind = CRITICAL_KIND_WAIT; break;
	case CLASS_CALL: break;
	default:
		if (zone->outer_op)
			label->name = zone->outer_op;
		break;
	}
}

static struct label label_now(struct namer *namer)
{
	struct label label = { .kind = CRITICAL_KIND_HOST, .word = CRITICAL_UNMARKED };
	const struct open_zone *open = namer->own.open.list;
	size_t at = namer->own.open.count;

	while (at && critical_class_of(namer, open[at - 1].name) == CLASS_STEP)
		at--; /* a step says nothing about what is done in it */
	if (!at)
		return label;
	label.word = CRITICAL_NAMED;
	label.name = open[at - 1].name;
	label_zone(namer, &open[at - 1], &label);
	return label;
}

static bool critical_same_label(const struct label *a, const struct label *b)
{
	return a->name == b->name && a->kind == b->kind && a->function == b->function &&
	       a->module == b->module && a->zone == b->zone && a->word == b->word;
}

/* Backward runs on a thread without Python: its function is the one of the main thread. */
static bool ask_main(struct namer *namer, const struct critical_piece *piece, int64_t ns,
		     uint32_t *function)
{
	const uint32_t main = namer->mains[piece->process];

	if (*function || piece->thread == CRITICAL_NONE || main == CRITICAL_NONE ||
	    main == piece->thread || !namer->input->threads.list[main].zone_count)
		return true;
	if (namer->main.thread != main)
		cursor_enter(namer, &namer->main, main);
	if (!critical_advance(namer, &namer->main, ns))
		return false;
	if (namer->main.open.count)
		*function = namer->main.open.list[namer->main.open.count - 1].function;
	return true;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static bool add_row(struct namer *namer, const struct critical_piece *piece, int64_t from_ns,
		    int64_t to_ns, const struct label *label)
{
	struct critical_table *out = namer->out;
	struct critical_label whole = { .process = piece->process,
					.thread = piece->thread,
					.name = label->name,
					.function = label->function,
					.module = label->module,
					.zone = label->zone,
					.queue = piece->queue,
					.path = piece->path,
					.kind = label->kind,
					.word = label->word,
					.all_win_ns = -1 };
	const int64_t asked_ns = piece->asked_ns != INT64_MIN ? piece->asked_ns : from_ns;
	uint32_t number;

	if (!ask_main(namer, piece, asked_ns, &whole.function))
		return false;
	number = critical_label(out, &whole);
	if (number == CRITICAL_NONE || !grow((void **)&out->rows.list, &out->rows.room,
					     out->rows.count, sizeof(*out->rows.list)))
		return false;
	out->rows.list[out->rows.count++] = (struct critical_span){ .start_ns = from_ns,
								    .duration_ns = to_ns - from_ns,
								    .label = number,
								    .step = piece->step,
								    .point = piece->point };
	namer->last = *label;
	namer->last_point = piece->point;
	return true;
}

static bool add_part(struct namer *namer, const struct critical_piece *whole, int64_t from_ns,
		     int64_t to_ns, const struct label *label)
{
	struct critical_table *out = namer->out;
	struct critical_span *last;

	if (out->rows.count && namer->last_point == whole->point &&
	    critical_same_label(&namer->last, label)) {
		last = &out->rows.list[out->rows.count - 1];
		last->duration_ns = to_ns - last->start_ns;
	} else if (!add_row(namer, whole, from_ns, to_ns, label)) {
		return false;
	}
	last = &out->rows.list[out->rows.count - 1];
	last->win_ns = whole->win_ns < last->duration_ns ? whole->win_ns : last->duration_ns;
	return true;
}

static bool split_piece(struct namer *namer, const struct critical_piece *piece)
{
	const int64_t end_ns = piece->start_ns + piece->duration_ns;

	for (int64_t at = piece->start_ns, next; at < end_ns; at = next) {
		struct label label;

		if (!critical_advance(namer, &namer->own, at))
			return false;
		next = next_change(namer, &namer->own);
		next = next > end_ns || next <= at ? end_ns : next;
		label = label_now(namer);
		if (!add_part(namer, piece, at, next, &label))
			return false;
	}
	return true;
}

/* A row of its own; its launch, if that is known, gives function and module. */
static bool ask_piece(struct namer *namer, const struct critical_piece *piece)
{
	struct label label = { .name = piece->name,
			       .zone = piece->zone,
			       .module = piece->module,
			       .kind = piece->kind,
			       .word = piece->word };
	const struct cursor *own = &namer->own;

	if (piece->thread != CRITICAL_NONE &&
	    !critical_advance(namer, &namer->own, piece->asked_ns))
		return false;
	if (piece->thread != CRITICAL_NONE && own->open.count) {
		const struct open_zone *zone = &own->open.list[own->open.count - 1];

		label.function = zone->function;
		label.module = zone->module ? zone->module : piece->module;
		label.zone = piece->zone ? piece->zone : zone->outer_op;
	}
	if (!add_row(namer, piece, piece->start_ns, piece->start_ns + piece->duration_ns, &label))
		return false;
	namer->out->rows.list[namer->out->rows.count - 1].win_ns = piece->win_ns;
	namer->last_point = CRITICAL_NONE; /* nothing is joined with it */
	return true;
}

static bool name_piece(struct namer *namer, const struct critical_piece *piece)
{
	if (piece->thread != CRITICAL_NONE && piece->thread != namer->own.thread) {
		cursor_enter(namer, &namer->own, piece->thread);
		namer->main.thread = CRITICAL_NONE; /* the moments begin again */
	}
	return piece->thread != CRITICAL_NONE && piece->asked_ns == INT64_MIN
		       ? split_piece(namer, piece)
		       : ask_piece(namer, piece);
}

/* ---- order --------------------------------------------------------------------------------- */

static int64_t moment_of(const struct critical_piece *piece)
{
	return piece->asked_ns != INT64_MIN ? piece->asked_ns : piece->start_ns;
}

static int compare_moments(const void *left, const void *right)
{
	const struct critical_piece *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (moment_of(a) != moment_of(b))
		return moment_of(a) < moment_of(b) ? -1 : 1;
	if ((a->asked_ns == INT64_MIN) != (b->asked_ns == INT64_MIN))
		return a->asked_ns == INT64_MIN ? 1 : -1; /* splitting goes beyond the moment */
	return a->point < b->point ? -1 : a->point > b->point;
}

static int compare_back(const void *left, const void *right, void *context)
{
	const struct critical_label *labels = ((struct critical_table *)context)->labels.list;
	const struct critical_span *a = left, *b = right;

	if (labels[a->label].path != labels[b->label].path)
		return labels[a->label].path < labels[b->label].path ? -1 : 1;
	if (a->point != b->point)
		return a->point < b->point ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

bool critical_name_pieces(const struct critical_input *input, struct critical_result *result)
{
	struct namer namer = { .input = input,
			       .out = &result->path,
			       .own.thread = CRITICAL_NONE,
			       .main.thread = CRITICAL_NONE,
			       .last_point = CRITICAL_NONE };
	bool ok;

	if (!result->pieces.count)
		return true;
	namer.classes = calloc(input->recording->name_count + 1, 1);
	namer.mains = critical_find_mains(input);
	ok = namer.classes && namer.mains;
	qsort(result->pieces.list, result->pieces.count, sizeof(*result->pieces.list),
	      compare_moments);
	for (size_t i = 0; ok && i < result->pieces.count; i++)
		ok = name_piece(&namer, &result->pieces.list[i]);
	if (ok && namer.out->rows.count)
		qsort_r(namer.out->rows.list, namer.out->rows.count, sizeof(*namer.out->rows.list),
			compare_back, namer.out);
	free(namer.own.open.list);
	free(namer.main.open.list);
	free(namer.classes);
	free(namer.mains);
	return ok;
}
