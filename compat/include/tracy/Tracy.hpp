/*
 * Tracy's marks for C++11 and later, recorded by kymo. With TRACY_ENABLE the marks are active (link
 * -lkymo) and the program records by itself; without it they compile to nothing. docs/cpp.md
 * describes each mark.
 */
#ifndef KYMO_TRACY_HPP
#define KYMO_TRACY_HPP

#if !defined(TRACY_ENABLE) || defined(KYMO_DISABLE)

#define ZoneNamed(var, active)
#define ZoneNamedN(var, name, active)
#define ZoneNamedC(var, color, active)
#define ZoneNamedNC(var, name, color, active)
#define ZoneNamedS(var, depth, active)
#define ZoneNamedNS(var, name, depth, active)
#define ZoneNamedCS(var, color, depth, active)
#define ZoneNamedNCS(var, name, color, depth, active)
#define ZoneTransient(var, active)
#define ZoneTransientN(var, name, active)
#define ZoneTransientNC(var, name, color, active)
#define ZoneTransientS(var, depth, active)
#define ZoneTransientNS(var, name, depth, active)
#define ZoneTransientNCS(var, name, color, depth, active)
#define ZoneScoped
#define ZoneScopedN(name)
#define ZoneScopedC(color)
#define ZoneScopedNC(name, color)
#define ZoneScopedS(depth)
#define ZoneScopedNS(name, depth)
#define ZoneScopedCS(color, depth)
#define ZoneScopedNCS(name, color, depth)
#define ZoneText(text, size)
#define ZoneTextV(var, text, size)
#define ZoneTextF(...)
#define ZoneTextVF(var, ...)
#define ZoneName(text, size)
#define ZoneNameV(var, text, size)
#define ZoneNameF(...)
#define ZoneNameVF(var, ...)
#define ZoneColor(color)
#define ZoneColorV(var, color)
#define ZoneValue(value)
#define ZoneValueV(var, value)
#define ZoneIsActive false
#define ZoneIsActiveV(var) false

#define FrameMark
#define FrameMarkNamed(name)
#define FrameMarkStart(name)
#define FrameMarkEnd(name)
#define FrameImage(image, width, height, offset, flip)

#define TracyLockable(type, var) type var
#define TracyLockableN(type, var, about) type var
#define TracySharedLockable(type, var) type var
#define TracySharedLockableN(type, var, about) type var
#define LockableBase(type) type
#define SharedLockableBase(type) type
#define LockMark(var) ((void)(var))
#define LockableName(var, text, size)

#define TracyPlot(name, value)
#define TracyPlotConfig(name, ...)
#define TracyMessage(text, size)
#define TracyMessageL(text)
#define TracyMessageC(text, size, color)
#define TracyMessageLC(text, color)
#define TracyMessageS(text, size, depth)
#define TracyMessageLS(text, depth)
#define TracyMessageCS(text, size, color, depth)
#define TracyMessageLCS(text, color, depth)
#define TracyAppInfo(text, size)

#define TracyAlloc(ptr, size)
#define TracyFree(ptr)
#define TracySecureAlloc(ptr, size)
#define TracySecureFree(ptr)
#define TracyMemoryDiscard(name)
#define TracyAllocN(ptr, size, name)
#define TracyFreeN(ptr, name)
#define TracySecureAllocN(ptr, size, name)
#define TracySecureFreeN(ptr, name)
#define TracyAllocS(ptr, size, depth)
#define TracyFreeS(ptr, depth)
#define TracySecureAllocS(ptr, size, depth)
#define TracySecureFreeS(ptr, depth)
#define TracyAllocNS(ptr, size, depth, name)
#define TracyFreeNS(ptr, depth, name)
#define TracySecureAllocNS(ptr, size, depth, name)
#define TracySecureFreeNS(ptr, depth, name)

#define TracySourceCallbackRegister(callback, data)
#define TracyParameterRegister(...)
#define TracyParameterSetup(index, name, is_bool, value)
#define TracyIsConnected false
#define TracyIsStarted false
#define TracySetProgramName(name)
#define TracyFiberEnter(fiber)
#define TracyFiberEnterHint(fiber, hint)
#define TracyFiberLeave
#define TracyNoop

namespace tracy
{
inline void SetThreadName(const char *)
{
}
inline void SetThreadNameWithHint(const char *, int)
{
}
} // namespace tracy

#else

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <kymo/atomic.h>

#include "TracyKymo.h"

