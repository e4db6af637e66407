/*
 * Collectives of torch.distributed: dist.collectives. c10d calls its backends through virtual
 * functions, from Python and from DDP alike, so the entries of their tables are replaced: those of
 * ProcessGroupGloo when a collective is enqueued, that of run() of gloo's work when it begins and
 * ends on the worker thread, and wait() of sends and receives. Entries are found by the names of
 * the functions that they point to, not by position; a build that lacks them records no
 * collectives. A callback of at::RecordFunction would be called for every operator, and knows
 * neither the group nor the number of a gloo call.
 *
 * Our functions pass on all registers that can hold arguments, and one word of the stack more than
 * any of the functions takes. Exceptions of gloo pass through them: such a call has no end. Only
 * x86_64: elsewhere the place of the result is no argument.
 */
#include "collectives.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS_MOST 64
#define TABLE_SLOTS_MOST 96 /* entries of a table of virtual functions */

/* Where the size of a call is. */
enum tensors { TENSORS_NONE, TENSORS_ONE, TENSORS_LIST, TENSORS_NESTED };

static const struct method {
	const char *name, *op;
	enum tensors tensors;
	int argument; /* 0: the first after this */
	uint32_t flags;
	bool peer; /* the second argument is the other rank */
} methods[] = {
	{ "allreduce", "all_reduce", TENSORS_LIST, 0, 0 },
	{ "allreduce_coalesced", "all_reduce", TENSORS_LIST, 0, 0 },
	{ "allreduce_sparse", "all_reduce", TENSORS_NONE, 0, 0 },
	{ "broadcast", "broadcast", TENSORS_LIST, 0, 0 },
	{ "reduce", "reduce", TENSORS_LIST, 0, 0 },
	{ "allgather", "all_gather", TENSORS_LIST, 1, 0 },
	{ "_allgather_base", "all_gather", TENSORS_ONE, 1, 0 },
	{ "allgather_coalesced", "all_gather", TENSORS_LIST, 1, 0 },
	{ "allgather_into_tensor_coalesced", "all_gather", TENSORS_LIST, 1, 0 },
	{ "gather", "gather", TENSORS_LIST, 1, 0 },
	{ "scatter", "scatter", TENSORS_LIST, 0, 0 },
	{ "reduce_scatter", "reduce_scatter", TENSORS_NESTED, 1, 0 },
	{ "_reduce_scatter_base", "reduce_scatter", TENSORS_ONE, 1, 0 },
	{ "reduce_scatter_tensor_coalesced", "reduce_scatter", TENSORS_LIST, 1, 0 },
	{ "alltoall", "all_to_all", TENSORS_LIST, 1, 0 },
	{ "alltoall_base", "all_to_all", TENSORS_ONE, 1, 0 },
	{ "barrier", "barrier", TENSORS_NONE, 0, 0 },
	{ "send", "send", TENSORS_LIST, 0, SCHEMA_COLLECTIVE_P2P, true },
	{ "recv", "recv", TENSORS_LIST, 0, SCHEMA_COLLECTIVE_P2P, true },
	{ "recvAnysource", "recv", TENSORS_LIST, 0, SCHEMA_COLLECTIVE_P2P },
};

static struct {
	bool hooked;
	uint64_t calls;
	uint64_t (*sequence)(const void *work);
	int (*numel)(void *tensor, int64_t *out);
	int (*dtype)(void *tensor, int32_t *out);
	size_t (*element_size)(int32_t dtype);
	uint32_t op_names[sizeof(methods) / sizeof(methods[0])];
} dist;

#ifdef __x86_64__

/* ---- the size of a call ------------------------------------------------------------------ */

/* std::vector, of any of the standard libraries. */
struct vector {
	char *begin, *end, *room;
};

static void add_tensor(struct schema_collective_row *row, void *tensor, int32_t *dtype)
{
	int64_t count = 0;

	if (dist.numel(tensor, &count) || dist.dtype(tensor, dtype) || count < 0)
		return;
	row->bytes += (uint64_t)count * dist.element_size(*dtype);
}

