/* From rows of an nsys export to events of a trace, with the names that torch.profiler uses. */
#include "import/json_scan.h"
#include "import/nsys/nsys_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/grow.h"

#define FLUSH_BYTES (256u << 10)
#define STRINGS_BYTES (256u << 20)
#define STRINGS_MOST 4000000u
#define OTHERS_FIRST UINT32_C(0xfffffff0)

/* ---- output -------------------------------------------------------------------------------- */

static void nsys_flush(struct nsys_trace *trace)
{
	const char *at = trace->out.data;
	size_t left = trace->out.used;

	while (left && !trace->failed) {
		ssize_t done = write(trace->fd, at, left);

		if (done <= 0) {
			trace->failed = true;
			break;
		}
		at += done;
		left -= (size_t)done;
	}
	trace->failed = trace->failed || trace->out.failed;
	buf_reset(&trace->out);
}

static void put_us(struct buf *out, const char *key, int64_t ns)
{
	const uint64_t value = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

	buf_print(out, ",\"%s\":%s%" PRIu64 ".%03u", key, ns < 0 ? "-" : "", value / 1000,
		  (unsigned int)(value % 1000));
}

/* A range that is too long for 64 bits is out of range in the trace, too. */
static void put_times(struct buf *out, const struct nsys_row *row, bool ends)
{
	int64_t duration;

	if (nsys_has(row, NSYS_START))
		put_us(out, "ts", row->values[NSYS_START]);
	if (!ends || !nsys_has(row, NSYS_END) || !nsys_has(row, NSYS_START))
		return;
	if (__builtin_sub_overflow(row->values[NSYS_END], row->values[NSYS_START], &duration))
		buf_text(out, ",\"dur\":1e30");
	else
		put_us(out, "dur", duration);
}

static int64_t pid_of(int64_t global)
{
	return global >> 24 & 0xffffff;
}

/* Opens an event: its arguments follow, then nsys_end_event(). */
static void nsys_begin_event(struct nsys_trace *trace, const struct nsys_row *row,
			     const char *phase, const char *category, struct nsys_text name)
{
	const enum nsys_column owner = nsys_has(row, NSYS_TID) ? NSYS_TID : NSYS_PID;
	const int64_t global = nsys_has(row, owner) ? row->values[owner] : 0;
	const int64_t tid = owner == NSYS_TID ? global & 0xffffff : pid_of(global);
	struct buf *out = &trace->out;

	buf_print(out, "%s{\"ph\":\"%s\",\"cat\":\"%s\",\"name\":", trace->events++ ? ",\n" : "",
		  phase, category);
	json_put_text(out, name.at,
		      name.bytes < KYMO_NAME_BYTES_MAX ? name.bytes : KYMO_NAME_BYTES_MAX);
	buf_print(out, ",\"pid\":%" PRId64 ",\"tid\":%" PRId64, pid_of(global), tid);
	put_times(out, row, *phase == 'X');
	buf_text(out, ",\"args\":{\"nsys\":0");
}

static void put_argument(struct nsys_trace *trace, const char *key, int64_t value)
{
	buf_print(&trace->out, ",\"%s\":%" PRId64, key, value);
}

static void put_column(struct nsys_trace *trace, const struct nsys_row *row, const char *key,
		       enum nsys_column column)
{
	if (nsys_has(row, column))
		put_argument(trace, key, row->values[column]);
}

static void nsys_end_event(struct nsys_trace *trace)
{
	buf_text(&trace->out, "}}");
	if (trace->out.used > FLUSH_BYTES)
		nsys_flush(trace);
}

static struct nsys_text nsys_text_of(const char *text)
{
	return (struct nsys_text){ text, strlen(text) };
}

void nsys_trace_begin(struct nsys_trace *trace, int fd)
{
	memset(trace, 0, sizeof(*trace));
	trace->fd = fd;
	buf_text(&trace->out, "{\"traceEvents\":[\n");
}

void nsys_trace_end(struct nsys_trace *trace)
{
	buf_print(&trace->out, "\n],\"baseTimeNanoseconds\":%" PRId64 "}\n", trace->base_ns);
	nsys_flush(trace);
}

void nsys_trace_fini(struct nsys_trace *trace)
{
	buf_fini(&trace->out);
	buf_fini(&trace->string_texts);
	intern_fini(&trace->string_index);
	intern_fini(&trace->owner_index);
	intern_fini(&trace->other_index);
	free(trace->strings);
	free(trace->owners);
	free(trace->others);
}

/* ---- strings ------------------------------------------------------------------------------- */

static bool same_string(const void *owner, uint32_t number, const void *key)
{
	return ((const struct nsys_trace *)owner)->strings[number].id == *(const int64_t *)key;
}

