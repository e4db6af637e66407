/* Marked for Tracy with every macro that kymo knows; written as such programs are, with nothing of
   kymo in it. */
#include <tracy/Tracy.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#if __cplusplus >= 201703L
#include <shared_mutex>
#endif
#include <stdexcept>
#include <string>
#include <thread>

static volatile double sink;

static void spin(int rounds)
{
	for (int i = 1; i <= rounds; i++)
		sink = sink + 1.0 / i;
}

static void scoped()
{
	ZoneScoped;
	ZoneText("first part", 10);
	ZoneValue(4711);
	ZoneColor(0xff0000);
	spin(10);
}

static void scoped_named()
{
	ZoneScopedN("a name");
	{
		ZoneScopedC(tracy::Color::Red);
		spin(1);
	}
	{
		ZoneScopedNC("a colored name", tracy::Color::Green4);
		spin(1);
	}
	{
		ZoneScopedS(10);
		spin(1);
	}
	{
		ZoneScopedNS("with a stack", 10);
		spin(1);
	}
	{
		ZoneScopedCS(0x00ff00, 10);
		spin(1);
	}
	{
		ZoneScopedNCS("all of it", 0x00ff00, 10);
		spin(1);
	}
}

static void named(bool active)
{
	(void)active;
	ZoneNamed(outer, true);
	ZoneNamedN(inner, "named inner", active);
	ZoneTextV(outer, "of the outer", 12);
	ZoneValueV(outer, 12);
	ZoneColorV(inner, 0xff);
	if (ZoneIsActiveV(inner))
		spin(5);
	ZoneNamedC(colored, 0xff, true);
	ZoneNamedNC(colored_name, "named colored", 0xff, true);
	ZoneNamedS(stack, 5, true);
	ZoneNamedNS(stack_name, "named stack", 5, true);
	ZoneNamedCS(stack_color, 0xff, 5, true);
	ZoneNamedNCS(stack_all, "named all", 0xff, 5, true);
	spin(1);
}

static void renamed(int number)
{
	ZoneScopedN("before");
	const std::string name = "after " + std::to_string(number);
	ZoneName(name.c_str(), name.size());
	spin(1);
}

static void formatted(int number)
{
	(void)number;
	ZoneScoped;
	ZoneTextF("number %d", number);
	ZoneNameF("formatted %d", number);
	ZoneNamedN(inside, "to be renamed", true);
	ZoneNameV(inside, "renamed too", 11);
	ZoneTextVF(inside, "%s", "v");
	ZoneNameVF(inside, "renamed %s", "thrice");
	spin(1);
}

static void transient(const char *name)
{
	(void)name;
	ZoneTransient(plain, true);
	ZoneTransientN(given, name, true);
	ZoneTransientNC(given_color, name, 0xff, true);
	ZoneTransientS(plain_stack, 4, true);
	ZoneTransientNS(given_stack, name, 4, true);
	spin(1);
}

static void thrown()
{
	ZoneScoped;
	throw std::runtime_error("caught");
}

static void recursive(int depth)
{
	ZoneScoped;
	if (depth > 1)
		recursive(depth - 1);
}

template <typename T> static T templated(T value)
{
	ZoneScopedN("templated");
	return value + 1;
}

static void messages()
{
	char text[] = { 'n', 'o', ' ', 'N', 'U', 'L' };
	TracyMessage(text, sizeof(text));
	TracyMessageL("a literal");
	TracyMessageC(text, 2, 0xff0000);
	TracyMessageLC("a colored literal", 0xff0000);
	TracyMessageS("ss", 2, 8);
	TracyMessageLS("with a stack", 8);
	TracyMessageCS("cs", 2, 0xff, 8);
	TracyMessageLCS("with all", 0xff, 8);
	TracyAppInfo("version 7", 9);
	TracySetProgramName("marked");
	sink = sink + text[0];
}

static void plots()
{
	TracyPlotConfig("queue", tracy::PlotFormatType::Number, true, true, 0);
	for (int i = 0; i < 10; i++) {
		TracyPlot("queue", (int64_t)i);
		TracyPlot("load", i * 0.5);
		TracyPlot("share", (float)i);
	}
}

static void memory()
{
	void *a = malloc(100), *b = malloc(200), *c = malloc(50);
	TracyAlloc(a, 100);
	TracyAllocN(b, 200, "arena");
	TracyAllocS(c, 50, 4);
	TracyFreeS(c, 4);
	TracyFreeN(b, "arena");
	TracyFree(a);
	TracyAllocNS(b, 70, 4, "arena");
	TracyMemoryDiscard("arena");
	free(a);
	free(b);
	free(c);
}

struct account {
	TracyLockable(std::mutex, balance_lock);
#if __cplusplus >= 201703L
	TracySharedLockableN(std::shared_mutex, readers, "the readers");
#endif
	int balance = 0;
};
static TracyLockableN(std::mutex, global_lock, "the global lock");
static account shared_account;

/* Holds the lock until the other thread is known to be at it, so that it has to wait. */
static void contend()
{
	std::atomic<int> at{ 0 };
	std::unique_lock<LockableBase(std::mutex)> held(shared_account.balance_lock);
	LockMark(shared_account.balance_lock);
	std::thread other([&at] {
		tracy::SetThreadName("the other thread");
		ZoneScopedN("other");
		at = 1;
		std::lock_guard<LockableBase(std::mutex)> lock(shared_account.balance_lock);
		shared_account.balance++;
	});
	while (!at)
		std::this_thread::yield();
	std::this_thread::sleep_for(std::chrono::milliseconds(50));
	held.unlock();
	other.join();
	{
		std::lock_guard<LockableBase(std::mutex)> free(global_lock);
#if __cplusplus >= 201703L
		std::shared_lock<SharedLockableBase(std::shared_mutex)> read(
			shared_account.readers);
#endif
	}
	LockableName(global_lock, "renamed lock", 12);
}

static void frames()
{
	for (int i = 0; i < 3; i++) {
		ZoneScopedN("in a frame");
		FrameMark;
	}
	for (int i = 0; i < 2; i++) {
		FrameMarkNamed("physics");
	}
	for (int i = 0; i < 4; i++) {
		FrameMarkStart("loading");
		spin(1);
		FrameMarkEnd("loading");
	}
	FrameImage(nullptr, 0, 0, 0, false);
}

int main()
{
	tracy::SetThreadName("the main thread");
	for (int i = 0; i < 100; i++)
		scoped();
	scoped_named();
	named(false);
	renamed(1);
	renamed(2);
	formatted(3);
	transient("made at run time");
	try {
		thrown();
	} catch (const std::exception &) {
		spin(1);
	}
	recursive(100);
	messages();
	plots();
	memory();
	contend();
	frames();
	printf("%d %s\n", templated(1), TracyIsConnected ? "recorded" : "not recorded");
	return templated(0.5) > 1 ? 0 : 1;
}
