// Ops and kernels of tests/core/framework/plugins, in C++17.
#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "cyxla/kernel_plugin.hpp"

namespace {

using cyxla::Status;
using cyxla::Tensor;
using cyxla::TensorShape;
namespace errors = cyxla::errors;

CYXLA_REGISTER_OP("CxxScale")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {float, double}")
    .Attr("factor: float = 2.0")
    .Doc("Multiply by a factor.")
    .SetShapeFn(cyxla::shape_inference::UnchangedShape);

template <typename T>
class Scale : public cyxla::OpKernel {
 public:
  explicit Scale(cyxla::OpKernelConstruction *c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("factor", &factor_));
    OP_REQUIRES(c, factor_ != 0, errors::InvalidArgument("factor is ", factor_));  // line of the constructor
  }

  void Compute(cyxla::OpKernelContext *c) override {
    const Tensor x = c->input(0);
    Tensor y;
    OP_REQUIRES_OK(c, c->forward_input_or_allocate_output({0}, 0, x.shape(), &y));
    for (int64_t i = 0; i < x.NumElements(); ++i) y.mutable_data<T>()[i] = static_cast<T>(factor_) * x.data<T>()[i];
  }

 private:
  float factor_ = 0;
};

CYXLA_REGISTER_KERNEL("CxxScale", Scale<float>).Device("CPU").TypeConstraint<float>("T");
CYXLA_REGISTER_KERNEL("CxxScale", Scale<double>).Device("CPU").TypeConstraint<double>("T");
CYXLA_REGISTER_XLA_KERNEL("CxxScale").TypeConstraint<float>("T").Emit([](cyxla::XlaContext *c) -> Status {
  float factor = 0;
  CYXLA_RETURN_IF_ERROR(c->GetAttr("factor", &factor));
  std::ostringstream dims, text;
  for (int64_t n : c->input_shape(0).dim_sizes()) dims << n << "x";
  const std::string type = "tensor<" + dims.str() + "f32>";
  text << "func.func @main(%x: " << type << ") -> " << type << " {\n %f = stablehlo.constant dense<" << std::scientific
       << factor << "> : " << type << "\n %y = stablehlo.multiply %x, %f : " << type << "\n return %y : " << type
       << "\n}";
  return c->EmitModule(text.str());
});

// Attributes of all kinds, summed up.
CYXLA_REGISTER_OP("CxxAttrs")
    .Output("y: double")
    .Attr("i: int = 3")
    .Attr("f: float = 0.5")
    .Attr("b: bool = true")
    .Attr("s: string = 'four'")
    .Attr("t: type = DT_INT64")
    .Attr("h: shape = { dim { size: 2 } dim { size: -1 } }")
    .Attr("v: tensor = { dtype: DT_FLOAT tensor_shape { dim { size: 5 } } float_val: 1 }")
    .Attr("li: list(int) = [1, 2]")
    .Attr("lf: list(float) = [1.5, -2.0]")
    .Attr("lb: list(bool) = [true, true]")
    .Attr("ls: list(string) = ['', 'xyz']")
    .Attr("lt: list(type) = [DT_FLOAT, DT_STRING]")
    .Attr("lh: list(shape) = []")
    .Attr("lv: list(tensor) = []")
    .Attr("wrong: string = ''")
    .SetShapeFn(cyxla::shape_inference::ScalarShape);

class Attrs : public cyxla::OpKernel {
 public:
  explicit Attrs(cyxla::OpKernelConstruction *c) : OpKernel(c) {
    int64_t i = 0;
    double f = 0;
    bool b = false;
    std::string s, wrong;
    cyxla::DataType t;
    TensorShape h;
    Tensor v;
    std::vector<int32_t> li;
    std::vector<float> lf;
    std::vector<bool> lb;
    std::vector<std::string> ls;
    std::vector<cyxla::DataType> lt;
    std::vector<TensorShape> lh;
    std::vector<Tensor> lv;
    OP_REQUIRES_OK(c, c->GetAttr("i", &i));
    OP_REQUIRES_OK(c, c->GetAttr("f", &f));
    OP_REQUIRES_OK(c, c->GetAttr("b", &b));
    OP_REQUIRES_OK(c, c->GetAttr("s", &s));
    OP_REQUIRES_OK(c, c->GetAttr("t", &t));
    OP_REQUIRES_OK(c, c->GetAttr("h", &h));
    OP_REQUIRES_OK(c, c->GetAttr("v", &v));
    OP_REQUIRES_OK(c, c->GetAttr("li", &li));
    OP_REQUIRES_OK(c, c->GetAttr("lf", &lf));
    OP_REQUIRES_OK(c, c->GetAttr("lb", &lb));
    OP_REQUIRES_OK(c, c->GetAttr("ls", &ls));
    OP_REQUIRES_OK(c, c->GetAttr("lt", &lt));
    OP_REQUIRES_OK(c, c->GetAttr("lh", &lh));
    OP_REQUIRES_OK(c, c->GetAttr("lv", &lv));
    OP_REQUIRES_OK(c, c->GetAttr("wrong", &wrong));
    if (!wrong.empty()) OP_REQUIRES_OK(c, c->GetAttr(wrong.c_str(), &i));  // line of a wrong kind
    sum_ = static_cast<double>(i) + f + b + static_cast<double>(s.size()) + t.number + h.dims() + v.scalar<float>() +
           static_cast<double>(li.size() + lb.size() + ls[1].size() + lh.size() + lv.size()) + lf[1] + lt[1].number;
  }

  void Compute(cyxla::OpKernelContext *c) override {
    Tensor y;
    OP_REQUIRES_OK(c, c->allocate_output(0, {}, &y));
    *y.mutable_data<double>() = sum_;
  }

