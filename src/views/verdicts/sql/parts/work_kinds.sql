-- What the code below a place does, by kind: the words of each, what to try, and its part of the
-- weight. Of rows with stack (innermost first), place and weight. A stack without a place counts as
-- a whole: native stacks of Python threads often lack it. The kind of a stack is that of the first
-- frame below the place that has one: what the function itself calls, not what the library calls in
-- turn. pandas calls the function of apply(), so that it is looked for above the place. Names of C
-- functions are those of the symbol table: where the interpreter is stripped, they have no kind.
-- What torch does around the arithmetic of an operation (arguments, dispatch, allocation) is a kind
-- of its own: with large tensors it is a small part.
(
    SELECT kind.words AS words, kind.advice AS advice, sum(weight) / any_value(whole) AS share
    FROM (
        SELECT
            CASE
                WHEN contains(array_to_string(stack, ';'), '/pandas/core/apply.py:')
                    THEN struct_pack(
                        words := 'pandas apply',
                        advice := 'use operations on whole columns instead of apply() on each row'
                    )
                WHEN {include small_torch}
                    THEN struct_pack(
                        words := 'small torch operations',
                        advice := 'use operations on whole tensors instead of loops over items; '
                            || 'larger batches, torch.compile'
                    )
                ELSE list_filter(
                    list_transform(
                        list_reverse(
                            stack[1:coalesce(list_position(stack, place), len(stack)) - 1]
                        ),
                        lambda f: {include work_kind}
                    ),
                    lambda k: k IS NOT NULL
                )[1]
            END AS kind,
            weight,
            sum(weight) OVER () AS whole
        FROM (
            SELECT stack, place, sum(weight) AS weight
            FROM {from}
            GROUP BY stack, place
        )
    )
    WHERE kind IS NOT NULL
    GROUP BY kind
)
