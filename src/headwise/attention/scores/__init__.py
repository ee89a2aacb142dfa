"""The attention scores, one file each. A score is a function that compares a query with a key; this
is the first of the three steps of attention.

    dot         q · k                           Luong et al. 2015; large for long vectors
    scaled_dot  q · k / √dim                    Vaswani et al. 2017; variance one whatever the dim
    additive    w_v · tanh(W_q q + W_k k)       Bahdanau et al. 2015; q and k may differ in width
    concat      v · tanh(W [q; k])              Luong et al. 2015: one matrix [W_q W_k]
    bilinear    q · W k                         Luong et al. 2015; starts as scaled_dot
    cosine      scale · q · k / (|q| |k|)       Graves et al. 2014; learned scale
    location    (W q)_j                         Luong et al. 2015: the query alone scores position j
    gaussian    −|q − k|² / (2 width²)          Nadaraya & Watson 1964; with width⁴ = dim it is
                                                scaled_dot − |k|²/(2√dim) + a constant per query

A score is a function of (q, k) with any leading axes, so that heads and recurrent decoders use the
same one. The weights of a learned score are shared by all heads, because each head has its own
projections of q and k already. Scores are computed in float32 at least, from numbers bounded by
1e15, so that half precision and huge values stay finite.

Tested against: the formulas looped over single pairs in double precision, finite differences,
numbers worked by hand.
"""
