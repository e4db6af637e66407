/*
 * Tracy's marks for C, recorded by kymo. With TRACY_ENABLE the marks are active (link -lkymo) and
 * the program records by itself; without it they compile to nothing. docs/cpp.md describes each
 * mark.
 */
#ifndef KYMO_TRACYC_H
#define KYMO_TRACYC_H

#include <stddef.h>
#include <stdint.h>

enum TracyPlotFormatEnum {
	TracyPlotFormatNumber,
	TracyPlotFormatMemory,
	TracyPlotFormatPercentage,
	TracyPlotFormatWatt
};

#if !defined(TRACY_ENABLE) || defined(KYMO_DISABLE)

typedef const void *TracyCZoneCtx;

#define TracyCZone(ctx, active)
#define TracyCZoneN(ctx, name, active)
#define TracyCZoneC(ctx, color, active)
#define TracyCZoneNC(ctx, name, color, active)
#define TracyCZoneS(ctx, depth, active)
#define TracyCZoneNS(ctx, name, depth, active)
#define TracyCZoneCS(ctx, color, depth, active)
#define TracyCZoneNCS(ctx, name, color, depth, active)
#define TracyCZoneEnd(ctx)
#define TracyCZoneText(ctx, text, size)
#define TracyCZoneTextF(ctx, ...)
#define TracyCZoneName(ctx, text, size)
#define TracyCZoneNameF(ctx, ...)
#define TracyCZoneColor(ctx, color)
#define TracyCZoneValue(ctx, value)
#define TracyCAlloc(ptr, size)
#define TracyCFree(ptr)
#define TracyCMemoryDiscard(name)
#define TracyCSecureAlloc(ptr, size)
#define TracyCSecureFree(ptr)
#define TracyCAllocN(ptr, size, name)
#define TracyCFreeN(ptr, name)
#define TracyCSecureAllocN(ptr, size, name)
#define TracyCSecureFreeN(ptr, name)
#define TracyCAllocS(ptr, size, depth)
#define TracyCFreeS(ptr, depth)
#define TracyCSecureAllocS(ptr, size, depth)
#define TracyCSecureFreeS(ptr, depth)
#define TracyCMemoryDiscardS(name, depth)
#define TracyCAllocNS(ptr, size, depth, name)
#define TracyCFreeNS(ptr, depth, name)
#define TracyCSecureAllocNS(ptr, size, depth, name)
#define TracyCSecureFreeNS(ptr, depth, name)
#define TracyCFrameMark
#define TracyCFrameMarkNamed(name)
#define TracyCFrameMarkStart(name)
#define TracyCFrameMarkEnd(name)
#define TracyCFrameImage(image, width, height, offset, flip)
#define TracyCPlot(name, value)
#define TracyCPlotF(name, value)
#define TracyCPlotI(name, value)
#define TracyCPlotConfig(name, ...)
#define TracyCMessage(text, size)
#define TracyCMessageL(text)
#define TracyCMessageC(text, size, color)
#define TracyCMessageLC(text, color)
#define TracyCMessageS(text, size, depth)
#define TracyCMessageLS(text, depth)
#define TracyCMessageCS(text, size, color, depth)
#define TracyCMessageLCS(text, color, depth)
#define TracyCAppInfo(text, size)
#define TracyCSetThreadName(name)
#define TracyCFiberEnter(fiber)
#define TracyCFiberLeave
#define TracyCIsConnected 0
#define TracyCIsStarted 0

#else

#include <stdarg.h>
#include <stdio.h>

#include "TracyKymo.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ___tracy_source_location_data {
	const char *name;
	const char *function;
	const char *file;
	uint32_t line;
	uint32_t color;
};

/* Passed by value; the name of a zone is therefore kept with the open zone, see
   kymo__zone_rename(). */
struct ___tracy_c_zone_context {
	uint32_t id;
	int32_t active;
	struct kymo_zone zone;
	const char *file;
	uint32_t line;
	uint32_t reserved;
};
typedef struct ___tracy_c_zone_context TracyCZoneCtx;

