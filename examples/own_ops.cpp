// An op of one's own: exponential moving averages of the rows of a matrix. See own_ops.py.
#include <cyxla/kernel_plugin.hpp>

#include <iomanip>
#include <sstream>
#include <string>

using cyxla::Status;
using cyxla::Tensor;
using cyxla::TensorShape;
namespace errors = cyxla::errors;

CYXLA_REGISTER_OP("MovingAverage")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {float, double}")
    .Attr("decay: float = 0.9")
    .Doc("Exponential moving average along the last dimension.")
    .SetShapeFn([](cyxla::InferenceContext *c) -> Status {
      TensorShape x;
      CYXLA_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &x));
      return c->set_output(0, x);
    });

// The kernel of eager calls and of graphs that are not compiled.
template <typename T>
class MovingAverage : public cyxla::OpKernel {
 public:
  explicit MovingAverage(cyxla::OpKernelConstruction *c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("decay", &decay_));
    OP_REQUIRES(c, decay_ >= 0 && decay_ < 1, errors::InvalidArgument("decay must be in [0, 1), but is ", decay_));
  }

  void Compute(cyxla::OpKernelContext *c) override {
    const Tensor x = c->input(0);
    Tensor y;
    OP_REQUIRES_OK(c, c->forward_input_or_allocate_output({0}, 0, x.shape(), &y));
    const T *from = x.data<T>();
    T *to = y.mutable_data<T>();
    const T decay = static_cast<T>(decay_);
    for (int64_t row = 0, k = 0; row < x.dim_size(0); ++row) {
      T average = 0;
      for (int64_t i = 0; i < x.dim_size(1); ++i, ++k) to[k] = average = decay * average + (1 - decay) * from[k];
    }
  }

 private:
  float decay_ = 0;
};

CYXLA_REGISTER_KERNEL("MovingAverage", MovingAverage<float>).Device("CPU").TypeConstraint<float>("T");
CYXLA_REGISTER_KERNEL("MovingAverage", MovingAverage<double>).Device("CPU").TypeConstraint<double>("T");

// Compiled graphs call this function, with the decay as text.
static void moving_average(void **out, const void **in, const cyxla_call_info *info) {
  const float decay = std::stof(info->opaque);
  const int64_t rows = info->input[0].dims[0], columns = info->input[0].dims[1];
  for (int64_t row = 0, k = 0; row < rows; ++row) {
    float average = 0;
    for (int64_t i = 0; i < columns; ++i, ++k)
      static_cast<float *>(out[0])[k] = average = decay * average + (1 - decay) * static_cast<const float *>(in[0])[k];
  }
}

CYXLA_REGISTER_XLA_KERNEL("MovingAverage").TypeConstraint<float>("T").Emit([](cyxla::XlaContext *c) -> Status {
  float decay = 0;
  CYXLA_RETURN_IF_ERROR(c->GetAttr("decay", &decay));
  std::ostringstream text;
  text << std::setprecision(9) << decay;
  return c->EmitCall("examples.moving_average", moving_average, text.str());
});