void nsys_take_string(struct nsys_trace *trace, const struct nsys_row *row)
{
	const int64_t id = row->values[NSYS_NAME];
	const uint64_t hash = intern_hash_number(1, (uint64_t)id);
	const size_t bytes = row->text_bytes < KYMO_NAME_BYTES_MAX ? row->text_bytes
								   : KYMO_NAME_BYTES_MAX;

	if (!nsys_has(row, NSYS_NAME) || !nsys_has(row, NSYS_TEXT) ||
	    trace->string_count >= STRINGS_MOST || trace->string_texts.used > STRINGS_BYTES ||
	    intern_find(&trace->string_index, hash, same_string, trace, &id) != INTERN_NONE ||
	    !grow((void **)&trace->strings, &trace->string_room, trace->string_count,
		  sizeof(*trace->strings)) ||
	    intern_add(&trace->string_index, hash) == INTERN_NONE)
		return;
	trace->strings[trace->string_count++] = (struct nsys_string){
		.id = id, .at = trace->string_texts.used, .bytes = (uint32_t)bytes
	};
	buf_add(&trace->string_texts, row->text, bytes);
}

static struct nsys_text string_of(const struct nsys_trace *trace, int64_t id)
{
	const uint32_t number = intern_find(
		&trace->string_index, intern_hash_number(1, (uint64_t)id), same_string, trace, &id);
	const struct nsys_string *string;

	if (number == INTERN_NONE || trace->string_texts.failed)
		return nsys_text_of("");
	string = &trace->strings[number];
	return (struct nsys_text){ string->bytes ? trace->string_texts.data + string->at : "",
				   string->bytes };
}

static struct nsys_text nsys_name_of(const struct nsys_trace *trace, const struct nsys_row *row)
{
	if (nsys_has(row, NSYS_TEXT))
		return (struct nsys_text){ row->text_bytes ? row->text : "", row->text_bytes };
	if (nsys_has(row, NSYS_NAME))
		return string_of(trace, row->values[NSYS_NAME]);
	return nsys_has(row, NSYS_OTHER_NAME) ? string_of(trace, row->values[NSYS_OTHER_NAME])
					      : nsys_text_of("");
}

void nsys_take_session(struct nsys_trace *trace, const struct nsys_row *row)
{
	if (nsys_has(row, NSYS_START) && row->values[NSYS_START] > 0)
		trace->base_ns = row->values[NSYS_START];
}

/* ---- correlations -------------------------------------------------------------------------- */

static bool same_owner(const void *list, uint32_t number, const void *key)
{
	return ((const struct nsys_correlation *)list)[number].correlation ==
	       ((const struct nsys_correlation *)key)->correlation;
}

static bool same_other(const void *list, uint32_t number, const void *key)
{
	return same_owner(list, number, key) &&
	       ((const struct nsys_correlation *)list)[number].pid ==
		       ((const struct nsys_correlation *)key)->pid;
}

/* The number of a correlation that another process has, too; 0: no memory. */
static int64_t other_number(struct nsys_trace *trace, const struct nsys_correlation *key)
{
	const uint64_t hash = intern_hash_number((uint64_t)key->pid, (uint64_t)key->correlation);
	uint32_t number = intern_find(&trace->other_index, hash, same_other, trace->others, key);

	if (number == INTERN_NONE) {
		if (!grow((void **)&trace->others, &trace->other_room, trace->other_count,
			  sizeof(*trace->others)))
			return 0;
		number = intern_add(&trace->other_index, hash);
		if (number == INTERN_NONE)
			return 0;
		trace->others[trace->other_count++] = *key;
	}
	return (int64_t)OTHERS_FIRST - number;
}

static int64_t correlation_of(struct nsys_trace *trace, const struct nsys_row *row)
{
	const enum nsys_column owner = nsys_has(row, NSYS_TID) ? NSYS_TID : NSYS_PID;
	const struct nsys_correlation key = { pid_of(row->values[owner]),
					      row->values[NSYS_CORRELATION] };
	const uint64_t hash = intern_hash_number(2, (uint64_t)key.correlation);
	uint32_t number;

	if (!nsys_has(row, NSYS_CORRELATION) || key.correlation <= 0)
		return 0;
	number = intern_find(&trace->owner_index, hash, same_owner, trace->owners, &key);
	if (number != INTERN_NONE)
		return trace->owners[number].pid == key.pid ? key.correlation
							    : other_number(trace, &key);
	if (!grow((void **)&trace->owners, &trace->owner_room, trace->owner_count,
		  sizeof(*trace->owners)) ||
	    intern_add(&trace->owner_index, hash) == INTERN_NONE)
		return 0;
	trace->owners[trace->owner_count++] = key;
	return key.correlation;
}

/* ---- names of processes and threads -------------------------------------------------------- */

