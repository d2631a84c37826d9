"""What closing layers costs: one by one, in pairs, one after the other, at random, and in another order.

`_lesions` computes single, paired and greedy lesions, and `_random_changes` random ones; `_usage` counts the layers
that are used. `_replay` reuses what comes before a closed layer, and `_paired` has the intervals.
"""
