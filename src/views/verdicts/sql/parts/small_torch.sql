-- Whether a native stack is in torch, but not in the arithmetic of an operation: innermost are its
-- arguments, its dispatch, the allocation of its result, or the interpreter.
(
    contains(array_to_string(stack, ';'), ' (libtorch_python.so)')
    AND NOT contains(stack[1], 'c10::function_ref<')
    AND regexp_matches(
        stack[1],
        '^(c10::|at::(_ops::|detail::|Tensor|impl::)|at::native::(select|slice|view|empty|result)'
            || '|torch::|pybind11::|THP|_?Py|_init |(drop|take)_gil|_int_|malloc|_mid_memalign'
            || '|operator )'
            || '|^(__GI_|__)?(pthread_|libc_|free|cfree|posix_memalign)'
    )
)
