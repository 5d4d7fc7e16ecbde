// A second file of the library of classes.cpp, and a custom call beside it.
#include "cyxla/call.h"
#include "cyxla/kernel_plugin.hpp"

extern "C" __attribute__((visibility("default"))) void negate(void **out, const void **in, const cyxla_call_info *info) {
  for (int64_t i = 0; i < info->input[0].size; ++i)
    static_cast<double *>(out[0])[i] = -static_cast<const double *>(in[0])[i];
}

CYXLA_REGISTER_OP("CxxNegate").Input("x: double").Output("y: double").SetShapeFn(cyxla::shape_inference::UnchangedShape);

class Negate : public cyxla::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(cyxla::OpKernelContext *c) override {
    const cyxla::Tensor x = c->input(0);
    cyxla::Tensor y;
    OP_REQUIRES_OK(c, c->allocate_output(0, x.shape(), &y));
    for (int64_t i = 0; i < x.NumElements(); ++i) y.mutable_data<double>()[i] = -x.data<double>()[i];
  }
};
CYXLA_REGISTER_KERNEL("CxxNegate", Negate).Device("CPU");

CYXLA_REGISTER_XLA_KERNEL("CxxNegate").Emit([](cyxla::XlaContext *c) { return c->EmitCall("tests.negate", negate); });

CYXLA_REGISTER_OP("CxxWords").Input("words: string").Output("y: string").SetShapeFn(cyxla::shape_inference::UnchangedShape);

CYXLA_REGISTER_OP("CxxAddAll").Input("xs: N * double").Output("y: double").Attr("N: int >= 1");

class AddAll : public cyxla::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(cyxla::OpKernelContext *c) override {
    std::vector<cyxla::Tensor> xs;
    cyxla::Tensor y;
    OP_REQUIRES_OK(c, c->input_list("xs", &xs));
    OP_REQUIRES_OK(c, c->allocate_output(0, {}, &y));
    double sum = 0;
    for (const cyxla::Tensor &x : xs) sum += x.scalar<double>();
    *y.mutable_data<double>() = sum;
  }
};
CYXLA_REGISTER_KERNEL("CxxAddAll", AddAll).Device("CPU");

class Words : public cyxla::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(cyxla::OpKernelContext *c) override {
    const cyxla::Tensor words = c->input(0);
    std::vector<std::string> reversed;
    for (int64_t i = 0; i < words.NumElements(); ++i)
      reversed.emplace_back(words.string(i).rbegin(), words.string(i).rend());
    OP_REQUIRES_OK(c, c->set_output_strings(0, words.shape(), reversed));
  }
};
CYXLA_REGISTER_KERNEL("CxxWords", Words).Device("CPU");
