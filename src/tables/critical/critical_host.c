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

struct namer {
	const struct critical_input *input;
	uint8_t *classes; /* by name */
	CRITICAL_LIST(open_zone, open);
	uint32_t thread;
	size_t next; /* zone */
	CRITICAL_LIST(critical_piece, made);
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

static void describe_open(struct namer *namer, size_t at)
{
	struct open_zone *zone = &namer->open.list[at];
	const struct open_zone *outer = at ? &namer->open.list[at - 1] : NULL;
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

static bool open_zone(struct namer *namer, const struct critical_zone *zone)
{
	if (!grow((void **)&namer->open.list, &namer->open.room, namer->open.count,
		  sizeof(*namer->open.list)))
		return false;
	namer->open.list[namer->open.count] = (struct open_zone){ .end_ns = zone->end_ns,
								  .name = zone->name };
	describe_open(namer, namer->open.count++);
	return true;
}

/* Zones of one thread may overlap without nesting, in traces. */
static void close_until(struct namer *namer, int64_t ns)
{
	size_t kept = 0;

	while (namer->open.count && namer->open.list[namer->open.count - 1].end_ns <= ns)
		namer->open.count--;
	while (kept < namer->open.count && namer->open.list[kept].end_ns > ns)
		kept++;
	for (size_t i = kept; i < namer->open.count; i++)
		if (namer->open.list[i].end_ns > ns) {
			namer->open.list[kept] = namer->open.list[i];
			describe_open(namer, kept++);
		}
	namer->open.count = kept;
}

static const struct critical_zone *next_zone(const struct namer *namer)
{
	const struct critical_thread *thread = &namer->input->threads.list[namer->thread];

	return namer->next < (size_t)thread->first + thread->zone_count
		       ? &namer->input->zones.list[namer->next]
		       : NULL;
}

/* Opens and closes zones up to a moment. */
static bool critical_advance(struct namer *namer, int64_t ns)
{
	const struct critical_zone *zone;

	while ((zone = next_zone(namer)) && zone->start_ns <= ns) {
		namer->next++;
		if (zone->end_ns <= ns)
			continue;
		close_until(namer, zone->start_ns);
		if (!open_zone(namer, zone))
			return false;
	}
	close_until(namer, ns);
	return true;
}

/* The next moment at which a zone begins or ends. */
static int64_t next_change(const struct namer *namer)
{
	const struct critical_zone *zone = next_zone(namer);
	int64_t ns = zone ? zone->start_ns : INT64_MAX;

	for (size_t i = 0; i < namer->open.count; i++) {
		/* Usually the innermost ends first. */
		const int64_t end_ns = namer->open.list[namer->open.count - 1 - i].end_ns;

		ns = end_ns < ns ? end_ns : ns;
		if (i && end_ns >= namer->open.list[namer->open.count - i].end_ns)
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
	size_t at = namer->open.count;

	while (at && critical_class_of(namer, namer->open.list[at - 1].name) == CLASS_STEP)
		at--; /* a step says nothing about what is done in it */
	if (!at)
		return label;
	label.word = CRITICAL_NAMED;
	label.name = namer->open.list[at - 1].name;
	label_zone(namer, &namer->open.list[at - 1], &label);
	return label;
}

static bool critical_same_label(const struct critical_piece *piece, const struct label *label)
{
	return piece->name == label->name && piece->kind == label->kind &&
	       piece->function == label->function && piece->module == label->module &&
	       piece->zone == label->zone && piece->word == label->word;
}

/* ---- pieces -------------------------------------------------------------------------------- */

static bool add_part(struct namer *namer, const struct critical_piece *whole, int64_t from_ns,
		     int64_t to_ns, const struct label *label)
{
	struct critical_piece *last = namer->made.count ? &namer->made.list[namer->made.count - 1]
							: NULL;
	struct critical_piece piece = *whole;

	if (last && last->edge == whole->edge && critical_same_label(last, label)) {
		last->duration_ns = to_ns - last->start_ns;
	} else {
		if (!grow((void **)&namer->made.list, &namer->made.room, namer->made.count,
			  sizeof(piece)))
			return false;
		piece.start_ns = from_ns;
		piece.duration_ns = to_ns - from_ns;
		piece.name = label->name;
		piece.kind = label->kind;
		piece.function = label->function;
		piece.module = label->module;
		piece.zone = label->zone;
		piece.word = label->word;
		namer->made.list[namer->made.count++] = piece;
		last = &namer->made.list[namer->made.count - 1];
	}
	last->win_ns = whole->win_ns < last->duration_ns ? whole->win_ns : last->duration_ns;
	return true;
}

static bool split_piece(struct namer *namer, const struct critical_piece *piece)
{
	const int64_t end_ns = piece->start_ns + piece->duration_ns;

	for (int64_t at = piece->start_ns, next; at < end_ns; at = next) {
		struct label label;

		if (!critical_advance(namer, at))
			return false;
		next = next_change(namer);
		next = next > end_ns || next <= at ? end_ns : next;
		label = label_now(namer);
		if (!add_part(namer, piece, at, next, &label))
			return false;
	}
	return true;
}

static bool ask_piece(struct namer *namer, const struct critical_piece *piece)
{
	struct critical_piece named = *piece;

	if (!critical_advance(namer, piece->asked_ns) ||
	    !grow((void **)&namer->made.list, &namer->made.room, namer->made.count, sizeof(named)))
		return false;
	if (namer->open.count) {
		const struct open_zone *zone = &namer->open.list[namer->open.count - 1];

		named.function = zone->function;
		named.module = zone->module ? zone->module : piece->module;
		named.zone = piece->zone ? piece->zone : zone->outer_op;
	}
	namer->made.list[namer->made.count++] = named;
	return true;
}

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
	return a->edge < b->edge ? -1 : a->edge > b->edge;
}

static int compare_back(const void *left, const void *right)
{
	const struct critical_piece *a = left, *b = right;

	if (a->path != b->path)
		return a->path < b->path ? -1 : 1;
	if (a->edge != b->edge)
		return a->edge < b->edge ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static bool name_piece(struct namer *namer, const struct critical_piece *piece)
{
	if (piece->thread == CRITICAL_NONE) { /* its launch is not known */
		if (!grow((void **)&namer->made.list, &namer->made.room, namer->made.count,
			  sizeof(*piece)))
			return false;
		namer->made.list[namer->made.count++] = *piece;
		return true;
	}
	if (piece->thread != namer->thread) {
		namer->thread = piece->thread;
		namer->next = namer->input->threads.list[piece->thread].first;
		namer->open.count = 0;
	}
	return piece->asked_ns == INT64_MIN ? split_piece(namer, piece) : ask_piece(namer, piece);
}

/* ---- functions of the main thread ---------------------------------------------------------- */

/* Backward runs on a thread without Python: its function is the one of the main thread. */
static bool needs_main(const struct critical_input *input, const struct critical_piece *piece,
		       const uint32_t *mains)
{
	const uint32_t main = mains[piece->process];

	return !piece->function && piece->thread != CRITICAL_NONE && main != CRITICAL_NONE &&
	       main != piece->thread && input->threads.list[main].zone_count;
}

static bool ask_main(struct namer *namer, struct critical_piece *piece, uint32_t main)
{
	if (namer->thread != main) {
		namer->thread = main;
		namer->next = namer->input->threads.list[main].first;
		namer->open.count = 0;
	}
	if (!critical_advance(namer, moment_of(piece)))
		return false;
	if (namer->open.count)
		piece->function = namer->open.list[namer->open.count - 1].function;
	return true;
}

static int compare_process_moments(const void *left, const void *right)
{
	const struct critical_piece *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return moment_of(a) < moment_of(b) ? -1 : moment_of(a) > moment_of(b);
}

static bool name_by_mains(struct namer *namer)
{
	const struct critical_input *input = namer->input;
	const size_t processes = input->recording->process_count;
	uint32_t *mains = malloc((processes + 1) * sizeof(*mains));
	bool ok = mains != NULL;

	for (uint32_t i = 0; ok && i < processes; i++)
		mains[i] = critical_main_of(input, i);
	if (ok && namer->made.count)
		qsort(namer->made.list, namer->made.count, sizeof(*namer->made.list),
		      compare_process_moments);
	namer->thread = CRITICAL_NONE;
	for (size_t i = 0; ok && i < namer->made.count; i++)
		if (needs_main(input, &namer->made.list[i], mains))
			ok = ask_main(namer, &namer->made.list[i],
				      mains[namer->made.list[i].process]);
	free(mains);
	return ok;
}

bool critical_name_pieces(const struct critical_input *input, struct critical_pieces *pieces)
{
	struct namer namer = { .input = input, .thread = CRITICAL_NONE };
	bool ok;

	if (!pieces->rows.count)
		return true;
	namer.classes = calloc(input->recording->name_count + 1, 1);
	ok = namer.classes != NULL;
	qsort(pieces->rows.list, pieces->rows.count, sizeof(*pieces->rows.list), compare_moments);
	for (size_t i = 0; ok && i < pieces->rows.count; i++)
		ok = name_piece(&namer, &pieces->rows.list[i]);
	ok = ok && name_by_mains(&namer);
	if (ok && namer.made.count)
		qsort(namer.made.list, namer.made.count, sizeof(*namer.made.list), compare_back);
	if (ok) {
		free(pieces->rows.list);
		pieces->rows.list = namer.made.list;
		pieces->rows.count = namer.made.count;
		pieces->rows.room = namer.made.room;
		namer.made.list = NULL;
	}
	free(namer.made.list);
	free(namer.open.list);
	free(namer.classes);
	return ok;
}