namespace tracy
{

struct SourceLocationData {
	const char *name;
	const char *function;
	const char *file;
	uint32_t line;
	uint32_t color;
};

enum class PlotFormatType : uint8_t { Number, Memory, Percentage, Watt };

inline void SetThreadName(const char *name)
{
	kymo_thread_name(name);
}

inline void SetThreadNameWithHint(const char *name, int)
{
	kymo_thread_name(name);
}

inline void StartupProfiler()
{
	kymo__enable_once();
}

inline void ShutdownProfiler()
{
	kymo_disable();
}

inline bool IsProfilerStarted()
{
	return kymo_enabled();
}

/* For marks without a counterpart: evaluates and uses their arguments. */
template <typename... Any> inline void Ignore(const Any &...)
{
}

inline void Message(const char *text, size_t bytes)
{
	kymo__tracy_message(text, bytes);
}

inline void Message(const char *text)
{
	kymo__tracy_message(text, kymo__tracy_length(text));
}

/* A zone that ends with its scope, also by an exception. */
class ScopedZone
{
      public:
	ScopedZone(kymo_site *site, bool active)
		: zone_(kymo__tracy_begin(site, active)), file_(site->file), line_(site->line)
	{
	}
	explicit ScopedZone(const SourceLocationData *place, bool active = true)
		: ScopedZone(place->line, place->file, kymo__tracy_length(place->file),
			     place->function, kymo__tracy_length(place->function), place->name,
			     kymo__tracy_length(place->name), active)
	{
		file_ = place->file; /* static storage */
	}
	ScopedZone(const SourceLocationData *place, int depth, bool active)
		: ScopedZone(place, active)
	{
		(void)depth;
	}
	/* Place and name are created at run time and may be freed: such a zone keeps its line but
	   loses its file when renamed. */
	ScopedZone(uint32_t line, const char *file, size_t file_bytes, const char *function,
		   size_t function_bytes, const char *name, size_t name_bytes, bool active = true)
		: zone_(kymo__tracy_begin_named(name && name_bytes ? name : function,
						name && name_bytes ? name_bytes : function_bytes,
						file, file_bytes, line, active)),
		  file_(nullptr), line_(line)
	{
	}
	~ScopedZone()
	{
		kymo__zone_end_renamed(&zone_);
	}
	ScopedZone(const ScopedZone &) = delete;
	ScopedZone(ScopedZone &&) = delete;
	ScopedZone &operator=(const ScopedZone &) = delete;
	ScopedZone &operator=(ScopedZone &&) = delete;

	void Text(const char *text, size_t bytes)
	{
		kymo_zone_text_of(&zone_, text, bytes);
	}
	void Name(const char *text, size_t bytes)
	{
		kymo__tracy_rename(&zone_, file_, line_, text, bytes);
	}
	void Value(uint64_t value)
	{
		kymo_zone_value_of(&zone_, value);
	}
	void Color(uint32_t)
	{
	}
	bool IsActive() const
	{
		return zone_.lane != nullptr;
	}

	/* Formatted texts are truncated to 1,023 bytes. */
	__attribute__((format(printf, 2, 3))) void TextFmt(const char *format, ...)
	{
		char text[1024];
		va_list list;

		if (!IsActive())
			return;
		va_start(list, format);
		vsnprintf(text, sizeof(text), format, list);
		va_end(list);
		Text(text, strlen(text));
	}
	__attribute__((format(printf, 2, 3))) void NameFmt(const char *format, ...)
	{
		char text[1024];
		va_list list;

		if (!IsActive())
			return;
		va_start(list, format);
		vsnprintf(text, sizeof(text), format, list);
		va_end(list);
		Name(text, strlen(text));
	}

      private:
	kymo_zone zone_;
	const char *file_;
	uint32_t line_;
};

/* A lock whose waits are zones. A free lock costs one try and no row. */
template <class T> class Lockable
{
      public:
	explicit Lockable(kymo_site *site) : site_(site), name_(0)
	{
	}
	Lockable(const Lockable &) = delete;
	Lockable &operator=(const Lockable &) = delete;

	void lock()
	{
		if (!kymo_enabled()) {
			lock_.lock();
		} else if (!lock_.try_lock()) {
			Wait wait(*this);
			lock_.lock();
		}
	}
	void unlock()
	{
		lock_.unlock();
	}
	bool try_lock()
	{
		return lock_.try_lock();
	}
	void Mark(const SourceLocationData *)
	{
	}
	/* Renames its later waits. */
	void CustomName(const char *text, size_t bytes)
	{
		char name[256];
		int length = snprintf(name, sizeof(name), "wait for %.*s",
				      static_cast<int>(bytes < 200 ? bytes : 200), text);

		kymo__store_relaxed(
			&name_, kymo_name_full(name, length > 0 ? static_cast<size_t>(length) : 0,
					       site_->file, strlen(site_->file), site_->line,
					       KYMO_SOURCE_C, 0));
	}

      protected:
	class Wait
	{
	      public:
		explicit Wait(const Lockable &of)
		{
			uint32_t name = kymo__load_relaxed(&of.name_);

			zone_ = name ? kymo_zone_begin_id(name) : kymo_zone_begin(of.site_);
		}
		~Wait()
		{
			kymo_zone_end(&zone_);
		}
		Wait(const Wait &) = delete;
		Wait &operator=(const Wait &) = delete;

	      private:
		kymo_zone zone_;
	};

	T lock_;

      private:
	kymo_site *site_;
	uint32_t name_; /* 0: the site's */
};

template <class T> class SharedLockable : public Lockable<T>
{
      public:
	explicit SharedLockable(kymo_site *site) : Lockable<T>(site)
	{
	}
	void lock_shared()
	{
		if (!kymo_enabled()) {
			this->lock_.lock_shared();
		} else if (!this->lock_.try_lock_shared()) {
			typename Lockable<T>::Wait wait(*this);
			this->lock_.lock_shared();
		}
	}
	void unlock_shared()
	{
		this->lock_.unlock_shared();
	}
	bool try_lock_shared()
	{
		return this->lock_.try_lock_shared();
	}
};

} // namespace tracy

