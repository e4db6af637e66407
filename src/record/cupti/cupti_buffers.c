/* Buffers that CUPTI fills and returns. They are small, so that little is lost when the program is
   killed, and are used again. */
#include <sys/mman.h>

#include <kymo/atomic.h>

#include "record/cupti/cupti.h"

static uint8_t *buffers[CUPTI_BUFFERS_MOST]; /* atomic; NULL: not made */
static uint32_t lent[CUPTI_BUFFERS_MOST]; /* 1: CUPTI has it; atomic */
static uint64_t refused; /* atomic */

static uint8_t *buffer_make(void)
{
	void *memory = mmap(NULL, CUPTI_BUFFER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static uint8_t *buffer_lend(void)
{
	for (uint32_t i = 0; i < CUPTI_BUFFERS_MOST; i++) {
		uint32_t idle = 0;

		if (!kymo__cas_acquire(&lent[i], &idle, 1))
			continue;
		if (!kymo__load_relaxed(&buffers[i]))
			kymo__store_release(&buffers[i], buffer_make());
		if (kymo__load_relaxed(&buffers[i]))
			return kymo__load_relaxed(&buffers[i]);
		kymo__store_release(&lent[i], 0);
		return NULL;
	}
	return NULL;
}

static int64_t buffer_number(const uint8_t *buffer)
{
	for (uint32_t i = 0; i < CUPTI_BUFFERS_MOST; i++)
		if (buffer && kymo__load_acquire(&buffers[i]) == buffer)
			return i;
	return -1;
}

bool cupti_buffers_mine(const uint8_t *buffer)
{
	return buffer_number(buffer) >= 0;
}

/* Without a buffer CUPTI drops records, and counts them. */
void cupti_on_request(uint8_t **out_buffer, size_t *out_bytes, size_t *out_records)
{
	*out_buffer = buffer_lend();
	*out_bytes = *out_buffer ? CUPTI_BUFFER_BYTES : 0;
	*out_records = 0; /* as many as fit */
	if (!*out_buffer)
		kymo__fetch_add_relaxed(&refused, 1);
}

static void buffers_count_dropped(void *context, uint32_t stream)
{
	size_t dropped = 0;

	if (!cupti_api.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) && dropped)
		cupti_gap("CUPTI dropped records", kymo_ticks(), kymo_ticks(), dropped);
}

static void buffers_take_back(uint8_t *buffer, size_t valid_bytes)
{
	int64_t number = buffer_number(buffer);

	if (number < 0)
		return; /* not ours: nothing is known of it */
	if (kymo__load_acquire(&cupti_state) != CUPTI_OFF)
		cupti_decode(buffer,
			     valid_bytes < CUPTI_BUFFER_BYTES ? valid_bytes : CUPTI_BUFFER_BYTES);
	kymo__store_release(&lent[number], 0);
}

void cupti_on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
		       size_t valid_bytes)
{
	(void)bytes;
	buffers_take_back(buffer, valid_bytes);
	buffers_count_dropped(context, stream);
}

void cupti_on_request_2(uint8_t **out_buffer, size_t *out_bytes, size_t *out_records, void *info)
{
	(void)info;
	cupti_on_request(out_buffer, out_bytes, out_records);
}

void cupti_on_complete_2(uint8_t *buffer, size_t bytes, size_t valid_bytes, void *info)
{
	(void)bytes, (void)info;
	buffers_take_back(buffer, valid_bytes);
}
