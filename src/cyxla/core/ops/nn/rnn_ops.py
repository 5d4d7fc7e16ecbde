"""Recurrent cells."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR


def _block_shape(c: InferenceContext) -> None:
    """Set the outputs to the cell's size per time step; the bias vector has four times that size."""
    x, bias = c.with_rank(c.input("x"), 3), c.with_rank(c.input("b"), 1)
    for i in range(c.num_outputs):
        c.set_output(i, (x[0], x[1], c.divide(bias[0], 4)))


def _cell_shape(c: InferenceContext) -> None:
    """Give all outputs the shape of the state."""
    x, state = c.with_rank(c.input("x"), 2), c.with_rank(c.input("h_prev"), 2)
    batch = c.merge_dim(x[0], state[0])
    for i in range(c.num_outputs):
        c.set_output(i, (batch, state[1]))


def _cudnn_rnn_shape(c: InferenceContext) -> None:
    """Set the outputs of all time steps, the last states, and the reserved space of the gradient."""
    x, state = c.with_rank(c.input(0), 3), c.with_rank(c.input(1), 3)
    directions = 2 if c.attr("direction") == "bidirectional" else 1
    c.set_output(0, (x[0], x[1], c.multiply(state[2], directions)))
    c.set_output(1, state)
    c.set_output(2, state if c.attr("rnn_mode") == "lstm" else SCALAR)
    for i in range(3, c.num_outputs):
        c.set_output(i, (None,))


op("BlockLSTM",
    "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> i: T, cs: T, f: T, "
    "o: T, ci: T, co: T, h: T", "forget_bias: float = 1.0", "cell_clip: float = 3.0", "use_peephole: bool = false",
    "T: {half, float}", shape=_block_shape, doc="Run an LSTM over all time steps.",
)  # fmt: skip
op("BlockLSTMV2",
    "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> i: T, cs: T, f: T, "
    "o: T, ci: T, co: T, h: T", "cell_clip: float = 0.0", "use_peephole: bool = false", "T: {half, float}",
    shape=_block_shape, doc="Run an LSTM over all time steps, with another order of gates.",
)  # fmt: skip
op("CudnnRNN", "input: T, input_h: T, input_c: T, params: T -> output: T, output_h: T, output_c: T, reserve_space: T",
    "T: {bfloat16, half, float, double}", "rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm'",
    "input_mode: {'linear_input', 'skip_input', 'auto_select'} = 'linear_input'",
    "direction: {'unidirectional', 'bidirectional'} = 'unidirectional'", "dropout: float = 0.0", "seed: int = 0",
    "seed2: int = 0", "is_training: bool = true", stateful=True, shape=_cudnn_rnn_shape,
    doc="Run a stack of recurrent cells over all time steps.",
)  # fmt: skip
op("CudnnRNNV3",
    "input: T, input_h: T, input_c: T, params: T, sequence_lengths: int32 -> output: T, output_h: T, output_c: "
    "T, reserve_space: T, host_reserved: int8", "T: {bfloat16, half, float, double}",
    "rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm'",
    "input_mode: {'linear_input', 'skip_input', 'auto_select'} = 'linear_input'",
    "direction: {'unidirectional', 'bidirectional'} = 'unidirectional'", "dropout: float = 0.0", "seed: int = 0",
    "seed2: int = 0", "num_proj: int = 0", "is_training: bool = true", "time_major: bool = true", stateful=True,
    shape=_cudnn_rnn_shape, doc="Run a stack of recurrent cells over sequences of different lengths.",
)  # fmt: skip
op("GRUBlockCell", "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T -> r: T, u: T, c: T, h: T", "T: {float}",
    shape=_cell_shape, doc="Run one step of a GRU.",
)  # fmt: skip
op("LSTMBlockCell",
    "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> i: T, cs: T, f: T, o: T, ci: T, co: T, h: T",
    "forget_bias: float = 1.0", "cell_clip: float = 3.0", "use_peephole: bool = false", "T: {half, float}",
    shape=_cell_shape, doc="Run one step of an LSTM.",
)  # fmt: skip