 private:
  double sum_ = 0;
};
CYXLA_REGISTER_KERNEL("CxxAttrs", Attrs).Device("CPU");

// Errors of all sorts.
CYXLA_REGISTER_OP("CxxThrow").Output("y: float").Attr("mode: int").SetIsStateful();

class Throw : public cyxla::OpKernel {
 public:
  explicit Throw(cyxla::OpKernelConstruction *c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("mode", &mode_));
    if (mode_ == 0) throw std::runtime_error("in the constructor");
  }

  void Compute(cyxla::OpKernelContext *c) override {
    if (mode_ == 1) throw std::runtime_error("in Compute");
    if (mode_ == 2) throw std::bad_alloc();
    if (mode_ == 3) throw 3;
    OP_REQUIRES(c, mode_ != 4, errors::OutOfRange("mode ", mode_));  // line of OP_REQUIRES
    Tensor y;
    OP_REQUIRES_OK(c, c->allocate_output(9, {}, &y));  // line of OP_REQUIRES_OK
  }

 private:
  int64_t mode_ = 0;
};
CYXLA_REGISTER_KERNEL("CxxThrow", Throw).Device("CPU");  // line of the registration

// A shape function with checks.
CYXLA_REGISTER_OP("CxxMatch")  // line of the op
    .Input("a: float")
    .Input("b: float")
    .Output("y: float")
    .SetShapeFn([](cyxla::InferenceContext *c) -> Status {
      TensorShape a, y;
      CYXLA_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &a));
      CYXLA_RETURN_IF_ERROR(c->Merge(a, c->input(1), &y));
      if (y.dim_size(0) == 13) throw std::runtime_error("thirteen");
      return c->set_output(0, y);
    });

class Match : public cyxla::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(cyxla::OpKernelContext *c) override {
    Tensor a, b, y;
    OP_REQUIRES_OK(c, c->input("a", &a));
    OP_REQUIRES_OK(c, c->input("b", &b));
    OP_REQUIRES_OK(c, c->allocate_output(0, a.shape(), &y));
    for (int64_t i = 0; i < a.NumElements(); ++i)
      y.mutable_data<float>()[i] = a.data<float>()[i] + b.data<float>()[i];
  }
};
CYXLA_REGISTER_KERNEL("CxxMatch", Match).Device("CPU");

// An asynchronous kernel.
CYXLA_REGISTER_OP("CxxLater").Input("x: int64").Output("y: int64").Attr("mode: int = 0");

class Later : public cyxla::AsyncOpKernel {
 public:
  explicit Later(cyxla::OpKernelConstruction *c) : AsyncOpKernel(c) { OP_REQUIRES_OK(c, c->GetAttr("mode", &mode_)); }

  void ComputeAsync(cyxla::OpKernelContext *c, DoneCallback done) override {
    if (mode_ == 1) throw std::runtime_error("in ComputeAsync");
    OP_REQUIRES_ASYNC(c, mode_ != 2, errors::Unavailable("not now"), done);  // line of OP_REQUIRES_ASYNC
    std::thread([c, done] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      Tensor y;
      OP_REQUIRES_OK_ASYNC(c, c->allocate_output(0, c->input(0).shape(), &y), done);
      for (int64_t i = 0; i < y.NumElements(); ++i) y.mutable_data<int64_t>()[i] = -c->input(0).data<int64_t>()[i];
      done();
      done();  // has no effect
    }).detach();
  }

 private:
  int64_t mode_ = 0;
};
CYXLA_REGISTER_KERNEL("CxxLater", Later).Device("CPU");

// A resource.
std::atomic<int64_t> counters{0};

struct Counter : cyxla::ResourceBase {
  static constexpr const char *kTypeName = "tests.Counter";
  Counter() { ++counters; }
  ~Counter() override { --counters; }
  std::atomic<int64_t> value{0};
};

CYXLA_REGISTER_OP("CxxCount").Output("y: int64").Output("alive: int64").Attr("mode: string = 'add'").SetIsStateful();

class Count : public cyxla::OpKernel {
 public:
  explicit Count(cyxla::OpKernelConstruction *c) : OpKernel(c) { OP_REQUIRES_OK(c, c->GetAttr("mode", &mode_)); }

  void Compute(cyxla::OpKernelContext *c) override {
    Tensor y, alive;
    OP_REQUIRES_OK(c, c->allocate_output(0, {}, &y));
    OP_REQUIRES_OK(c, c->allocate_output(1, {}, &alive));
    *y.mutable_data<int64_t>() = -1;
    Counter *counter = nullptr;
    if (mode_ == "delete") OP_REQUIRES_OK(c, c->DeleteResource<Counter>("", "count"));
    if (mode_ == "lookup") OP_REQUIRES_OK(c, c->LookupResource<Counter>("", "count", &counter));
    if (mode_ == "add")
      OP_REQUIRES_OK(c, c->LookupOrCreateResource<Counter>("", "count", &counter, [](Counter **made) {
        *made = new Counter;
        return Status::OK();
      }));
    if (mode_ == "throw")
      OP_REQUIRES_OK(c, c->LookupOrCreateResource<Counter>("", "thrown", &counter,
                                                           [](Counter **) -> Status { throw std::runtime_error("no"); }));
    if (counter) *y.mutable_data<int64_t>() = ++counter->value;
    *alive.mutable_data<int64_t>() = counters;
  }

 private:
  std::string mode_;
};
CYXLA_REGISTER_KERNEL("CxxCount", Count).Device("CPU");

}  // namespace