static void collectives_add_list(struct schema_collective_row *row, const struct vector *list,
				 int32_t *dtype)
{
	for (char *at = list->begin; at && at < list->end; at += sizeof(void *))
		add_tensor(row, at, dtype);
}

static void measure(struct schema_collective_row *row, const struct method *method, void *argument)
{
	const struct vector *list = argument;
	int32_t dtype = -1;

	if (method->tensors == TENSORS_NONE || !argument || !dist.numel)
		return;
	if (method->tensors == TENSORS_ONE)
		add_tensor(row, argument, &dtype);
	else if (method->tensors == TENSORS_LIST)
		collectives_add_list(row, list, &dtype);
	else
		for (char *at = list->begin; at && at < list->end; at += sizeof(struct vector))
			collectives_add_list(row, (const struct vector *)(void *)at, &dtype);
	row->dtype = op_dtype(dtype) ? kymo_name(op_dtype(dtype)) : 0;
}

/* ---- functions in place of torch's -------------------------------------------------------- */

/* Eight words: six in registers, and the two that follow them on the stack. */
typedef void *entry_point(void *, void *, void *, void *, void *, void *, void *, void *);

static struct slot {
	entry_point *original;
	void **place; /* in the table */
	const struct method *method; /* NULL: run() or wait() */
	bool ends; /* wait(): the end alone */
} slots[SLOTS_MOST];
static uint32_t slot_count;

static void fill_place(struct schema_collective_row *row)
{
	struct kymo__lane *lane = kymo__lane;
	uint32_t depth;

	if (!lane)
		return;
	row->thread = lane->thread;
	row->step = kymo__load_relaxed(lane->step);
	depth = lane->open->depth < KYMO_OPEN_MAX ? lane->open->depth : KYMO_OPEN_MAX;
	while (depth && !lane->open->entries[depth - 1].name)
		depth--;
	if (depth)
		row->zone = lane->open->entries[depth - 1].name;
}

static uint32_t op_name(const struct method *method)
{
	uint32_t *name = &dist.op_names[method - methods];

	if (!*name)
		*name = kymo_name(method->op);
	return *name;
}

static void fill_group(struct schema_collective_row *row, struct collective_group *group,
		       int32_t peer)
{
	row->group = group->name;
	row->members = group->members;
	row->group_size = group->size;
	if (row->flags & SCHEMA_COLLECTIVE_P2P)
		row->peer = group->ranks && peer >= 0 && (uint32_t)peer < group->size
				    ? group->ranks[peer]
				    : -1;
}

/* The number of a collective in its group. torch's own number counts sends and receives, too, which
   not all ranks have; but one that begins anew shows another group at the same address. */
static void fill_sequence(struct schema_collective_row *row, struct collective_group *group,
			  uint64_t number)
{
	if (row->flags & SCHEMA_COLLECTIVE_P2P)
		return;
	if (number && number <= group->last_sequence)
		kymo__store_relaxed(&group->collectives, 0);
	if (number)
		group->last_sequence = number;
	row->seq = kymo__fetch_add_relaxed(&group->collectives, 1) + 1;
	row->flags |= SCHEMA_COLLECTIVE_SEQ;
}

/* What a call of the backend left behind. */
struct begun {
	const void *work; /* NULL: its end is not seen */
	uint64_t sequence; /* torch's number; 0: not known */
};

static void enqueued(const struct method *method, struct collective_group *group, uint64_t ticks,
		     const struct begun *begun, void *argument, int32_t peer)
{
	struct schema_collective_row row = { .enqueue_ticks = ticks,
					     .rank = -1,
					     .peer = -1,
					     .flags = method->flags | SCHEMA_COLLECTIVE_ENQUEUE };

	row.call = kymo__fetch_add_relaxed(&dist.calls, 1) + 1;
	row.op = op_name(method);
	fill_sequence(&row, group, begun->sequence);
	fill_place(&row);
	fill_group(&row, group, peer);
	measure(&row, method, argument);
	collective_calls_enqueued(begun->work, &row);
}

