/* Allocations of four threads, each freed by another one. */
#include <tracy/Tracy.hpp>

#include <cstdint>
#include <thread>
#include <vector>

static void *at(int thread, int i)
{
	return reinterpret_cast<void *>(static_cast<uintptr_t>(0x10000 + thread * 1000 + i) * 16);
}

int main()
{
	std::vector<std::thread> threads;

	for (int t = 0; t < 4; t++)
		threads.emplace_back([t] {
			for (int i = 0; i < 500; i++)
				TracyAllocN(at(t, i), 10, "shared");
		});
	for (auto &thread : threads)
		thread.join();
	threads.clear();
	for (int t = 0; t < 4; t++)
		threads.emplace_back([t] {
			for (int i = 0; i < 500; i++)
				TracyFreeN(at((t + 1) % 4, i), "shared");
		});
	for (auto &thread : threads)
		thread.join();
	return 0;
}