#define KYMO__TRACY_ZONE(var, text, active) \
	static kymo_site TracyConcat(kymo__tracy_site_of_, \
				     var) = { text, TracyFile, static_cast<uint32_t>(TracyLine), \
					      0 }; \
	::tracy::ScopedZone var(&TracyConcat(kymo__tracy_site_of_, var), active)

/* The preprocessor drops the color, so it may be any of Tracy's. */
#define ZoneNamed(var, active) KYMO__TRACY_ZONE(var, TracyFunction, active)
#define ZoneNamedN(var, name, active) KYMO__TRACY_ZONE(var, name, active)
#define ZoneNamedC(var, color, active) KYMO__TRACY_ZONE(var, TracyFunction, active)
#define ZoneNamedNC(var, name, color, active) KYMO__TRACY_ZONE(var, name, active)
#define ZoneNamedS(var, depth, active) KYMO__TRACY_ZONE(var, TracyFunction, active)
#define ZoneNamedNS(var, name, depth, active) KYMO__TRACY_ZONE(var, name, active)
#define ZoneNamedCS(var, color, depth, active) KYMO__TRACY_ZONE(var, TracyFunction, active)
#define ZoneNamedNCS(var, name, color, depth, active) KYMO__TRACY_ZONE(var, name, active)

#define ZoneTransient(var, active) KYMO__TRACY_ZONE(var, TracyFunction, active)
#define ZoneTransientN(var, name, active) \
	::tracy::ScopedZone var(TracyLine, TracyFile, strlen(TracyFile), TracyFunction, \
				strlen(TracyFunction), name, kymo__tracy_length(name), active)
#define ZoneTransientNC(var, name, color, active) ZoneTransientN(var, name, active)
#define ZoneTransientS(var, depth, active) ZoneTransient(var, active)
#define ZoneTransientNS(var, name, depth, active) ZoneTransientN(var, name, active)
#define ZoneTransientNCS(var, name, color, depth, active) ZoneTransientN(var, name, active)

#define ZoneScoped ZoneNamed(___tracy_scoped_zone, true)
#define ZoneScopedN(name) ZoneNamedN(___tracy_scoped_zone, name, true)
#define ZoneScopedC(color) ZoneNamed(___tracy_scoped_zone, true)
#define ZoneScopedNC(name, color) ZoneNamedN(___tracy_scoped_zone, name, true)
#define ZoneScopedS(depth) ZoneNamed(___tracy_scoped_zone, true)
#define ZoneScopedNS(name, depth) ZoneNamedN(___tracy_scoped_zone, name, true)
#define ZoneScopedCS(color, depth) ZoneNamed(___tracy_scoped_zone, true)
#define ZoneScopedNCS(name, color, depth) ZoneNamedN(___tracy_scoped_zone, name, true)

#define ZoneText(text, size) ___tracy_scoped_zone.Text(text, size)
#define ZoneTextV(var, text, size) var.Text(text, size)
#define ZoneTextF(...) ___tracy_scoped_zone.TextFmt(__VA_ARGS__)
#define ZoneTextVF(var, ...) var.TextFmt(__VA_ARGS__)
#define ZoneName(text, size) ___tracy_scoped_zone.Name(text, size)
#define ZoneNameV(var, text, size) var.Name(text, size)
#define ZoneNameF(...) ___tracy_scoped_zone.NameFmt(__VA_ARGS__)
#define ZoneNameVF(var, ...) var.NameFmt(__VA_ARGS__)
#define ZoneColor(color) ((void)___tracy_scoped_zone)
#define ZoneColorV(var, color) ((void)(var))
#define ZoneValue(value) ___tracy_scoped_zone.Value(value)
#define ZoneValueV(var, value) var.Value(value)
#define ZoneIsActive ___tracy_scoped_zone.IsActive()
#define ZoneIsActiveV(var) var.IsActive()