static bool is_gloo_work(const void *work);

/* Methods of the backend call each other: _allgather_base() calls allgather(), and
   _reduce_scatter_base() calls allreduce(). The outermost is what the program called; the work of
   an inner one has its start and end. Exceptions pass through our functions without a trace, so
   the outermost call is known by its frame: a later one at the same depth or above is not inside
   it. */
static _Thread_local struct {
	uintptr_t outer; /* frame of the outermost call; 0: none */
	struct begun begun; /* the last of the inner ones */
} nested;

static void take_begun(const struct method *method, void *const *sret, struct begun *out)
{
	const void *work = *sret;

	if (!is_gloo_work(work))
		return;
	out->work = work;
	/* The work of a send or receive is of another class. */
	out->sequence = method->flags & SCHEMA_COLLECTIVE_P2P ? 0 : dist.sequence(work);
}

/* sret: where the function puts a pointer to the work. */
static void *call_backend(const struct slot *slot, void *sret, void *self, void *a, void *b,
			  void *c, void *d, void *e, void *f)
{
	const struct method *method = slot->method;
	const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	struct collective_group *group;
	uint64_t ticks;
	void *result;

	if (!kymo_enabled() || !dist.hooked)
		return slot->original(sret, self, a, b, c, d, e, f);
	if (nested.outer && frame < nested.outer) {
		result = slot->original(sret, self, a, b, c, d, e, f);
		take_begun(method, sret, &nested.begun);
		return result;
	}
	group = collective_groups_get(self);
	nested.outer = frame;
	nested.begun = (struct begun){ 0 };
	ticks = kymo__ticks();
	result = slot->original(sret, self, a, b, c, d, e, f);
	nested.outer = 0;
	take_begun(method, sret, &nested.begun);
	if (group)
		enqueued(method, group, ticks, &nested.begun, method->argument ? b : a,
			 method->peer ? (int32_t)(intptr_t)b : -1);
	return result;
}

/* run() of gloo's work on the worker thread; wait() of a send or receive. */
static void *call_work(const struct slot *slot, void *self, void *a, void *b, void *c, void *d,
		       void *e, void *f, void *g)
{
	void *result;

	if (!slot->ends && dist.hooked)
		collective_calls_begin(self, kymo__ticks());
	result = slot->original(self, a, b, c, d, e, f, g);
	if (dist.hooked)
		collective_calls_end(self, kymo__ticks());
	return result;
}

#define ENTRY(n) \
	static void *entry_##n(void *a, void *b, void *c, void *d, void *e, void *f, void *g, \
			       void *h) \
	{ \
		const struct slot *slot = &slots[n]; \
\
		return slot->method ? call_backend(slot, a, b, c, d, e, f, g, h) \
				    : call_work(slot, a, b, c, d, e, f, g, h); \
	}
/* clang-format off */
#define ENTRIES(X) \
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) \
	X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) \
	X(29) X(30) X(31) X(32) X(33) X(34) X(35) X(36) X(37) X(38) X(39) X(40) X(41) X(42) \
	X(43) X(44) X(45) X(46) X(47) X(48) X(49) X(50) X(51) X(52) X(53) X(54) X(55) X(56) \
	X(57) X(58) X(59) X(60) X(61) X(62) X(63)
/* clang-format on */
ENTRIES(ENTRY)
#define POINTER(n) entry_##n,
static entry_point *const entries[SLOTS_MOST] = { ENTRIES(POINTER) };

/* ---- tables of virtual functions ---------------------------------------------------------- */

struct page {
	uintptr_t at, bytes;
};