static void name_event(struct nsys_trace *trace, const struct nsys_row *row, const char *what)
{
	struct nsys_text name = nsys_name_of(trace, row);

	nsys_begin_event(trace, row, "M", "__metadata", nsys_text_of(what));
	buf_text(&trace->out, ",\"name\":");
	json_put_text(&trace->out, name.at, name.bytes < 256 ? name.bytes : 256);
	nsys_end_event(trace);
}

void nsys_take_process(struct nsys_trace *trace, const struct nsys_row *row)
{
	name_event(trace, row, "process_name");
}

void nsys_take_thread(struct nsys_trace *trace, const struct nsys_row *row)
{
	name_event(trace, row, "thread_name");
}

/* ---- the host ------------------------------------------------------------------------------ */

/* "cudaLaunchKernel_v7000": without the version. */
static struct nsys_text without_version(struct nsys_text name)
{
	size_t at = name.bytes;

	while (at && name.at[at - 1] >= '0' && name.at[at - 1] <= '9')
		at--;
	if (at < name.bytes && at > 2 && name.at[at - 1] == 'v' && name.at[at - 2] == '_')
		name.bytes = at - 2;
	return name;
}

void nsys_take_call(struct nsys_trace *trace, const struct nsys_row *row)
{
	const bool driver = nsys_has(row, NSYS_KIND) && row->values[NSYS_KIND] == 1;
	int64_t correlation = correlation_of(trace, row);

	nsys_begin_event(trace, row, "X", driver ? "cuda_driver" : "cuda_runtime",
			 without_version(nsys_name_of(trace, row)));
	if (correlation)
		put_argument(trace, "correlation", correlation);
	nsys_end_event(trace);
}

void nsys_take_library(struct nsys_trace *trace, const struct nsys_row *row)
{
	nsys_begin_event(trace, row, "X", "library", nsys_name_of(trace, row));
	nsys_end_event(trace);
}

void nsys_take_overhead(struct nsys_trace *trace, const struct nsys_row *row)
{
	nsys_begin_event(trace, row, "X", "Trace", nsys_name_of(trace, row));
	nsys_end_event(trace);
}

/* The number after a word, such as ", seq = "; -1: none. */
static int64_t number_after(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	return at ? strtoll(at + strlen(word), NULL, 10) : -1;
}

/* "aten::mm, seq = 12, op_id = 9", as torch.autograd.profiler.emit_nvtx() writes it: the name has
   *bytes bytes. False: another text. */
static bool is_operator(const char *text, size_t *bytes)
{
	const char *seq = strstr(text, ", seq = "), *op = strstr(text, ", op_id = ");
	const char *end = seq && (!op || seq < op) ? seq : op;

	if (!end || end == text)
		return false;
	*bytes = (size_t)(end - text);
	return true;
}

static void operator_event(struct nsys_trace *trace, const struct nsys_row *row, const char *text,
			   size_t bytes)
{
	const int64_t sequence = number_after(text + bytes, ", seq = ");
	const char *backward = strstr(text, "Backward");

	nsys_begin_event(trace, row, "X", "cpu_op", (struct nsys_text){ text, bytes });
	if (sequence >= 0) {
		put_argument(trace, "Sequence number", sequence);
		put_argument(trace, "Fwd thread id", backward && backward < text + bytes);
	}
	nsys_end_event(trace);
}

/* Numbers of ENUM_NSYS_EVENT_TYPE. */
enum {
	NVTX_CATEGORY = 33,
	NVTX_MARK = 34,
	NVTX_THREAD = 39,
	NVTX_PUSH_POP = 59,
	NVTX_START_END = 60,
	NVTXT_MARK = 65,
	NVTXT_PUSH_POP = 70,
	NVTXT_START_END = 71,
	NVTX_DOMAIN = 75,
	NVTX_DOMAIN_END = 76,
};

static const char *phase_of_range(const struct nsys_row *row)
{
	switch (nsys_has(row, NSYS_KIND) ? row->values[NSYS_KIND] : NVTX_PUSH_POP) {
	case NVTX_PUSH_POP:
	case NVTX_START_END:
	case NVTXT_PUSH_POP:
	case NVTXT_START_END: return nsys_has(row, NSYS_END) ? "X" : "B";
	case NVTX_MARK:
	case NVTXT_MARK: return "i";
	case NVTX_CATEGORY:
	case NVTX_THREAD:
	case NVTX_DOMAIN:
	case NVTX_DOMAIN_END: return "M";
	default: return "?";
	}
}

