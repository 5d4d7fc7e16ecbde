"""Recurrent cells."""

from cyxla.core.framework.op import op

op("BlockLSTM",
    "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> i: T, cs: T, f: T, "
    "o: T, ci: T, co: T, h: T", "forget_bias: float = 1.0", "cell_clip: float = 3.0", "use_peephole: bool = false",
    "T: {half, float}", shape=None,
)  # fmt: skip
op("BlockLSTMV2",
    "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> i: T, cs: T, f: T, "
    "o: T, ci: T, co: T, h: T", "cell_clip: float = 0.0", "use_peephole: bool = false", "T: {half, float}", shape=None,
)  # fmt: skip
op("CudnnRNN", "input: T, input_h: T, input_c: T, params: T -> output: T, output_h: T, output_c: T, reserve_space: T",
    "T: {bfloat16, half, float, double}", "rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm'",
    "input_mode: {'linear_input', 'skip_input', 'auto_select'} = 'linear_input'",
    "direction: {'unidirectional', 'bidirectional'} = 'unidirectional'", "dropout: float = 0.0", "seed: int = 0",
    "seed2: int = 0", "is_training: bool = true", stateful=True, shape=None,
)  # fmt: skip
op("CudnnRNNV3",
    "input: T, input_h: T, input_c: T, params: T, sequence_lengths: int32 -> output: T, output_h: T, output_c: "
    "T, reserve_space: T, host_reserved: int8", "T: {bfloat16, half, float, double}",
    "rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm'",
    "input_mode: {'linear_input', 'skip_input', 'auto_select'} = 'linear_input'",
    "direction: {'unidirectional', 'bidirectional'} = 'unidirectional'", "dropout: float = 0.0", "seed: int = 0",
    "seed2: int = 0", "num_proj: int = 0", "is_training: bool = true", "time_major: bool = true", stateful=True,
    shape=None,
)  # fmt: skip
op("GRUBlockCell", "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T -> r: T, u: T, c: T, h: T", "T: {float}",
    shape=None,
)  # fmt: skip
op("LSTMBlockCell",
    "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> i: T, cs: T, f: T, o: T, ci: T, co: T, " "h: T",
    "forget_bias: float = 1.0", "cell_clip: float = 3.0", "use_peephole: bool = false", "T: {half, float}", shape=None,
)  # fmt: skip
