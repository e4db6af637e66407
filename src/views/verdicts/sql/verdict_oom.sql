-- Whether memory ran out in the program's control group: the limit, the highest use that was
-- sampled, and the number of processes that the kernel killed there during the run. Without that
-- number, a group at its limit.
SELECT
    max(memory_limit_bytes),
    max(memory_bytes),
    max(oom_kills) - min(oom_kills) AS kills
FROM host.cgroup
GROUP BY path
HAVING kills > 0 OR max(memory_bytes) >= 0.97 * max(memory_limit_bytes)
ORDER BY kills DESC, 2 DESC
LIMIT 1
