/*
 * Code that is marked for Tracy, and has never heard of kymo. Without TRACY_ENABLE the marks are
 * nothing; with it the program records by itself:
 *
 *	make build ENABLE_TRACY=1
 *	build/examples/marked
 *	build/kymo query "SELECT name, count, total_ns FROM trace.regions"
 *	build/kymo query "SELECT step, duration_ns FROM trace.steps WHERE name = 'frame'"
 */
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <tracy/Tracy.hpp>

static TracyLockable(std::mutex, total_lock);
static double total;

static double simulate(int particles)
{
	ZoneScoped;
	ZoneValue(particles);
	double energy = 0;

	for (int i = 1; i <= particles; i++)
		energy += 1.0 / ((double)i * i);
	return energy;
}

static void worker(int number)
{
	const std::string name = "worker " + std::to_string(number);
	tracy::SetThreadName(name.c_str());
	ZoneScopedN("worker");
	ZoneText(name.c_str(), name.size());
	for (int i = 0; i < 50; i++) {
		double energy = simulate(2000 * (number + 1));
		std::lock_guard<LockableBase(std::mutex)> lock(total_lock);

		total += energy;
	}
}

int main()
{
	TracyMessageL("the frames begin");
	for (int frame = 0; frame < 10; frame++) {
		ZoneScopedNC("frame", 0x4080ff);
		std::vector<std::thread> threads;

		for (int i = 0; i < 2; i++)
			threads.emplace_back(worker, i);
		for (std::thread &thread : threads)
			thread.join();
		TracyPlot("total", total);
		FrameMark;
	}
	printf("%.2f\n", total);
	return 0;
}