static inline TracyCZoneCtx kymo__tracy_context(struct kymo_zone zone, const char *file,
						uint32_t line)
{
	TracyCZoneCtx ctx = { zone.name, zone.lane != NULL, zone, file, line, 0 };

	return ctx;
}

static inline TracyCZoneCtx kymo__tracy_c_begin(struct kymo_site *site, int active)
{
	return kymo__tracy_context(kymo__tracy_begin(site, active), site->file, site->line);
}

/* ---- the functions below the macros, for code and bindings that call them ------------------- */

static inline TracyCZoneCtx ___tracy_emit_zone_begin(
	const struct ___tracy_source_location_data *place, int32_t active)
{
	const char *name = place->name ? place->name : place->function;
	struct kymo_zone zone = kymo__tracy_begin_named(name, kymo__tracy_length(name), place->file,
							kymo__tracy_length(place->file),
							place->line, active);

	return kymo__tracy_context(zone, place->file, place->line);
}

static inline TracyCZoneCtx ___tracy_emit_zone_begin_callstack(
	const struct ___tracy_source_location_data *place, int32_t depth, int32_t active)
{
	(void)depth;
	return ___tracy_emit_zone_begin(place, active);
}

/* A place created at run time is the id of its name. */
static inline uint64_t ___tracy_alloc_srcloc_name(uint32_t line, const char *file,
						  size_t file_bytes, const char *function,
						  size_t function_bytes, const char *name,
						  size_t name_bytes, uint32_t color)
{
	(void)color;
	if (!name || !name_bytes) {
		name = function;
		name_bytes = function_bytes;
	}
	return kymo_name_full(name, name_bytes, file, file_bytes, line, KYMO_SOURCE_C, 0);
}

static inline uint64_t ___tracy_alloc_srcloc(uint32_t line, const char *file, size_t file_bytes,
					     const char *function, size_t function_bytes,
					     uint32_t color)
{
	return ___tracy_alloc_srcloc_name(line, file, file_bytes, function, function_bytes, NULL, 0,
					  color);
}

static inline TracyCZoneCtx ___tracy_emit_zone_begin_alloc(uint64_t place, int32_t active)
{
	struct kymo_zone zone = { NULL, 0, 0, 0 };

	if (active)
		zone = kymo_zone_begin_id((uint32_t)place);
	return kymo__tracy_context(zone, NULL, 0);
}

static inline TracyCZoneCtx ___tracy_emit_zone_begin_alloc_callstack(uint64_t place, int32_t depth,
								     int32_t active)
{
	(void)depth;
	return ___tracy_emit_zone_begin_alloc(place, active);
}

static inline void ___tracy_emit_zone_end(TracyCZoneCtx ctx)
{
	kymo__zone_end_renamed(&ctx.zone);
}

static inline void ___tracy_emit_zone_text(TracyCZoneCtx ctx, const char *text, size_t size)
{
	kymo_zone_text_of(&ctx.zone, text, size);
}

static inline void ___tracy_emit_zone_name(TracyCZoneCtx ctx, const char *text, size_t size)
{
	kymo__tracy_rename(&ctx.zone, ctx.file, ctx.line, text, size);
}

static inline void ___tracy_emit_zone_color(TracyCZoneCtx ctx, uint32_t color)
{
	(void)ctx;
	(void)color;
}

static inline void ___tracy_emit_zone_value(TracyCZoneCtx ctx, uint64_t value)
{
	kymo_zone_value_of(&ctx.zone, value);
}

/* Formatted texts are truncated to 1,023 bytes. */
__attribute__((format(printf, 2, 3), unused)) static void ___tracy_emit_zone_text_fmt(
	TracyCZoneCtx ctx, const char *format, ...)
{
	char text[1024];
	va_list list;

	if (!ctx.active)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	___tracy_emit_zone_text(ctx, text, strlen(text));
}

__attribute__((format(printf, 2, 3), unused)) static void ___tracy_emit_zone_name_fmt(
	TracyCZoneCtx ctx, const char *format, ...)
{
	char text[1024];
	va_list list;

	if (!ctx.active)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	___tracy_emit_zone_name(ctx, text, strlen(text));
}

