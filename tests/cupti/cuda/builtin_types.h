/* Nothing: CUPTI's headers need none of its types. */
