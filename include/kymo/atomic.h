/*
 * Atomic operations whose names carry the memory order: kymo__load_acquire(&head). The only place
 * that names the compiler's builtins. GNU C, C11 and C++ alike; every operand is a plain scalar,
 * not an _Atomic one.
 *
 * kymo__cas_ORDER(p, &old, new) is a strong compare-and-swap with relaxed order on failure; a
 * second order, as in kymo__cas_release_acquire, is that of a failure. kymo__cas_weak_… may fail
 * without a reason: for loops.
 */
#ifndef KYMO_ATOMIC_H
#define KYMO_ATOMIC_H

#define kymo__load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define kymo__load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define kymo__load_seq_cst(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)

#define kymo__store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define kymo__store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define kymo__store_seq_cst(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

#define kymo__exchange_acq_rel(p, v) __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL)
#define kymo__exchange_acquire(p, v) __atomic_exchange_n(p, v, __ATOMIC_ACQUIRE)
#define kymo__exchange_relaxed(p, v) __atomic_exchange_n(p, v, __ATOMIC_RELAXED)

#define kymo__fetch_add_relaxed(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define kymo__fetch_add_release(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELEASE)
#define kymo__fetch_add_seq_cst(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)

#define kymo__fetch_sub_relaxed(p, v) __atomic_fetch_sub(p, v, __ATOMIC_RELAXED)
#define kymo__fetch_sub_release(p, v) __atomic_fetch_sub(p, v, __ATOMIC_RELEASE)
#define kymo__fetch_sub_seq_cst(p, v) __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST)

#define kymo__fetch_or_relaxed(p, v) __atomic_fetch_or(p, v, __ATOMIC_RELAXED)
#define kymo__fetch_or_release(p, v) __atomic_fetch_or(p, v, __ATOMIC_RELEASE)

#define kymo__fetch_and_release(p, v) __atomic_fetch_and(p, v, __ATOMIC_RELEASE)

#define kymo__add_fetch_relaxed(p, v) __atomic_add_fetch(p, v, __ATOMIC_RELAXED)
#define kymo__add_fetch_seq_cst(p, v) __atomic_add_fetch(p, v, __ATOMIC_SEQ_CST)

#define kymo__or_fetch_relaxed(p, v) __atomic_or_fetch(p, v, __ATOMIC_RELAXED)

#define kymo__cas_acq_rel(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
#define kymo__cas_acq_rel_acquire(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define kymo__cas_acquire(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
#define kymo__cas_acquire_acquire(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)
#define kymo__cas_relaxed(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define kymo__cas_release(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
#define kymo__cas_weak_acquire_acquire(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 1, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)
#define kymo__cas_weak_relaxed(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define kymo__cas_weak_release(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
#define kymo__cas_weak_release_acquire(p, old, new) \
	__atomic_compare_exchange_n(p, old, new, 1, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)

#define kymo__fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define kymo__fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#define kymo__fence_seq_cst() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#endif
