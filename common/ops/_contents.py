"""Where each op and each public function is defined, so that a program loads those that it uses.

Written by `python -m tests.helpers.ops_page`.
"""

#: Per module of this package: its public functions, and its ops.
CONTENTS = {
    "basic_keys": "",
    "create.by_strides": "empty_permuted empty_strided |",
    "create.creation": "| arange eye full",
    "create.like": "empty_like fill full_like ones_like zeros_like |",
    "create.one_hot": "one_hot | one_hot",
    "create.signal_windows": "",
    "create.spaced": "",
    "image.adaptive": "",
    "image.conv": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d |",
    "image.convolution":
        "| conv conv_bias conv_bias_panels conv_input conv_input_panels conv_panels conv_weight conv_weight_panels",
    "image.fold": "fold unfold |",
    "image.geometry": "",
    "image.grid": "affine_grid grid_sample grid_sampler grid_sampler_2d grid_sampler_3d |",
    "image.grid_samples": "| grid_sampled",
    "image.instance_norm": "instance_norm local_response_norm |",
    "image.interpolation": "interpolate upsample upsample_bilinear upsample_nearest |",
    "image.pool":
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d max_pool1d max_pool2d "
        "max_pool3d max_unpool1d max_unpool2d max_unpool3d |",
    "image.pooling": "| unpool",
    "image.shuffle":
        "channel_shuffle pixel_shuffle pixel_unshuffle | pixel_shuffle pixel_unshuffle",
    "image.windows":
        "| columns from_columns window_add window_amax window_max window_put window_sum",
    "index.advanced_keys": "",
    "index.bags": "embedding_bag |",
    "index.coordinates":
        "| index_add1 index_add2 index_add3 index_clear1 index_clear2 index_clear3 index_get1 index_get2 index_get3 "
        "index_last1 index_last2 index_last3 index_max1 index_max2 index_max3 index_min1 index_min2 index_min3 "
        "index_mul1 index_mul2 index_mul3 index_put_zeros1 index_put_zeros2 index_put_zeros3 index_set1 index_set2 "
        "index_set3",
    "index.dynamic_slices":
        "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim dynamic_update_slice "
        "dynamic_update_slice_in_dim |",
    "index.embedding": "embedding |",
    "index.gather":
        "gather index_select scatter_add | gather index_select pick put_zeros scatter_zeros spread",
    "index.getitem": "getitem |",
    "index.masks":
        "argwhere masked_fill masked_scatter masked_select nonzero where | masked_fill",
    "index.nonzero_static": "nonzero_static |",
    "index.put": "index_add index_copy index_fill index_put put take take_along_dim |",
    "index.scatter_reduce": "index_reduce scatter scatter_reduce |",
    "index.taken": "| taken",
    "index.written_values": "",
    "linalg.add_products": "addbmm addmm addmv addr baddbmm |",
    "linalg.attention_kernel": "| attention attention_backward",
    "linalg.attention_masked": "| attention_masked attention_masked_backward",
    "linalg.chains": "bilinear chain_matmul cross kron matrix_power multi_dot | cross kron",
    "linalg.contract": "inner outer tensordot |",
    "linalg.distances": "cdist dist pairwise_distance pdist | distances slopes_of_distances",
    "linalg.einsum": "einsum trace |",
    "linalg.extreme_pairs": "lobpcg |",
    "linalg.factorizations":
        "cholesky cholesky_inverse cholesky_solve lu_solve lu_unpack | cholesky lu permutation",
    "linalg.few_products": "| chain1 chain2 chain3",
    "linalg.linalg_namespace": "",
    "linalg.matmul": "bmm dot linear matmul mm mv | addmm bmm dot mm mv",
    "linalg.matrix_exponential": "matrix_exp | matrix_exp",
    "linalg.matrix_norms": "",
    "linalg.older_names": "lu orgqr pinverse qr spmm svd vander |",
    "linalg.orthogonal": "geqrf ormqr | geqrf qr",
    "linalg.solving":
        "det inverse logdet slogdet triangular_solve | cofactors det inv slogdet solve solve_triangular",
    "linalg.spectral": "| eigh eigvalsh lstsq pinv svd svdvals",
    "linalg.symmetric": "| ldl ldl_solve",
    "loss.classes": "cross_entropy nll_loss | nll nll_mean",
    "loss.distribution_losses":
        "cosine_embedding_loss gaussian_nll_loss multilabel_soft_margin_loss poisson_nll_loss triplet_margin_loss |",
    "loss.elementwise_losses":
        "binary_cross_entropy binary_cross_entropy_with_logits cosine_similarity hinge_embedding_loss huber_loss "
        "kl_div l1_loss margin_ranking_loss mse_loss smooth_l1_loss soft_margin_loss | binary_cross_entropy",
    "loss.linear_classes": "linear_cross_entropy |",
    "loss.margins":
        "multi_margin_loss multilabel_margin_loss triplet_margin_with_distance_loss |",
    "loss.reduction": "",
    "loss.smooth_l1": "| huber_piece huber_slope smooth_l1_piece smooth_l1_slope",
    "loss.squared_error": "| mse_loss",
    "math.activations":
        "celu elu hardtanh leaky_relu logsigmoid mish relu6 selu silu softplus | celu_scaled elu_scaled "
        "hardtanh_between leaky_scaled logsigmoid mish silu softplus_scaled",
    "math.arithmetic":
        "abs mul neg pow reciprocal rsqrt sign sqrt square | abs add div mul neg ones_like pow reciprocal rsqrt sign "
        "sqrt square sub zeros_like",
    "math.bitwise":
        "bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor | bitwise_and "
        "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor",
    "math.blend": "addcdiv addcmul lerp | addcdiv addcmul lerp",
    "math.cast": "clone | clone to",
    "math.common_divisors": "gcd lcm | gcd",
    "math.compare":
        "clamp clamp_max clamp_min clip eq ge gt isnan le logical_and logical_not logical_or logical_xor lt maximum "
        "minimum ne relu | clamp clamp_max clamp_min eq ge gt isnan le logical_and logical_not logical_or logical_xor "
        "lt maximum minimum ne relu where",
    "math.constant": "| constant",
    "math.division":
        "div divide floor_divide fmod remainder true_divide | divisor floor_divide fmod remainder trunc_divide",
    "math.float_parts": "frexp ldexp nextafter | exponent_of mantissa_of nextafter",
    "math.floats":
        "allclose copysign equal fmax fmin heaviside isclose isfinite isinf nan_to_num signbit | copysign fmax fmin "
        "heaviside isclose isfinite isinf nan_to_num signbit",
    "math.hyperbolic": "acosh asinh atanh cosh sinh tan | acosh asinh atanh cosh sinh tan",
    "math.inverse_trigonometric": "acos asin atan atan2 | acos asin atan atan2",
    "math.logarithms":
        "exp2 hypot log10 log2 logaddexp logaddexp2 | exp2 hypot log10 log2 logaddexp logaddexp2",
    "math.piecewise":
        "glu hardshrink hardsigmoid hardswish prelu softmin softshrink softsign tanhshrink threshold | gated "
        "gated_slopes hardshrink_by hardsigmoid hardswish softshrink_by",
    "math.real_numbers":
        "angle conj conj_physical is_conj is_neg isneginf isposinf isreal positive real resolve_conj resolve_neg sgn "
        "| angle",
    "math.rounding":
        "ceil fix floor frac round trunc | ceil floor frac round round_decimals round_tens trunc",
    "math.scaled": "add rsub sub |",
    "math.special_functions":
        "deg2rad digamma erfc erfinv lgamma logit polygamma rad2deg sinc xlogy | digamma entr erfc erfinv lgamma "
        "logit polygamma xlog1py xlogy",
    "math.synonyms":
        "absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh concat concatenate ger greater greater_equal "
        "less less_equal multiply negative not_equal row_stack subtract |",
    "math.transcendental":
        "cos erf exp expm1 gelu log log1p sigmoid sin tanh | cos erf exp expm1 gelu_erf gelu_tanh log log1p sigmoid "
        "sin tanh",
    "random.draws": "| rand randn",
    "random.parameters": "| weights within_bounds",
    "random.quantile_draws":
        "| beta_quantile beta_quantile_by_a beta_quantile_by_b binomial_quantile gamma_quantile gamma_quantile_by_a "
        "poisson_quantile von_mises_draw",
    "reduce.counting": "bincount histc |",
    "reduce.covariance": "corrcoef cov |",
    "reduce.differences":
        "cumulative_trapezoid diff float_power isin trapezoid trapz vdot | sum_of_neighbours",
    "reduce.extremes": "argmax argmin max min | argmax argmin",
    "reduce.histograms": "histogram histogramdd |",
    "reduce.mapped_sums":
        "| nansum sum_of_cubes sum_of_deviations sum_of_exponentials sum_of_magnitudes sum_of_squares",
    "reduce.masked": "",
    "reduce.native_norms": "native_batch_norm native_group_norm native_layer_norm |",
    "reduce.normalization": "batch_norm group_norm normalize rms_norm | normalize_by scale_shift",
    "reduce.norms": "norm renorm | norm",
    "reduce.parts_of_a_dimension": "segment_reduce |",
    "reduce.product": "prod | prod product_of_others",
    "reduce.reductions": "amax amin mean sum | amax amin mean sum",
    "reduce.scans":
        "cummax cummin cumprod cumsum logcumsumexp | cummax cummin cumprod cumsum delay logcumsumexp recurrence",
    "reduce.slopes": "gradient |",
    "reduce.softmax":
        "layer_norm log_softmax logsumexp softmax | affine_normalize log_softmax logsumexp normalize softmax",
    "reduce.statistics":
        "aminmax nanmean nansum std std_mean var var_mean | std std_mean var var_mean",
    "reduce.truth": "all any count_nonzero | all any",
    "shape.cat": "cat stack |",
    "shape.combinations":
        "block_diag broadcast_shapes cartesian_prod combinations diagflat unravel_index |",
    "shape.diagonal": "diag diag_embed diagonal tril triu | diagonal tril triu undiagonal",
    "shape.join":
        "atleast_1d atleast_2d atleast_3d broadcast_tensors column_stack dstack hstack meshgrid vstack |",
    "shape.matrices": "adjoint |",
    "shape.memory_order": "",
    "shape.named_splits":
        "dsplit hsplit split_with_sizes unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit |",
    "shape.padding": "constant_pad_nd pad | constant_pad_nd reflected replicated unreflected",
    "shape.reorder":
        "flip fliplr flipud moveaxis movedim roll rot90 swapaxes swapdims | flip reverse roll rot90",
    "shape.repeat": "repeat repeat_interleave tile | repeat repeat_interleave",
    "shape.reshaping": "expand_as is_same_size ravel reshape_as sum_to_size t unflatten view_as |",
    "shape.slice_scatter": "select_scatter slice_scatter | overwrite slice_set",
    "shape.slices": "narrow select | select slice unslice",
    "shape.spectra": "",
    "shape.split": "chunk split tensor_split unbind |",
    "shape.strided": "as_strided as_strided_copy as_strided_scatter diagonal_scatter | as_strided",
    "shape.unfold": "| unfold",
    "shape.view":
        "broadcast_to expand flatten permute reshape squeeze transpose unsqueeze view | expand permute reshape",
    "shape.view_copies":
        "alias_copy detach detach_copy diagonal_copy expand_copy narrow_copy permute_copy select_copy slice_copy "
        "split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy "
        "view_copy |",
    "shape.view_scatter": "| view_set",
    "sort.data_dependent": "",
    "sort.quantiles":
        "median mode nanmedian nanquantile quantile | middle places_of_middle places_of_mode",
    "sort.sorting":
        "argsort bucketize kthvalue msort searchsorted sort topk | argsort searchsorted top",
    "sort.unique": "unique unique_consecutive |",
    "special.by_scipy":
        "i0 igamma igammac mvlgamma | bessel_j0 bessel_j1 bessel_y0 bessel_y1 erfcx gammainc gammaincc i0 i0e i1 i1e "
        "log_ndtr modified_bessel_k0 modified_bessel_k1 ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
        "zeta",
    "special.orthogonal_polynomials":
        "| airy_ai airy_slope chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v "
        "chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
        "legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
        "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w spherical_bessel_j0 spherical_bessel_j1",
    "special.special_namespace": "",
}  # fmt: skip