#define FrameMark kymo_step(kymo__tracy_frame(nullptr))
#define FrameMarkNamed(name) kymo_step(kymo__tracy_frame(name))
#define FrameMarkStart(name) kymo_step(kymo__tracy_frame(name))
#define FrameMarkEnd(name) kymo_step_end(kymo__tracy_frame(name))
#define FrameImage(image, width, height, offset, flip) \
	::tracy::Ignore(image, width, height, offset, flip)

#define KYMO__TRACY_LOCK(kind, type, var, about) \
	::tracy::kind<type> var \
	{ \
		[]() -> kymo_site * { \
			static kymo_site site = { "wait for " about, __FILE__, __LINE__, 0 }; \
			return &site; \
		}() \
	}
#define TracyLockable(type, var) KYMO__TRACY_LOCK(Lockable, type, var, #var)
#define TracyLockableN(type, var, about) KYMO__TRACY_LOCK(Lockable, type, var, about)
#define TracySharedLockable(type, var) KYMO__TRACY_LOCK(SharedLockable, type, var, #var)
#define TracySharedLockableN(type, var, about) KYMO__TRACY_LOCK(SharedLockable, type, var, about)
#define LockableBase(type) ::tracy::Lockable<type>
#define SharedLockableBase(type) ::tracy::SharedLockable<type>
#define LockMark(var) ((void)(var))
#define LockableName(var, text, size) var.CustomName(text, size)

#define TracyPlot(name, value) kymo_counter(name, static_cast<double>(value))
#define TracyPlotConfig(...) ::tracy::Ignore(__VA_ARGS__)

#define TracyMessage(text, size) ::tracy::Message(text, size)
#define TracyMessageL(text) ::tracy::Message(text)
#define TracyMessageC(text, size, color) ::tracy::Message(text, size)
#define TracyMessageLC(text, color) ::tracy::Message(text)
#define TracyMessageS(text, size, depth) ::tracy::Message(text, size)
#define TracyMessageLS(text, depth) ::tracy::Message(text)
#define TracyMessageCS(text, size, color, depth) ::tracy::Message(text, size)
#define TracyMessageLCS(text, color, depth) ::tracy::Message(text)
#define TracyAppInfo(text, size) kymo__mark_bytes("app info", text, size)
#define TracySetProgramName(name) kymo__mark_bytes("program name", name, kymo__tracy_length(name))

#define TracyAlloc(ptr, size) kymo__pool_alloc(nullptr, ptr, size)
#define TracyFree(ptr) kymo__pool_free(nullptr, ptr)
#define TracySecureAlloc(ptr, size) kymo__pool_alloc(nullptr, ptr, size)
#define TracySecureFree(ptr) kymo__pool_free(nullptr, ptr)
#define TracyMemoryDiscard(name) kymo__pool_discard(name)
#define TracyAllocN(ptr, size, name) kymo__pool_alloc(name, ptr, size)
#define TracyFreeN(ptr, name) kymo__pool_free(name, ptr)
#define TracySecureAllocN(ptr, size, name) kymo__pool_alloc(name, ptr, size)
#define TracySecureFreeN(ptr, name) kymo__pool_free(name, ptr)
#define TracyAllocS(ptr, size, depth) kymo__pool_alloc(nullptr, ptr, size)
#define TracyFreeS(ptr, depth) kymo__pool_free(nullptr, ptr)
#define TracySecureAllocS(ptr, size, depth) kymo__pool_alloc(nullptr, ptr, size)
#define TracySecureFreeS(ptr, depth) kymo__pool_free(nullptr, ptr)
#define TracyAllocNS(ptr, size, depth, name) kymo__pool_alloc(name, ptr, size)
#define TracyFreeNS(ptr, depth, name) kymo__pool_free(name, ptr)
#define TracySecureAllocNS(ptr, size, depth, name) kymo__pool_alloc(name, ptr, size)
#define TracySecureFreeNS(ptr, depth, name) kymo__pool_free(name, ptr)

#define TracySourceCallbackRegister(callback, data) ::tracy::Ignore(callback, data)
#define TracyParameterRegister(...) ::tracy::Ignore(__VA_ARGS__)
#define TracyParameterSetup(index, name, is_bool, value) \
	::tracy::Ignore(index, name, is_bool, value)
#define TracyIsConnected kymo_enabled()
#define TracyIsStarted kymo_enabled()
#define TracyFiberEnter(fiber) ::tracy::Ignore(fiber)
#define TracyFiberEnterHint(fiber, hint) ::tracy::Ignore(fiber, hint)
#define TracyFiberLeave ((void)0)
#define TracyNoop ((void)0)

#endif

#endif