/* 1: the loader has made the page read-only, as it does with whole pages of this segment. */
static int is_read_only(struct dl_phdr_info *info, size_t bytes, void *context)
{
	const struct page *page = context;

	(void)bytes;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_GNU_RELRO && page->at >= (from & ~(page->bytes - 1)) &&
		    page->at < ((from + part->p_memsz) & ~(page->bytes - 1)))
			return 1;
	}
	return 0;
}

static bool collectives_replace(void **place, const struct method *method, bool ends)
{
	struct page page = { .bytes = (uintptr_t)sysconf(_SC_PAGESIZE) };
	struct slot *slot = &slots[slot_count];

	for (uint32_t i = 0; i < slot_count; i++)
		if (slots[i].place == place)
			return true;
	page.at = (uintptr_t)place & ~(page.bytes - 1);
	if (slot_count >= SLOTS_MOST ||
	    mprotect((void *)page.at, page.bytes, PROT_READ | PROT_WRITE))
		return false;
	memcpy(&slot->original, place, sizeof(*place));
	slot->place = place;
	slot->method = method;
	slot->ends = ends;
	kymo__store_release(place, (void *)(uintptr_t)entries[slot_count]);
	slot_count++;
	/* Other pages have data that torch writes to. */
	if (dl_iterate_phdr(is_read_only, &page))
		mprotect((void *)page.at, page.bytes, PROT_READ);
	return true;
}

/* The table of a class, without its first two words; NULL: none. */
static void **table_of(void *library, const char *symbol, size_t *count)
{
	void **table = dlsym(library, symbol);
	const ElfW(Sym) *described = NULL;
	Dl_info info;

	*count = 0;
	if (!table || !dladdr1(table, &info, (void **)&described, RTLD_DL_SYMENT) || !described)
		return NULL;
	*count = described->st_size / sizeof(void *);
	*count = *count > TABLE_SLOTS_MOST + 2 ? TABLE_SLOTS_MOST : *count < 2 ? 0 : *count - 2;
	return table + 2;
}

/* The name of a member function, from its mangled name: "_ZN…<class>9allreduceE…". */
static bool is_member(void *function, const char *class_name, const char *name)
{
	char wanted[160];
	Dl_info info;

	if (!dladdr(function, &info) || !info.dli_sname || info.dli_saddr != function)
		return false;
	snprintf(wanted, sizeof(wanted), "_ZN%s%zu%sE", class_name, strlen(name), name);
	return !strncmp(info.dli_sname, wanted, strlen(wanted));
}

static uint32_t replace_methods(void *library, const char *class_name)
{
	char symbol[128];
	size_t count;
	void **table;
	uint32_t replaced = 0;

	snprintf(symbol, sizeof(symbol), "_ZTVN%sE", class_name);
	table = table_of(library, symbol, &count);
	for (size_t i = 0; i < count; i++)
		for (size_t m = 0; m < sizeof(methods) / sizeof(methods[0]); m++)
			if (table[i] && is_member(table[i], class_name, methods[m].name))
				replaced += collectives_replace(&table[i], &methods[m], false);
	return replaced;
}

/* Position of run(), which only the classes derived from AsyncWork define. */
static struct {
	size_t run, sequence; /* their positions in the table */
	void **tables[32]; /* seen: of classes derived from it */
	uint32_t table_count;
	uint32_t lock;
} gloo;

/* Whether it is derived from AsyncWork, which defines this function for all of them. */
static bool is_async(void **table)
{
	void *function = table[gloo.sequence];

	return !memcmp(&function, &dist.sequence, sizeof(function));
}

static bool collectives_find_run(void *library)
{
	size_t count;
	void **table = table_of(library, "_ZTVN4c10d16ProcessGroupGloo9AsyncWorkE", &count);
	void *pure = dlsym(RTLD_DEFAULT, "__cxa_pure_virtual");

	if (!pure)
		pure = dlsym(library, "__cxa_pure_virtual");
	for (size_t i = 0; pure && i < count; i++) {
		if (table[i] == pure && !gloo.run)
			gloo.run = i;
		if (!memcmp(&table[i], &dist.sequence, sizeof(table[i])))
			gloo.sequence = i;
	}
	return gloo.run && gloo.sequence;
}

