-- The kind of work of the frame f, and what to try; NULL: none. A package that has no kind of its
-- own is named.
CASE
    WHEN regexp_matches(
        f,
        '/(re/_(compiler|parser)|sre_(compile|parse))\.py:'
            || '|^std::(__cxx11::)?basic_regex<|__detail::_(Compiler|Scanner)<'
    )
        THEN struct_pack(
            words := 'compiling regular expressions',
            advice := 'compile each pattern once, outside of the loop: re.compile(), a static regex'
        )
    WHEN regexp_matches(f, '/(re/[_a-z]+|re)\.py:|^_?sre_|^SRE\(|__detail::_Executor')
        THEN struct_pack(
            words := 'regular expressions',
            advice := 'avoid nested repeats such as (a+)* in the pattern; search a plain text first'
        )
    WHEN regexp_matches(f, '/json/[a-z_]+\.py:|/_json\.c')
        THEN struct_pack(
            words := 'JSON',
            advice := 'read or write each text once and keep it, or use a faster library'
        )
    WHEN regexp_matches(f, '^list_(contains|index|count|remove)(_impl)? \(')
        THEN struct_pack(
            words := 'searches in a list',
            advice := 'use a set or a dict: a search in a list compares item by item'
        )
    WHEN regexp_matches(f, '^(ins1|list_insert|list_pop|list_ass_slice)(_impl)? \(')
        THEN struct_pack(
            words := 'moving list items',
            advice := 'use collections.deque: insert(0, x) and pop(0) move all items of a list'
        )
    WHEN regexp_matches(f, '^(append|insert|delete|hstack|vstack|column_stack) \(.*/numpy/lib/')
        THEN struct_pack(
            words := 'growing arrays',
            advice := 'make the array once and fill it, or collect a list: each call copies all'
        )
    WHEN regexp_matches(f, '^(unicode_concatenate|PyUnicode_Append|PyUnicode_Concat) \(')
        THEN struct_pack(
            words := 'joining strings',
            advice := 'collect the parts in a list and join them once: "".join(parts)'
        )
    WHEN regexp_matches(f, '/copy\.py:')
        THEN struct_pack(
            words := 'copies of objects',
            advice := 'copy less: share what does not change, or copy the outer level only'
        )
    WHEN regexp_matches(f, '/logging/[a-z_]+\.py:')
        THEN struct_pack(
            words := 'logging',
            advice := 'log less in the loop, raise the level, or log through a QueueHandler'
        )
    WHEN regexp_matches(f, '/(pickle|multiprocessing/reduction)\.py:|\(_pickle\.')
        THEN struct_pack(
            words := 'pickling',
            advice := 'pickle less: pass names or indices instead of data, or share memory'
        )
    WHEN regexp_matches(f, '^(_?pysqlite_|sqlite3_)|\(_sqlite3\.|/sqlite3/[a-z_0-9]+\.py:')
        THEN struct_pack(
            words := 'SQLite',
            advice := 'use one transaction for many rows, and executemany()'
        )
    WHEN regexp_matches(f, '/(subprocess|multiprocessing/popen_[a-z_]+)\.py:|^posix_spawn')
        THEN struct_pack(
            words := 'starting processes',
            advice := 'start fewer: give each several items, or do the work in the program'
        )
    WHEN regexp_matches(
        f,
        '^Thread\.(start|__init__) \(.*/threading\.py:|^(__)?pthread_create|^std::thread::thread'
    )
        THEN struct_pack(
            words := 'starting threads',
            advice := 'start a few once and give them many items: ThreadPoolExecutor, a thread pool'
        )
    WHEN regexp_matches(f, '^(__GI_|os_)?(fsync|fdatasync|msync|sync_file_range)(_impl)? \(')
        THEN struct_pack(
            words := 'flushing files to storage',
            advice := 'flush less often: once for many writes, or when the program ends'
        )
    WHEN regexp_matches(f, '/_strptime\.py:')
        THEN struct_pack(
            words := 'parsing dates',
            advice := 'use datetime.fromisoformat(), or parse each distinct text once'
        )
    WHEN regexp_matches(f, '/(gzip|zipfile|bz2|lzma|tarfile)\.py:|^zlib_|\((libz|zlib)\.')
        THEN struct_pack(
            words := 'compression',
            advice := 'use a lower level or a faster codec, or other threads: it releases the GIL'
        )
    WHEN regexp_matches(f, '^(_io_|_Py_(read|write|open)|fileio_|_?buffered|textio)')
        THEN struct_pack(
            words := 'file handling',
            advice := 'keep files open or in memory, pack many into one, read larger pieces'
        )
    WHEN regexp_matches(f, '^_*(libc_|GI_+)?p?(read|write|open|close|lseek|f?stat)(v|at)?(64)? \(')
        THEN struct_pack(
            words := 'system calls on files',
            advice := 'read and write larger pieces, and keep files open'
        )
    WHEN regexp_matches(f, '^(operator\+|std::).*basic_string|^basic_string')
        THEN struct_pack(
            words := 'copies of strings',
            advice := 'append in place (+=, reserve()) instead of making new strings'
        )
    WHEN regexp_matches(f, '^(operator (new|delete)|(__libc_)?(malloc|free|calloc|realloc))\b')
        THEN struct_pack(
            words := 'memory allocation',
            advice := 'allocate less in the loop: reuse buffers, reserve()'
        )
    WHEN regexp_matches(f, '^__mem(cpy|move|set)')
        THEN struct_pack(
            words := 'copies of memory',
            advice := 'copy less: pass references, move, reuse buffers'
        )
    WHEN regexp_matches(f, '/(site|dist)-packages/[A-Za-z]')
        THEN struct_pack(
            words := regexp_extract(f, '/(?:site|dist)-packages/([A-Za-z0-9_]+)', 1),
            advice := NULL::VARCHAR
        )
END
