/* Records of perf rings, names of compiled code, prologues, expressions and Python stacks to merge:
   all of it is untrusted, or has to be exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <dwarf.h>
#include <linux/perf_event.h>

#include "collect/symbols/elf_image.h"
#include "collect/symbols/elf_symbols.h"
#include "collect/frames/frame_expression.h"
#include "collect/frames/frame_prologue.h"
#include "collect/frames/frame_rules.h"
#include "collect/symbols/jit_map.h"
#include "collect/perf/perf_record.h"
#include "collect/recent_stacks.h"

/* ---- records --------------------------------------------------------------------------------- */

struct bytes {
	unsigned char data[4096];
	size_t used;
};

static void put(struct bytes *out, const void *from, size_t count)
{
	memcpy(out->data + out->used, from, count);
	out->used += count;
}

static void put32(struct bytes *out, uint32_t value)
{
	put(out, &value, 4);
}

static void put64(struct bytes *out, uint64_t value)
{
	put(out, &value, 8);
}

static void begin(struct bytes *out, uint32_t type, uint16_t misc)
{
	struct perf_event_header head = { .type = type, .misc = misc };

	out->used = 0;
	put(out, &head, sizeof(head));
}

/* Sets the size in the header, and parses. */
static bool finish(struct bytes *out, struct perf_record *record)
{
	uint16_t size = (uint16_t)out->used;

	memcpy(out->data + offsetof(struct perf_event_header, size), &size, 2);
	return perf_record_parse(out->data, out->used, record);
}

static void put_trailer(struct bytes *out)
{
	put32(out, 11);
	put32(out, 12);
	put64(out, 77);
}