/* Classes of sends and receives, whose work has no run(). */
static void **p2p_tables[2];

static bool is_p2p(void **table)
{
	return table == p2p_tables[0] || table == p2p_tables[1];
}

/* wait(), for the end of a work that had begun before its run() was replaced. */
static void replace_wait(void **table)
{
	for (size_t i = 0; i < gloo.run; i++)
		if (table[i] && is_member(table[i], "4c10d4Work", "wait"))
			collectives_replace(&table[i], NULL, true);
}

/* The first work of a class shows its table: run() is replaced then. That work may have begun
   already; it has no start. */
static bool is_gloo_work(const void *work)
{
	void **table = work ? *(void ***)(uintptr_t)work : NULL;
	uint32_t free_word = 0;
	bool known;

	if (!table)
		return false;
	if (is_p2p(table))
		return true;
	for (uint32_t i = kymo__load_acquire(&gloo.table_count); i-- > 0;)
		if (gloo.tables[i] == table)
			return true;
	if (!kymo__cas_acquire(&gloo.lock, &free_word, 1))
		return false;
	known = is_async(table) && gloo.table_count < 32 &&
		collectives_replace(&table[gloo.run], NULL, false);
	if (known) {
		replace_wait(table);
		gloo.tables[gloo.table_count] = table;
		kymo__store_release(&gloo.table_count, gloo.table_count + 1);
	}
	kymo__store_release(&gloo.lock, 0);
	return known;
}

static void replace_waits(void *library)
{
	static const char *const classes[2] = { "4c10d16ProcessGroupGloo8SendWork",
						"4c10d16ProcessGroupGloo8RecvWork" };

	for (int c = 0; c < 2; c++) {
		char symbol[96];
		size_t count;
		void **table;

		snprintf(symbol, sizeof(symbol), "_ZTVN%sE", classes[c]);
		table = table_of(library, symbol, &count);
		for (size_t i = 0; i < count; i++)
			if (table[i] && is_member(table[i], classes[c], "wait") &&
			    collectives_replace(&table[i], NULL, true))
				p2p_tables[c] = table;
	}
}

static void find_sizes(void *library)
{
	void *numel = dlsym(library, "aoti_torch_get_numel");
	void *dtype = dlsym(library, "aoti_torch_get_dtype");
	void *bytes = dlsym(library, "aoti_torch_dtype_element_size");
	void *sequence = dlsym(library,
			       "_ZNK4c10d16ProcessGroupGloo9AsyncWork17getSequencenumberEv");

	if (numel && dtype && bytes) {
		memcpy(&dist.dtype, &dtype, sizeof(dtype));
		memcpy(&dist.element_size, &bytes, sizeof(bytes));
		memcpy(&dist.numel, &numel, sizeof(numel));
	}
	memcpy(&dist.sequence, &sequence, sizeof(sequence));
}

static void forget_calls(void)
{
	memset(dist.op_names, 0, sizeof(dist.op_names));
	collective_calls_forget();
	collective_groups_forget();
	gloo.lock = 0;
}

bool collectives_hook(void)
{
	static bool forgets;
	void *library = symbols_library();

	if (!library)
		return false;
	dist.hooked = true;
	if (slot_count)
		return true;
	find_sizes(library);
	if (!dist.sequence || !collectives_find_run(library) ||
	    !replace_methods(library, "4c10d16ProcessGroupGloo"))
		dist.hooked = false;
	if (dist.hooked)
		replace_waits(library);
	if (dist.hooked && !forgets)
		forgets = !pthread_atfork(NULL, NULL, forget_calls);
	return dist.hooked;
}

void collectives_unhook(void)
{
	/* The entries stay: another thread may be in one of them. */
	dist.hooked = false;
}

#else

bool collectives_hook(void)
{
	return false;
}

void collectives_unhook(void)
{
}

#endif