void nsys_take_range(struct nsys_trace *trace, const struct nsys_row *row)
{
	const struct nsys_text name = nsys_name_of(trace, row);
	const char *phase = phase_of_range(row);
	char text[KYMO_NAME_BYTES_MAX + 1];
	size_t bytes = name.bytes < KYMO_NAME_BYTES_MAX ? name.bytes : KYMO_NAME_BYTES_MAX;

	memcpy(text, name.at, bytes);
	text[bytes] = '\0';
	if (*phase == 'X' && is_operator(text, &bytes)) {
		operator_event(trace, row, text, bytes);
		return;
	}
	nsys_begin_event(trace, row, phase, "user_annotation", name);
	nsys_end_event(trace);
}

/* ---- devices ------------------------------------------------------------------------------- */

static void device_event(struct nsys_trace *trace, const struct nsys_row *row, const char *category,
			 struct nsys_text name)
{
	const int64_t correlation = correlation_of(trace, row);

	nsys_begin_event(trace, row, "X", category, name);
	put_column(trace, row, "device", NSYS_DEVICE);
	put_column(trace, row, "context", NSYS_CONTEXT);
	put_column(trace, row, "stream", NSYS_STREAM);
	put_column(trace, row, "bytes", NSYS_BYTES);
	put_column(trace, row, "graph id", NSYS_GRAPH);
	if (correlation)
		put_argument(trace, "correlation", correlation);
	if (nsys_has(row, NSYS_PID))
		put_argument(trace, "owner", pid_of(row->values[NSYS_PID]));
	nsys_end_event(trace);
}

void nsys_take_kernel(struct nsys_trace *trace, const struct nsys_row *row)
{
	device_event(trace, row, "kernel", nsys_name_of(trace, row));
}

void nsys_take_graph(struct nsys_trace *trace, const struct nsys_row *row)
{
	char text[48] = "CUDA graph";

	if (nsys_has(row, NSYS_GRAPH))
		snprintf(text, sizeof(text), "CUDA graph %" PRId64, row->values[NSYS_GRAPH]);
	device_event(trace, row, "kernel", nsys_text_of(text));
}

static const char *memory_word(const struct nsys_row *row, enum nsys_column column)
{
	static const char *const words[] = { "Pageable", "Pinned",	  "Device",	   "Array",
					     "Managed",	 "Device Static", "Managed Static" };
	const int64_t kind = nsys_has(row, column) ? row->values[column] : -1;

	return kind >= 0 && kind < (int64_t)(sizeof(words) / sizeof(words[0])) ? words[kind]
									       : "Unknown";
}

void nsys_take_copy(struct nsys_trace *trace, const struct nsys_row *row)
{
	static const char *const words[] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH",
					     "AtoA",	"AtoD", "DtoA", "DtoD", "HtoH",
					     "PtoP",	"HtoD", "DtoH", "DtoD" };
	const int64_t kind = nsys_has(row, NSYS_KIND) ? row->values[NSYS_KIND] : 0;
	char text[96];

	snprintf(text, sizeof(text), "Memcpy %s (%s -> %s)",
		 kind >= 0 && kind < (int64_t)(sizeof(words) / sizeof(words[0])) ? words[kind]
										 : words[0],
		 memory_word(row, NSYS_FROM_MEMORY), memory_word(row, NSYS_TO_MEMORY));
	device_event(trace, row, "gpu_memcpy", nsys_text_of(text));
}

void nsys_take_fill(struct nsys_trace *trace, const struct nsys_row *row)
{
	char text[64];

	snprintf(text, sizeof(text), "Memset (%s)", memory_word(row, NSYS_TO_MEMORY));
	device_event(trace, row, "gpu_memset", nsys_text_of(text));
}

void nsys_take_wait(struct nsys_trace *trace, const struct nsys_row *row)
{
	static const char *const words[] = { "Unknown", "Event Sync", "Stream Wait Event",
					     "Stream Sync", "Context Sync" };
	const int64_t kind = nsys_has(row, NSYS_KIND) ? row->values[NSYS_KIND] : 0;

	device_event(trace, row, "cuda_sync", nsys_text_of(words[kind > 0 && kind < 5 ? kind : 0]));
}

/* memoryOperationType: 0 allocates, 1 frees. */
void nsys_take_memory(struct nsys_trace *trace, const struct nsys_row *row)
{
	const int64_t bytes = nsys_has(row, NSYS_BYTES) ? row->values[NSYS_BYTES] : 0;
	const bool frees = nsys_has(row, NSYS_KIND) && row->values[NSYS_KIND] == 1;

	nsys_begin_event(trace, row, "i", "memory", nsys_text_of("[memory]"));
	put_argument(trace, "Bytes", frees && bytes > INT64_MIN ? -bytes : bytes);
	put_argument(trace, "Device Type", 1);
	put_argument(trace, "Device Id", nsys_has(row, NSYS_DEVICE) ? row->values[NSYS_DEVICE] : 0);
	nsys_end_event(trace);
}