static inline void ___tracy_set_thread_name(const char *name)
{
	kymo_thread_name(name);
}

static inline void ___tracy_emit_memory_alloc_named(const void *ptr, size_t size, int secure,
						    const char *name)
{
	(void)secure;
	kymo__pool_alloc(name, ptr, size);
}

static inline void ___tracy_emit_memory_free_named(const void *ptr, int secure, const char *name)
{
	(void)secure;
	kymo__pool_free(name, ptr);
}

static inline void ___tracy_emit_memory_alloc(const void *ptr, size_t size, int secure)
{
	___tracy_emit_memory_alloc_named(ptr, size, secure, NULL);
}

static inline void ___tracy_emit_memory_free(const void *ptr, int secure)
{
	___tracy_emit_memory_free_named(ptr, secure, NULL);
}

static inline void ___tracy_emit_message(const char *text, size_t size, int32_t depth)
{
	(void)depth;
	kymo__tracy_message(text, size);
}

static inline void ___tracy_emit_messageL(const char *text, int32_t depth)
{
	___tracy_emit_message(text, kymo__tracy_length(text), depth);
}

static inline void ___tracy_emit_message_appinfo(const char *text, size_t size)
{
	kymo__mark_bytes("app info", text, size);
}

static inline void ___tracy_emit_frame_mark(const char *name)
{
	kymo_step(kymo__tracy_frame(name));
}

static inline void ___tracy_emit_frame_mark_start(const char *name)
{
	kymo_step(kymo__tracy_frame(name));
}

static inline void ___tracy_emit_frame_mark_end(const char *name)
{
	kymo_step_end(kymo__tracy_frame(name));
}

static inline void ___tracy_emit_plot(const char *name, double value)
{
	kymo_counter(name, value);
}

static inline void ___tracy_emit_plot_float(const char *name, float value)
{
	kymo_counter(name, (double)value);
}

static inline void ___tracy_emit_plot_int(const char *name, int64_t value)
{
	kymo_counter(name, (double)value);
}

static inline void ___tracy_emit_plot_config(const char *name, int32_t type, int32_t step,
					     int32_t fill, uint32_t color)
{
	(void)name, (void)type, (void)step, (void)fill, (void)color;
}

static inline int32_t ___tracy_connected(void)
{
	return kymo_enabled();
}

static inline void ___tracy_startup_profiler(void)
{
	kymo__enable_once();
}

static inline void ___tracy_shutdown_profiler(void)
{
	kymo_disable();
}

static inline int32_t ___tracy_profiler_started(void)
{
	return kymo_enabled();
}

#ifdef __cplusplus
}
#endif

/* ---- the macros ---- */

#define KYMO__TRACY_C_ZONE(ctx, text, active) \
	static struct kymo_site TracyConcat(kymo__tracy_site_of_, \
					    ctx) = { text, TracyFile, (uint32_t)TracyLine, 0 }; \
	TracyCZoneCtx ctx = kymo__tracy_c_begin(&TracyConcat(kymo__tracy_site_of_, ctx), active);

#define TracyCZone(ctx, active) KYMO__TRACY_C_ZONE(ctx, __func__, active)
#define TracyCZoneN(ctx, name, active) KYMO__TRACY_C_ZONE(ctx, name, active)
#define TracyCZoneC(ctx, color, active) KYMO__TRACY_C_ZONE(ctx, __func__, active)
#define TracyCZoneNC(ctx, name, color, active) KYMO__TRACY_C_ZONE(ctx, name, active)
#define TracyCZoneS(ctx, depth, active) KYMO__TRACY_C_ZONE(ctx, __func__, active)
#define TracyCZoneNS(ctx, name, depth, active) KYMO__TRACY_C_ZONE(ctx, name, active)
#define TracyCZoneCS(ctx, color, depth, active) KYMO__TRACY_C_ZONE(ctx, __func__, active)
#define TracyCZoneNCS(ctx, name, color, depth, active) KYMO__TRACY_C_ZONE(ctx, name, active)
#define TracyCZoneEnd(ctx) ___tracy_emit_zone_end(ctx);
#define TracyCZoneText(ctx, text, size) ___tracy_emit_zone_text(ctx, text, size);
#define TracyCZoneTextF(ctx, ...) ___tracy_emit_zone_text_fmt(ctx, __VA_ARGS__);
#define TracyCZoneName(ctx, text, size) ___tracy_emit_zone_name(ctx, text, size);
#define TracyCZoneNameF(ctx, ...) ___tracy_emit_zone_name_fmt(ctx, __VA_ARGS__);
#define TracyCZoneColor(ctx, color) ((void)(ctx));
#define TracyCZoneValue(ctx, value) ___tracy_emit_zone_value(ctx, value);

