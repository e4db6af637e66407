/* Lambdas, callables and a coroutine that moves between threads. */
#include <kymo/kymo.h>

#include <coroutine>
#include <functional>
#include <thread>

namespace
{
struct task {
	struct promise_type {
		task get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
		}
	};
	std::coroutine_handle<promise_type> handle;
};

task request()
{
	KYMO_COROUTINE("request");

	co_await std::suspend_always();
}

int first_half(int n)
{
	auto half = [](int of) {
		KYMO_LAMBDA();
		return of / 2;
	};
	return half(n);
}
} // namespace

int main()
{
	kymo_thread_name("main");
	auto add = KYMO_WRAP("add", [sum = 0](int n) mutable { return sum += n; });
	std::function<int(int)> call = add;
	task one = request();

	one.handle.resume();
	std::thread([&] {
		KYMO_SCOPE("other thread");
		one.handle.resume(); /* the coroutine ends here */
	}).join();
	one.handle.destroy();
	std::thread(KYMO_WRAP("worker", [] {})).join();
	return call(1) + call(1) + add(5) == 1 + 2 + 5 && first_half(4) == 2 ? 0 : 1;
}