static void put_mmap(struct bytes *out, const char *path, size_t path_bytes)
{
	begin(out, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
	put32(out, 11);
	put32(out, 12);
	put64(out, 0x1000);
	put64(out, 0x2000);
	put64(out, 0x3000);
	put32(out, 8);
	put32(out, 1);
	put64(out, 4711);
	put64(out, 0);
	put64(out, 5);
	put(out, path, path_bytes);
	put_trailer(out);
}

/* Another tool's event may have build ids; the kernel then sets the bit in our records, too. */
static void test_a_mapping_has_its_file_whatever_other_tools_ask_for(void **state)
{
	struct perf_record record;
	struct bytes out;

	(void)state;
	put_mmap(&out, "/lib/x\0", 8);
	assert_true(finish(&out, &record));
	assert_int_equal(record.kind, PERF_RECORD_OF_MMAP);
	assert_int_equal(record.pid, 11);
	assert_int_equal(record.mmap.start, 0x1000);
	assert_int_equal(record.mmap.file_offset, 0x3000);
	assert_int_equal(record.mmap.device, 8ull << 32 | 1);
	assert_int_equal(record.mmap.inode, 4711);
	assert_string_equal(record.mmap.path, "/lib/x");
	assert_int_equal(record.time_ns, 77);
}

static void test_a_path_that_does_not_end_is_refused(void **state)
{
	struct perf_record record;
	struct bytes out;

	(void)state;
	put_mmap(&out, "12345678", 8);
	assert_false(finish(&out, &record));
}

static void put_sample(struct bytes *out, uint64_t claimed, size_t stored, uint64_t copied)
{
	uint64_t mask = perf_record_register_mask();

	begin(out, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put32(out, 11);
	put32(out, 12);
	put64(out, 77);
	put64(out, 1000000);
	put64(out, PERF_SAMPLE_REGS_ABI_64);
	for (unsigned i = 0; i < 64; i++)
		if (mask >> i & 1)
			put64(out, 1000 + i);
	put64(out, claimed);
	for (size_t i = 0; i < stored; i += 8)
		put64(out, i);
	put64(out, copied);
}

static void test_a_sample_has_registers_and_its_stack(void **state)
{
	struct perf_record record;
	struct bytes out;

	(void)state;
	put_sample(&out, 64, 64, 24);
	assert_true(finish(&out, &record));
	assert_int_equal(record.kind, PERF_RECORD_OF_SAMPLE);
	assert_int_equal(record.sample.period_ns, 1000000);
	assert_true(record.sample.has_registers);
	assert_int_equal(record.sample.stack_bytes, 24);
	assert_false(record.sample.stack_is_cut);
	assert_memory_equal(record.sample.stack + 8, "\x08\0\0\0\0\0\0\0", 8);
	put_sample(&out, 64, 64, 64);
	assert_true(finish(&out, &record));
	assert_true(record.sample.stack_is_cut);
}

static void test_lengths_beyond_the_record_are_refused(void **state)
{
	static const uint64_t claims[] = { 72, 4096, UINT64_MAX, UINT64_MAX - 7, 1ull << 63 };
	struct perf_record record;
	struct bytes out;

	(void)state;
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		put_sample(&out, claims[i], 64, 64);
		assert_false(finish(&out, &record) && claims[i] > 72);
	}
	put_sample(&out, 64, 64, UINT64_MAX); /* more copied than there is room for */
	assert_true(finish(&out, &record));
	assert_int_equal(record.sample.stack_bytes, 64);
}

/* Each prefix of a record, with its size in the header, is a record or is refused; under ASan, none
   reads beyond its end. */
static void test_every_cut_record_is_refused_or_whole(void **state)
{
	struct perf_record record;
	struct bytes out;
	size_t whole;

	(void)state;
	put_sample(&out, 64, 64, 64);
	whole = out.used;
	for (size_t bytes = 0; bytes < whole; bytes++) {
		unsigned char *copy = malloc(bytes + 1);
		uint16_t size = (uint16_t)bytes;

		memcpy(copy, out.data, bytes);
		if (bytes >= 8)
			memcpy(copy + offsetof(struct perf_event_header, size), &size, 2);
		assert_false(perf_record_parse(copy, bytes, &record));
		free(copy);
	}
}

static void test_random_bytes_are_no_danger(void **state)
{
	struct perf_record record;
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t bytes = 8 + (seed >> 8) % 256;
		unsigned char *data = malloc(bytes);
		uint16_t size = (uint16_t)bytes;
		uint32_t type = 1 + round % 12;

		for (size_t i = 0; i < bytes; i++)
			data[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
		memcpy(data, &type, 4);
		memcpy(data + offsetof(struct perf_event_header, size), &size, 2);
		perf_record_parse(data, bytes, &record);
		free(data);
	}
}

static void test_losses_are_counted(void **state)
{
	struct perf_record record;
	struct bytes out;

	(void)state;
	begin(&out, PERF_RECORD_LOST, 0);
	put64(&out, 1);
	put64(&out, 42);
	put_trailer(&out);
	assert_true(finish(&out, &record));
	assert_int_equal(record.kind, PERF_RECORD_OF_LOSS);
	assert_int_equal(record.lost, 42);
}

/* ---- compiled code --------------------------------------------------------------------------- */

static void test_the_later_of_two_names_counts(void **state)
{
	static const char text[] = "1000 100 first\n1000 100 second version\nnonsense\n"
				   "ffffffffffffffff 10 wraps\n2000 0 empty\n3000 10 cut";
	struct jit_map *map = jit_map_parse(text, sizeof(text) - 1);
	uint64_t start = 0;

	(void)state;
	assert_string_equal(jit_map_find(map, 0x1080, &start), "second version");
	assert_int_equal(start, 0x1000);
	assert_null(jit_map_find(map, 0x1100, &start));
	assert_null(jit_map_find(map, 0x2000, &start));
	assert_null(jit_map_find(map, 0x3000, &start)); /* its line is still being written */
	assert_null(jit_map_find(map, UINT64_MAX, &start));
	assert_null(jit_map_find(NULL, 0x1080, &start));
	jit_map_free(map);
}

/* ---- prologues and expressions --------------------------------------------------------------- */

#if defined(__x86_64__)
/* endbr64; sub $0x80,%rsp; mov %rbx,(%rsp); mov %rbp,8(%rsp); as a kernel of MKL begins */
static const unsigned char kernel[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x81, 0xec, 0x80,
					0,    0,    0,	  0x48, 0x89, 0x1c, 0x24, 0x48,
					0x89, 0x6c, 0x24, 0x08, 0x48, 0x8b, 0x07, 0x90 };

static void test_a_prologue_gives_the_frame(void **state)
{
	struct frame_rules rules;

	(void)state;
	assert_true(frame_prologue_read(kernel, sizeof(kernel), 1000, &rules));
	assert_int_equal(rules.cfa.reg, 7);
	assert_int_equal(rules.cfa.offset, 0x88);
	assert_int_equal(rules.registers[3].kind, FRAME_AT_OFFSET); /* rbx */
	assert_int_equal(rules.registers[3].offset, -0x88);
	assert_int_equal(rules.registers[6].offset, -0x80); /* rbp */
	assert_int_equal(rules.registers[16].offset, -8);
	assert_true(frame_prologue_read(kernel, sizeof(kernel), 4, &rules));
	assert_int_equal(rules.cfa.offset, 8); /* the stack pointer has not moved yet */
}

static void test_calls_are_recognised(void **state)
{
	(void)state;
	assert_true(
		frame_prologue_is_call((const unsigned char *)"\x90\x90\xe8\x01\x02\x03\x04", 7));
	assert_true(
		frame_prologue_is_call((const unsigned char *)"\x90\x90\x90\x90\x90\xff\xd0", 7));
	assert_false(
		frame_prologue_is_call((const unsigned char *)"\x90\x90\x90\x90\x90\x90\x90", 7));
}
#endif

static void test_expressions_compute_and_end(void **state)
{
	/* the CFA of a PLT entry: sp + 8 + ((pc & 15) >= 11) * 8 */
	static const unsigned char plt[] = { DW_OP_breg0 + 7, 8,	 DW_OP_breg0 + 16, 0,
					     DW_OP_lit15,     DW_OP_and, DW_OP_lit11,	   DW_OP_ge,
					     DW_OP_lit3,      DW_OP_shl, DW_OP_plus };
	static const unsigned char forever[] = { DW_OP_skip, 0xfd, 0xff };
	static const unsigned char outside[] = { DW_OP_lit1, DW_OP_deref };
	static const unsigned char beyond[] = { DW_OP_skip, 0x10, 0x00 };
	struct frame_state registers = { .registers = { [7] = 1000, [16] = 0x4b } };
	struct frame_memory none = { 0 };
	uint64_t value = 0;

	(void)state;
	assert_true(frame_expression(plt, sizeof(plt), NULL, &registers, &none, &value));
	assert_int_equal(value, 1016);
	assert_false(frame_expression(forever, sizeof(forever), NULL, &registers, &none, &value));
	assert_false(frame_expression(outside, sizeof(outside), NULL, &registers, &none, &value));
	assert_false(frame_expression(beyond, sizeof(beyond), NULL, &registers, &none, &value));
	assert_false(frame_expression(plt, 0, NULL, &registers, &none, &value));
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Every byte of the headers of this program is changed in turn; nothing may crash or hang. */
static void test_damaged_files_are_refused_or_read(void **state)
{
	static unsigned char copy[1 << 16];
	struct elf_image self, damaged;
	struct elf_symbols symbols;
	struct frame_table frames;
	size_t bytes;

	(void)state;
	assert_int_equal(elf_image_open(&self, dup(STDIN_FILENO)) <= 0, 1); /* not an ELF file */
	assert_int_equal(elf_image_open_memory(&damaged,
					       "\x7f"
					       "ELF",
					       4),
			 -8 /* ENOEXEC */);
	{
		FILE *file = fopen("/proc/self/exe", "rb");

		assert_non_null(file);
		bytes = fread(copy, 1, sizeof(copy), file);
		fclose(file);
	}
	for (size_t at = 0; at < 1024 && at < bytes; at++) {
		unsigned char kept = copy[at];

		copy[at] ^= 0xff;
		if (!elf_image_open_memory(&damaged, copy, bytes)) {
			elf_symbols_load(&symbols, &damaged);
			elf_symbols_find(&symbols, 0x2000);
			elf_symbols_fini(&symbols);
			frame_table_init(&frames, &damaged);
			for (uint64_t address = 0x1000; address < 0x4000; address += 0x155)
				frame_table_find(&frames, address);
			frame_table_fini(&frames);
		}
		copy[at] = kept;
	}
}

/* ---- Python stacks --------------------------------------------------------------------------- */

static struct recent_frame frame_of(uint32_t name, uint64_t code, bool entry)
{
	return (struct recent_frame){
		.name = name, .line = name, .entry = entry, .frame = 0x7000, .code = code
	};
}

static void test_a_stack_counts_between_two_equal_samples(void **state)
{
	struct recent_stacks *recent = recent_stacks_create();
	const struct recent_frame frames[] = { frame_of(1, 100, false), frame_of(2, 200, true) };
	struct recent_frame out[8];

	(void)state;
	recent_stacks_add(recent, 5, 1000, 42, frames, 2);
	recent_stacks_add(recent, 5, 2000, 42, frames, 2);
	assert_int_equal(recent_stacks_at(recent, 5, 1500, out, 8), 2);
	assert_int_equal(out[1].name, 2);
	assert_int_equal(recent_stacks_at(recent, 5, 2500, out, 8), 0); /* no sample after it */
	assert_int_equal(recent_stacks_at(recent, 6, 1500, out, 8), 0); /* another thread */
	recent_stacks_add(recent, 5, 3000, 43, frames, 1);
	assert_int_equal(recent_stacks_at(recent, 5, 2500, out, 8), 0); /* it changed */
	recent_stacks_add(recent, 5, 900000003000, 43, frames, 1);
	assert_int_equal(recent_stacks_at(recent, 5, 4000, out, 8), 0); /* too long a pause */
	recent_stacks_destroy(recent);
}

static void test_a_function_with_two_callers_is_ambiguous(void **state)
{
	struct recent_stacks *recent = recent_stacks_create();
	const struct recent_frame one[] = { frame_of(1, 100, false), frame_of(2, 200, true) };
	const struct recent_frame other[] = { frame_of(1, 100, false), frame_of(3, 300, true) };
	struct recent_frame out[8];

	(void)state;
	recent_stacks_add(recent, 5, 1000, 42, one, 2);
	recent_stacks_add(recent, 5, 2000, 42, one, 2);
	recent_stacks_add(recent, 5, 3000, 43, other, 2);
	assert_int_equal(recent_stacks_at(recent, 5, 1500, out, 8), 0);
	recent_stacks_destroy(recent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_mapping_has_its_file_whatever_other_tools_ask_for),
		cmocka_unit_test(test_a_path_that_does_not_end_is_refused),
		cmocka_unit_test(test_a_sample_has_registers_and_its_stack),
		cmocka_unit_test(test_lengths_beyond_the_record_are_refused),
		cmocka_unit_test(test_every_cut_record_is_refused_or_whole),
		cmocka_unit_test(test_random_bytes_are_no_danger),
		cmocka_unit_test(test_losses_are_counted),
		cmocka_unit_test(test_the_later_of_two_names_counts),
#if defined(__x86_64__)
		cmocka_unit_test(test_a_prologue_gives_the_frame),
		cmocka_unit_test(test_calls_are_recognised),
#endif
		cmocka_unit_test(test_expressions_compute_and_end),
		cmocka_unit_test(test_damaged_files_are_refused_or_read),
		cmocka_unit_test(test_a_stack_counts_between_two_equal_samples),
		cmocka_unit_test(test_a_function_with_two_callers_is_ambiguous),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