#define TracyCAlloc(ptr, size) kymo__pool_alloc(NULL, ptr, size)
#define TracyCFree(ptr) kymo__pool_free(NULL, ptr)
#define TracyCMemoryDiscard(name) kymo__pool_discard(name);
#define TracyCSecureAlloc(ptr, size) TracyCAlloc(ptr, size)
#define TracyCSecureFree(ptr) TracyCFree(ptr)
#define TracyCAllocN(ptr, size, name) kymo__pool_alloc(name, ptr, size)
#define TracyCFreeN(ptr, name) kymo__pool_free(name, ptr)
#define TracyCSecureAllocN(ptr, size, name) TracyCAllocN(ptr, size, name)
#define TracyCSecureFreeN(ptr, name) TracyCFreeN(ptr, name)
#define TracyCAllocS(ptr, size, depth) TracyCAlloc(ptr, size)
#define TracyCFreeS(ptr, depth) TracyCFree(ptr)
#define TracyCSecureAllocS(ptr, size, depth) TracyCAlloc(ptr, size)
#define TracyCSecureFreeS(ptr, depth) TracyCFree(ptr)
#define TracyCMemoryDiscardS(name, depth) kymo__pool_discard(name);
#define TracyCAllocNS(ptr, size, depth, name) TracyCAllocN(ptr, size, name)
#define TracyCFreeNS(ptr, depth, name) TracyCFreeN(ptr, name)
#define TracyCSecureAllocNS(ptr, size, depth, name) TracyCAllocN(ptr, size, name)
#define TracyCSecureFreeNS(ptr, depth, name) TracyCFreeN(ptr, name)

#define TracyCFrameMark ___tracy_emit_frame_mark(NULL);
#define TracyCFrameMarkNamed(name) ___tracy_emit_frame_mark(name);
#define TracyCFrameMarkStart(name) ___tracy_emit_frame_mark_start(name);
#define TracyCFrameMarkEnd(name) ___tracy_emit_frame_mark_end(name);
#define TracyCFrameImage(image, width, height, offset, flip) ((void)(image));

#define TracyCPlot(name, value) ___tracy_emit_plot(name, value);
#define TracyCPlotF(name, value) ___tracy_emit_plot_float(name, value);
#define TracyCPlotI(name, value) ___tracy_emit_plot_int(name, value);
#define TracyCPlotConfig(name, ...) ((void)(name));

#define TracyCMessage(text, size) ___tracy_emit_message(text, size, 0)
#define TracyCMessageL(text) ___tracy_emit_messageL(text, 0)
#define TracyCMessageC(text, size, color) ___tracy_emit_message(text, size, 0)
#define TracyCMessageLC(text, color) ___tracy_emit_messageL(text, 0)
#define TracyCMessageS(text, size, depth) ___tracy_emit_message(text, size, depth)
#define TracyCMessageLS(text, depth) ___tracy_emit_messageL(text, depth)
#define TracyCMessageCS(text, size, color, depth) ___tracy_emit_message(text, size, depth)
#define TracyCMessageLCS(text, color, depth) ___tracy_emit_messageL(text, depth)
#define TracyCAppInfo(text, size) ___tracy_emit_message_appinfo(text, size);

#define TracyCSetThreadName(name) ___tracy_set_thread_name(name);
#define TracyCFiberEnter(fiber) ((void)(fiber))
#define TracyCFiberLeave ((void)0)
#define TracyCIsConnected ___tracy_connected()
#define TracyCIsStarted ___tracy_profiler_started()

#endif

#endif
