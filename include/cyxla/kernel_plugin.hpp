/* Ops and kernels in C++17, in the manner of TensorFlow: declarations by chained calls, kernels that are classes.
 *
 *     CYXLA_REGISTER_OP("Scale")
 *         .Input("x: T").Output("y: T").Attr("T: {float, double}").Attr("factor: float = 2.0")
 *         .SetShapeFn(cyxla::shape_inference::UnchangedShape);
 *
 *     template <typename T>
 *     class Scale : public cyxla::OpKernel {
 *      public:
 *       explicit Scale(cyxla::OpKernelConstruction *c) : OpKernel(c) {
 *         OP_REQUIRES_OK(c, c->GetAttr("factor", &factor_));
 *       }
 *
 *       void Compute(cyxla::OpKernelContext *c) override {
 *         const cyxla::Tensor x = c->input(0);
 *         cyxla::Tensor y;
 *         OP_REQUIRES_OK(c, c->forward_input_or_allocate_output({0}, 0, x.shape(), &y));
 *         for (int64_t i = 0; i < x.NumElements(); ++i) y.mutable_data<T>()[i] = T(factor_) * x.data<T>()[i];
 *       }
 *
 *      private:
 *       float factor_ = 0;
 *     };
 *
 *     CYXLA_REGISTER_KERNEL("Scale", Scale<float>).Device("CPU").TypeConstraint<float>("T");
 *     CYXLA_REGISTER_KERNEL("Scale", Scale<double>).Device("CPU").TypeConstraint<double>("T");
 *
 * A library consists of any number of files that include this header, and needs no other entry; it must not use
 * CYXLA_KERNEL_STAMP and CYXLA_KERNEL_PLUGIN of the interface in C. It lets no exception out: one that leaves Compute
 * or a constructor becomes an INTERNAL error, std::bad_alloc one of RESOURCE_EXHAUSTED. Errors name the line of
 * OP_REQUIRES.
 */
#ifndef CYXLA_KERNEL_PLUGIN_HPP
#define CYXLA_KERNEL_PLUGIN_HPP

#include "kernel_plugin.h"

#include <atomic>
#include <complex>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cyxla {

/* ---- errors ---- */

/* A code of cyxla_code with a message; CYXLA_FAILED says that cyxla has recorded the error. */
class Status {
 public:
  Status() = default;
  Status(int32_t code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status OK() { return Status(); }
  static Status Recorded() { return Status(CYXLA_FAILED, ""); }

  bool ok() const { return code_ == CYXLA_OK; }
  int32_t code() const { return code_; }
  const std::string &message() const { return message_; }

 private:
  int32_t code_ = CYXLA_OK;
  std::string message_;
};

namespace errors {

template <typename... Args>
Status Make(int32_t code, const Args &...args) {
  std::ostringstream text;
  (void)(text << ... << args);
  return Status(code, text.str());
}

#define CYXLA_DEFINE_ERROR_(Name, CODE)          \
  template <typename... Args>                    \
  Status Name(const Args &...args) {             \
    return ::cyxla::errors::Make(CODE, args...); \
  }
CYXLA_DEFINE_ERROR_(Cancelled, CYXLA_CANCELLED)
CYXLA_DEFINE_ERROR_(Unknown, CYXLA_UNKNOWN)
CYXLA_DEFINE_ERROR_(InvalidArgument, CYXLA_INVALID_ARGUMENT)
CYXLA_DEFINE_ERROR_(DeadlineExceeded, CYXLA_DEADLINE_EXCEEDED)
CYXLA_DEFINE_ERROR_(NotFound, CYXLA_NOT_FOUND)
CYXLA_DEFINE_ERROR_(AlreadyExists, CYXLA_ALREADY_EXISTS)
CYXLA_DEFINE_ERROR_(PermissionDenied, CYXLA_PERMISSION_DENIED)
CYXLA_DEFINE_ERROR_(ResourceExhausted, CYXLA_RESOURCE_EXHAUSTED)
CYXLA_DEFINE_ERROR_(FailedPrecondition, CYXLA_FAILED_PRECONDITION)
CYXLA_DEFINE_ERROR_(Aborted, CYXLA_ABORTED)
CYXLA_DEFINE_ERROR_(OutOfRange, CYXLA_OUT_OF_RANGE)
CYXLA_DEFINE_ERROR_(Unimplemented, CYXLA_UNIMPLEMENTED)
CYXLA_DEFINE_ERROR_(Internal, CYXLA_INTERNAL)
CYXLA_DEFINE_ERROR_(Unavailable, CYXLA_UNAVAILABLE)
CYXLA_DEFINE_ERROR_(DataLoss, CYXLA_DATA_LOSS)
#undef CYXLA_DEFINE_ERROR_

}  // namespace errors

#define OP_REQUIRES(c, condition, status)            \
  do {                                               \
    if (!(condition)) {                              \
      (c)->CtxFailure(__FILE__, __LINE__, (status)); \
      return;                                        \
    }                                                \
  } while (0)

#define OP_REQUIRES_OK(c, ...)                            \
  do {                                                    \
    (c)->At(__FILE__, __LINE__);                          \
    const ::cyxla::Status cyxla_status_ = (__VA_ARGS__);  \
    if (!cyxla_status_.ok()) {                            \
      (c)->CtxFailure(__FILE__, __LINE__, cyxla_status_); \
      return;                                             \
    }                                                     \
  } while (0)

#define OP_REQUIRES_ASYNC(c, condition, status, done) \
  do {                                                \
    if (!(condition)) {                               \
      (c)->CtxFailure(__FILE__, __LINE__, (status));  \
      (done)();                                       \
      return;                                         \
    }                                                 \
  } while (0)

#define OP_REQUIRES_OK_ASYNC(c, status, done)             \
  do {                                                    \
    (c)->At(__FILE__, __LINE__);                          \
    const ::cyxla::Status cyxla_status_ = (status);       \
    if (!cyxla_status_.ok()) {                            \
      (c)->CtxFailure(__FILE__, __LINE__, cyxla_status_); \
      (done)();                                           \
      return;                                             \
    }                                                     \
  } while (0)

/* In a function that returns a status. */
#define CYXLA_RETURN_IF_ERROR(...)                       \
  do {                                                   \
    const ::cyxla::Status cyxla_status_ = (__VA_ARGS__); \
    if (!cyxla_status_.ok()) return cyxla_status_;       \
  } while (0)

/* ---- types ---- */

template <typename T>
struct DataTypeOf;
#define CYXLA_DATA_TYPE_(type, number)       \
  template <>                                \
  struct DataTypeOf<type> {                  \
    static constexpr int32_t value = number; \
  };
CYXLA_DATA_TYPE_(float, CYXLA_DT_FLOAT)
CYXLA_DATA_TYPE_(double, CYXLA_DT_DOUBLE)
CYXLA_DATA_TYPE_(int8_t, CYXLA_DT_INT8)
CYXLA_DATA_TYPE_(int16_t, CYXLA_DT_INT16)
CYXLA_DATA_TYPE_(int32_t, CYXLA_DT_INT32)
CYXLA_DATA_TYPE_(int64_t, CYXLA_DT_INT64)
CYXLA_DATA_TYPE_(uint8_t, CYXLA_DT_UINT8)
CYXLA_DATA_TYPE_(uint16_t, CYXLA_DT_UINT16)
CYXLA_DATA_TYPE_(uint32_t, CYXLA_DT_UINT32)
CYXLA_DATA_TYPE_(uint64_t, CYXLA_DT_UINT64)
CYXLA_DATA_TYPE_(bool, CYXLA_DT_BOOL)
CYXLA_DATA_TYPE_(std::complex<float>, CYXLA_DT_COMPLEX64)
CYXLA_DATA_TYPE_(std::complex<double>, CYXLA_DT_COMPLEX128)
CYXLA_DATA_TYPE_(std::string, CYXLA_DT_STRING)
#undef CYXLA_DATA_TYPE_

/* Name of a type in declarations. */
inline const char *DataTypeName(int32_t dtype) {
  static const char *const names[] = {"invalid",    "float",  "double",    "int32",   "uint8",   "int16",
                                      "int8",       "string", "complex64", "int64",   "bool",    "qint8",
                                      "quint8",     "qint32", "bfloat16",  "qint16",  "quint16", "uint16",
                                      "complex128", "half",   "resource",  "variant", "uint32",  "uint64"};
  return dtype >= 0 && dtype < 24 ? names[dtype] : "invalid";
}

/* A type as the value of an attribute. */
struct DataType {
  int32_t number = 0;
  friend bool operator==(DataType a, DataType b) { return a.number == b.number; }
  friend bool operator!=(DataType a, DataType b) { return a.number != b.number; }
};

/* Sizes of a tensor; -1 for an unknown size, and unknown_rank() for an unknown number of them. */
class TensorShape {
 public:
  TensorShape() = default;
  TensorShape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit TensorShape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}
  TensorShape(const int64_t *dims, int32_t rank) : unknown_rank_(rank < 0) {
    if (rank > 0) dims_.assign(dims, dims + rank);
  }

  static TensorShape Unknown() { return TensorShape(nullptr, -1); }

  bool unknown_rank() const { return unknown_rank_; }
  int dims() const { return unknown_rank_ ? -1 : static_cast<int>(dims_.size()); }
  int64_t dim_size(int i) const { return dims_.at(static_cast<std::size_t>(i < 0 ? i + dims() : i)); }
  const std::vector<int64_t> &dim_sizes() const & { return dims_; }
  std::vector<int64_t> dim_sizes() && { return std::move(dims_); }
  void AddDim(int64_t size) { dims_.push_back(size); }
  void set_dim(int i, int64_t size) { dims_.at(static_cast<std::size_t>(i < 0 ? i + dims() : i)) = size; }

  bool IsFullyDefined() const {
    for (int64_t n : dims_)
      if (n < 0) return false;
    return !unknown_rank_;
  }

  int64_t num_elements() const {
    int64_t count = 1;
    for (int64_t n : dims_) count *= n;
    return count;
  }

  std::string DebugString() const {
    if (unknown_rank_) return "<unknown>";
    std::ostringstream text;
    for (std::size_t i = 0; i < dims_.size(); ++i) {
      text << (i ? "," : "[");
      if (dims_[i] < 0)
        text << "?";
      else
        text << dims_[i];
    }
    return dims_.empty() ? "[]" : text.str() + "]";
  }

  friend bool operator==(const TensorShape &a, const TensorShape &b) {
    return a.unknown_rank_ == b.unknown_rank_ && a.dims_ == b.dims_;
  }
  friend bool operator!=(const TensorShape &a, const TensorShape &b) { return !(a == b); }

 private:
  std::vector<int64_t> dims_;
  bool unknown_rank_ = false;
};

/* A view of an input, an output or a constant; it is valid as long as its context. */
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const cyxla_tensor &t) : data_(const_cast<void *>(t.data)), dtype_(t.dtype), shape_(t.dims, t.rank) {}
  Tensor(void *data, int32_t dtype, TensorShape shape) : data_(data), dtype_(dtype), shape_(std::move(shape)) {}

  int32_t dtype() const { return dtype_; }
  const TensorShape &shape() const { return shape_; }
  int dims() const { return shape_.dims(); }
  int64_t dim_size(int i) const { return shape_.dim_size(i); }
  int64_t NumElements() const { return shape_.num_elements(); }

  template <typename T>
  const T *data() const {
    static_assert(!std::is_same<T, std::string>::value, "strings are read by string(i)");
    return static_cast<const T *>(data_);
  }
  /* Of an output alone. */
  template <typename T>
  T *mutable_data() const {
    return static_cast<T *>(data_);
  }
  template <typename T>
  const T &scalar() const {
    return data<T>()[0];
  }
  /* An element of a tensor of strings. */
  std::string_view string(int64_t i) const {
    const cyxla_string &s = static_cast<const cyxla_string *>(data_)[i];
    return std::string_view(s.data, static_cast<std::size_t>(s.size));
  }
  /* An element of a tensor of handles of resources. */
  const cyxla_handle &handle(int64_t i = 0) const { return static_cast<const cyxla_handle *>(data_)[i]; }

 private:
  void *data_ = nullptr;
  int32_t dtype_ = 0;
  TensorShape shape_;
};

/* ---- attributes ---- */

namespace detail {

template <typename T>
struct AttrOf;
#define CYXLA_ATTR_OF_(type, KIND, stored, expression)          \
  template <>                                                   \
  struct AttrOf<type> {                                         \
    static constexpr int32_t kind = KIND;                       \
    static type Read(const void *values, int64_t i) {           \
      const stored &v = static_cast<const stored *>(values)[i]; \
      return expression;                                        \
    }                                                           \
  };
CYXLA_ATTR_OF_(int64_t, CYXLA_ATTR_INT, int64_t, v)
CYXLA_ATTR_OF_(int32_t, CYXLA_ATTR_INT, int64_t, static_cast<int32_t>(v))
CYXLA_ATTR_OF_(float, CYXLA_ATTR_FLOAT, double, static_cast<float>(v))
CYXLA_ATTR_OF_(double, CYXLA_ATTR_FLOAT, double, v)
CYXLA_ATTR_OF_(bool, CYXLA_ATTR_BOOL, int64_t, v != 0)
CYXLA_ATTR_OF_(DataType, CYXLA_ATTR_TYPE, int64_t, DataType{static_cast<int32_t>(v)})
CYXLA_ATTR_OF_(std::string, CYXLA_ATTR_STRING, cyxla_string, std::string(v.data, static_cast<std::size_t>(v.size)))
CYXLA_ATTR_OF_(TensorShape, CYXLA_ATTR_SHAPE, cyxla_shape, TensorShape(v.dims, v.rank))
CYXLA_ATTR_OF_(Tensor, CYXLA_ATTR_TENSOR, cyxla_tensor, Tensor(v))
#undef CYXLA_ATTR_OF_

inline Status WrongKind(const cyxla_attr *attr, const char *name, int32_t kind, bool is_list) {
  if (attr == nullptr) return errors::NotFound("the node has no attribute '", name, "'");
  return errors::InvalidArgument("the attribute '", name, "' is ", attr->is_list ? "a list of " : "",
                                 cyxla_kind_name_(attr->kind), ", not ", is_list ? "a list of " : "",
                                 cyxla_kind_name_(kind));
}

template <typename T>
Status ReadAttr(const cyxla_context *c, const char *name, T *value) {
  const cyxla_attr *attr = cyxla_find_attr(c, name);
  if (attr == nullptr || attr->is_list || attr->kind != AttrOf<T>::kind)
    return WrongKind(attr, name, AttrOf<T>::kind, false);
  *value = AttrOf<T>::Read(attr->values, 0);
  if constexpr (std::is_same<T, int32_t>::value) {
    if (*static_cast<const int64_t *>(attr->values) != *value)
      return errors::InvalidArgument("the attribute '", name, "' does not fit into 32 bits");
  }
  return Status::OK();
}

template <typename T>
Status ReadAttr(const cyxla_context *c, const char *name, std::vector<T> *values) {
  const cyxla_attr *attr = cyxla_find_attr(c, name);
  if (attr == nullptr || !attr->is_list || (attr->count && attr->kind != AttrOf<T>::kind))
    return WrongKind(attr, name, AttrOf<T>::kind, true);
  values->clear();
  for (int64_t i = 0; i < attr->count; ++i) {
    values->push_back(AttrOf<T>::Read(attr->values, i));
    if constexpr (std::is_same<T, int32_t>::value) {
      if (static_cast<const int64_t *>(attr->values)[i] != values->back())
        return errors::InvalidArgument("the attribute '", name, "' does not fit into 32 bits");
    }
  }
  return Status::OK();
}

}  // namespace detail

/* Base of all contexts: the node, and errors. */
class Context {
 public:
  explicit Context(cyxla_context *c) : c_(c) {}

  /* Value of an attribute: int64_t, int32_t, float, double, bool, DataType, std::string, TensorShape, Tensor, or a
   * std::vector of these. */
  template <typename T>
  Status GetAttr(const char *name, T *value) const {
    return detail::ReadAttr(c_, name, value);
  }
  bool HasAttr(const char *name) const { return cyxla_find_attr(c_, name) != nullptr; }

  const char *name() const { return c_->node->name; }
  const char *type_string() const { return c_->node->op; }
  int num_inputs() const { return c_->node->num_inputs; }
  int num_outputs() const { return c_->node->num_outputs; }
  int32_t input_type(int i) const { return c_->node->input_types[i]; }
  int32_t output_type(int i) const { return c_->node->output_types[i]; }
  /* Index of the first value of an argument; -1 if there is none of the name. */
  int input_index(const char *name) const { return cyxla_input_index(c_, name); }
  int output_index(const char *name) const { return cyxla_output_index(c_, name); }

  void At(const char *file, int line) { c_->file = file, c_->line = line; }
  void CtxFailure(const char *file, int line, const Status &status) {
    failed_ = true;
    At(file, line);
    if (status.code() != CYXLA_FAILED) c_->host->fail(c_, status.code(), status.message().c_str());
  }
  bool failed() const { return failed_; }

  cyxla_context *c() const { return c_; }

 protected:
  static Status Checked(int32_t code) { return code == CYXLA_OK ? Status::OK() : Status::Recorded(); }

  cyxla_context *c_;
  bool failed_ = false;
};

/* ---- shape functions ---- */

class InferenceContext : public Context {
 public:
  using Context::Context;

  TensorShape input(int i) const { return TensorShape(c_->shapes[i].dims, c_->shapes[i].rank); }
  Status set_output(int i, const TensorShape &shape) {
    return Checked(c_->host->set_shape(c_, i, shape.dims(), shape.dim_sizes().data()));
  }
  /* Get the value of an input; false if it is not known. */
  bool input_tensor(int i, Tensor *value) {
    cyxla_tensor found;
    if (c_->host->constant_input(c_, i, &found) != 1) return false;
    *value = Tensor(found);
    return true;
  }
  /* Get the shape that an input holds. */
  Status MakeShapeFromShapeTensor(int i, TensorShape *shape) {
    cyxla_shape found;
    CYXLA_RETURN_IF_ERROR(Checked(c_->host->input_as_shape(c_, i, &found)));
    *shape = TensorShape(found.dims, found.rank);
    return Status::OK();
  }

  Status WithRank(const TensorShape &shape, int rank, TensorShape *out) const {
    if (!shape.unknown_rank() && shape.dims() != rank)
      return errors::InvalidArgument("Shape must be rank ", rank, " but is rank ", shape.dims());
    *out = shape.unknown_rank() ? TensorShape(std::vector<int64_t>(static_cast<std::size_t>(rank), -1)) : shape;
    return Status::OK();
  }
  Status WithRankAtLeast(const TensorShape &shape, int rank, TensorShape *out) const {
    if (!shape.unknown_rank() && shape.dims() < rank)
      return errors::InvalidArgument("Shape must be at least rank ", rank, " but is rank ", shape.dims());
    *out = shape;
    return Status::OK();
  }
  Status Merge(int64_t a, int64_t b, int64_t *out) const {
    if (a >= 0 && b >= 0 && a != b) return errors::InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
    *out = a < 0 ? b : a;
    return Status::OK();
  }
  Status Merge(const TensorShape &a, const TensorShape &b, TensorShape *out) const {
    if (a.unknown_rank() || b.unknown_rank()) {
      *out = a.unknown_rank() ? b : a;
      return Status::OK();
    }
    if (a.dims() != b.dims())
      return errors::InvalidArgument("Shapes must be equal rank, but are ", a.dims(), " and ", b.dims());
    TensorShape merged = a;
    for (int i = 0; i < a.dims(); ++i) {
      int64_t size = -1;
      CYXLA_RETURN_IF_ERROR(Merge(a.dim_size(i), b.dim_size(i), &size));
      merged.set_dim(i, size);
    }
    *out = merged;
    return Status::OK();
  }
};

using ShapeFn = std::function<Status(InferenceContext *)>;

namespace shape_inference {

inline Status UnchangedShape(InferenceContext *c) { return c->set_output(0, c->input(0)); }
inline Status ScalarShape(InferenceContext *c) { return c->set_output(0, TensorShape()); }
inline Status UnknownShape(InferenceContext *c) {
  for (int i = 0; i < c->num_outputs(); ++i) CYXLA_RETURN_IF_ERROR(c->set_output(i, TensorShape::Unknown()));
  return Status::OK();
}

}  // namespace shape_inference

/* ---- kernels ---- */

class OpKernelConstruction : public Context {
 public:
  using Context::Context;
};

/* Base of values in the session's resource manager. A subclass has a name, which no other library uses, for example
 * static constexpr const char *kTypeName = "mylib.Counter"; */
class ResourceBase {
 public:
  virtual ~ResourceBase() = default;
};

class OpKernelContext : public Context {
 public:
  using Context::Context;

  Tensor input(int i) const { return Tensor(c_->inputs[i]); }
  Status input(const char *name, Tensor *value) const {
    const int i = input_index(name);
    if (i < 0) return errors::InvalidArgument("there is no input '", name, "'");
    *value = input(i);
    return Status::OK();
  }

  /* The values of a list, or of one input. */
  Status input_list(const char *name, std::vector<Tensor> *values) const {
    values->clear();
    for (int32_t k = 0; k < c_->node->num_input_args; ++k) {
      const cyxla_arg &arg = c_->node->input_args[k];
      if (std::strcmp(arg.name, name) != 0) continue;
      for (int32_t i = arg.start; i < arg.start + arg.count; ++i) values->push_back(input(i));
      return Status::OK();
    }
    return errors::InvalidArgument("there is no input '", name, "'");
  }

  Status allocate_output(int i, const TensorShape &shape, Tensor *output) {
    return Got(c_->host->allocate_output(c_, i, shape.dims(), shape.dim_sizes().data()), output_type_or_0(i), shape,
               output);
  }
  Status allocate_temp(int32_t dtype, const TensorShape &shape, Tensor *temp) {
    return Got(c_->host->allocate_temp(c_, dtype, shape.dims(), shape.dim_sizes().data()), dtype, shape, temp);
  }
  /* Reuse the memory of an input if nobody else needs it: returns whether that was possible. */
  bool forward_input(int i, int output_index, const TensorShape &shape, Tensor *output) {
    void *data = c_->host->forward_input(c_, i, output_index, shape.dims(), shape.dim_sizes().data());
    if (data) *output = Tensor(data, output_type_or_0(output_index), shape);
    return data != nullptr;
  }
  Status forward_input_or_allocate_output(std::initializer_list<int> candidates, int output_index,
                                          const TensorShape &shape, Tensor *output, int *forwarded = nullptr) {
    if (forwarded) *forwarded = -1;
    for (int i : candidates)
      if (forward_input(i, output_index, shape, output)) {
        if (forwarded) *forwarded = i;
        return Status::OK();
      }
    return allocate_output(output_index, shape, output);
  }
  Status set_output_strings(int i, const TensorShape &shape, const std::vector<std::string> &values) {
    if (static_cast<int64_t>(values.size()) != shape.num_elements())
      return errors::InvalidArgument(values.size(), " strings for the shape ", shape.DebugString());
    std::vector<cyxla_string> rows;
    for (const std::string &v : values) rows.push_back({v.data(), static_cast<int64_t>(v.size())});
    return Checked(c_->host->set_strings(c_, i, shape.dims(), shape.dim_sizes().data(), rows.data()));
  }
  Status set_output_handle(int i, const char *container, const char *name, const char *type) {
    return Checked(c_->host->set_handle(c_, i, container, name, type));
  }
  bool output_required(int i) { return c_->host->output_required(c_, i) == 1; }
  bool is_cancelled() { return c_->host->is_cancelled(c_) == 1; }

  /* Resources: the pointers may be used until the end of the call. */
  template <typename R>
  Status LookupResource(const char *container, const char *name, R **value) {
    void *found = nullptr;
    CYXLA_RETURN_IF_ERROR(Checked(c_->host->lookup_resource(c_, container, name, R::kTypeName, &found)));
    *value = static_cast<R *>(found);
    return Status::OK();
  }
  template <typename R>
  Status LookupOrCreateResource(const char *container, const char *name, R **value,
                                std::function<Status(R **)> create) {
    void *found = nullptr;
    CYXLA_RETURN_IF_ERROR(Checked(c_->host->lookup_or_create_resource(c_, container, name, R::kTypeName, &Create<R>,
                                                                      &create, &Destroy<R>, &found)));
    *value = static_cast<R *>(found);
    return Status::OK();
  }
  /* The session owns the value afterwards, unless an error is returned. */
  template <typename R>
  Status CreateResource(const char *container, const char *name, R *value) {
    return Checked(c_->host->create_resource(c_, container, name, R::kTypeName, value, &Destroy<R>));
  }
  template <typename R>
  Status DeleteResource(const char *container, const char *name) {
    return Checked(c_->host->delete_resource(c_, container, name, R::kTypeName));
  }

 private:
  int32_t output_type_or_0(int i) const { return i >= 0 && i < num_outputs() ? output_type(i) : 0; }

  static Status Got(void *data, int32_t dtype, const TensorShape &shape, Tensor *out) {
    if (data == nullptr) return Status::Recorded();
    *out = Tensor(data, dtype, shape);
    return Status::OK();
  }
  template <typename R>
  static int32_t Create(cyxla_context *c, void *argument, void **value);
  template <typename R>
  static void Destroy(void *value) {
    delete static_cast<R *>(value);
  }
};

class OpKernel {
 public:
  explicit OpKernel(OpKernelConstruction *c) : name_(c->name()), type_string_(c->type_string()) {}
  OpKernel(const OpKernel &) = delete;
  OpKernel &operator=(const OpKernel &) = delete;
  virtual ~OpKernel() = default;

  /* May run in several threads at once. */
  virtual void Compute(OpKernelContext *c) = 0;

  const std::string &name() const { return name_; }
  const std::string &type_string() const { return type_string_; }

 private:
  std::string name_, type_string_;
};

/* A kernel that returns at once, and calls `done` exactly once when the outputs are set, on any thread. */
class AsyncOpKernel : public OpKernel {
 public:
  using DoneCallback = std::function<void()>;
  using OpKernel::OpKernel;

  virtual void ComputeAsync(OpKernelContext *c, DoneCallback done) = 0;

 private:
  void Compute(OpKernelContext *) final {}
};

/* ---- XLA kernels ---- */

class XlaContext : public Context {
 public:
  using Context::Context;

  TensorShape input_shape(int i) const { return TensorShape(c_->shapes[i].dims, c_->shapes[i].rank); }
  /* Get the value of an input; false if it is not known. */
  bool constant_input(int i, Tensor *value) {
    cyxla_tensor found;
    if (c_->host->constant_input(c_, i, &found) != 1) return false;
    *value = Tensor(found);
    return true;
  }
  Status set_output_shape(int i, const TensorShape &shape) {
    return Checked(c_->host->set_shape(c_, i, shape.dims(), shape.dim_sizes().data()));
  }
  /* See cyxla_emit_module. */
  Status EmitModule(const std::string &text) { return Checked(c_->host->emit_module(c_, text.c_str())); }
  /* See cyxla_emit_call. */
  Status EmitCall(const char *target, cyxla_call function, const std::string &opaque = "", bool side_effect = false) {
    return Checked(
        c_->host->emit_call(c_, target, function, opaque.data(), static_cast<int64_t>(opaque.size()), side_effect));
  }
};

using EmitFn = std::function<Status(XlaContext *)>;

/* ---- registration ---- */

namespace detail {

/* Line of a registration, for errors that name no other. */
struct Site {
  const char *file = nullptr;
  int line = 0;
};

/* Call a function; return the error of an exception. */
template <typename F>
Status Guarded(const char *what, const F &function) {
  try {
    return function();
  } catch (const std::bad_alloc &) {
    return errors::ResourceExhausted(what, ": out of memory");
  } catch (const std::exception &e) {
    return errors::Internal(what, " has thrown: ", e.what());
  } catch (...) {
    return errors::Internal(what, " has thrown an exception");
  }
}

/* Call a function of a context, whose errors are recorded. */
template <typename C, typename F>
int32_t Run(C *c, const char *what, const Site &site, const F &function) {
  c->At(site.file, site.line);
  const Status status = Guarded(what, [&] { return function(c); });
  if (!status.ok()) {
    if (status.code() != CYXLA_FAILED) c->At(site.file, site.line);
    c->CtxFailure(c->c()->file, c->c()->line, status);
  }
  return c->failed() ? CYXLA_FAILED : CYXLA_OK;
}

using Factory = OpKernel *(*)(OpKernelConstruction *);

struct OpRow {
  std::string name, inputs, outputs, attrs, doc, signature;
  ShapeFn shape;
  uint32_t flags = 0;
  Site site;
};

struct KernelRow {
  std::string op, device, types, label, host_memory;
  int32_t priority = 0;
  bool is_async = false;
  Factory factory = nullptr;
  Site site;
};

struct XlaRow {
  std::string op, types, constants;
  EmitFn emit;
  Site site;
};

/* Rows of this library, with addresses that stay. */
struct Registry {
  std::deque<OpRow> ops;
  std::deque<KernelRow> kernels;
  std::deque<XlaRow> xla_kernels;
  std::vector<cyxla_op> op_table;
  std::vector<cyxla_kernel> kernel_table;
  std::vector<cyxla_xla_kernel> xla_table;
  cyxla_plugin plugin = {};
};

/* Hidden, so that every library has its own. */
__attribute__((visibility("hidden"))) inline Registry &registry() {
  static Registry rows;
  return rows;
}

inline void Append(std::string *list, const char *separator, const std::string &part) {
  *list += list->empty() ? part : separator + part;
}

inline int32_t InferShapes(cyxla_context *raw) {
  const auto *row = static_cast<const OpRow *>(raw->data);
  InferenceContext c(raw);
  return Run(&c, "the shape function", row->site, row->shape);
}

inline int32_t Emit(cyxla_context *raw) {
  const auto *row = static_cast<const XlaRow *>(raw->data);
  XlaContext c(raw);
  return Run(&c, "the XLA kernel", row->site, row->emit);
}

inline int32_t CreateKernel(cyxla_context *raw) {
  const auto *row = static_cast<const KernelRow *>(raw->data);
  OpKernelConstruction c(raw);
  return Run(&c, "the constructor", row->site, [raw, row](OpKernelConstruction *construction) {
    raw->state = row->factory(construction);
    return Status::OK();
  });
}

inline void DestroyKernel(void *kernel) { delete static_cast<OpKernel *>(kernel); }

inline int32_t Compute(cyxla_context *raw) {
  OpKernelContext c(raw);
  return Run(&c, "Compute", static_cast<const KernelRow *>(raw->data)->site, [raw](OpKernelContext *context) {
    static_cast<OpKernel *>(raw->state)->Compute(context);
    return Status::OK();
  });
}

/* One run of an asynchronous kernel, kept alive by its callback. */
struct AsyncRun {
  AsyncRun(cyxla_context *raw, cyxla_done callback) : context(raw), done(callback) {}

  void Finish(const Status &status = Status::OK(), const Site &site = Site()) {
    if (ended.exchange(true)) return;
    if (!status.ok()) context.CtxFailure(site.file, site.line, status);
    done(context.c(), context.failed() ? CYXLA_FAILED : CYXLA_OK);
  }

  OpKernelContext context;
  cyxla_done done;
  std::atomic<bool> ended{false};
};

inline void ComputeAsync(cyxla_context *raw, cyxla_done done) {
  const auto run = std::make_shared<AsyncRun>(raw, done);
  const Site site = static_cast<const KernelRow *>(raw->data)->site;
  auto *kernel = static_cast<AsyncOpKernel *>(static_cast<OpKernel *>(raw->state));
  const Status status = Guarded("ComputeAsync", [&] {
    kernel->ComputeAsync(&run->context, [run] { run->Finish(); });
    return Status::OK();
  });
  if (!status.ok()) run->Finish(status, site);
}

/* The contents of the library, once all its files have been initialised. */
inline const cyxla_plugin *Plugin() {
  Registry &r = registry();
  if (r.plugin.abi) return &r.plugin;
  for (OpRow &row : r.ops) {
    row.signature = row.inputs + " -> " + row.outputs;
    r.op_table.push_back({row.name.c_str(), row.signature.c_str(), row.attrs.c_str(), row.doc.c_str(),
                          row.shape ? InferShapes : nullptr, row.flags, &row});
  }
  for (KernelRow &row : r.kernels)
    r.kernel_table.push_back({row.op.c_str(), row.device.c_str(), row.types.c_str(), row.label.c_str(), row.priority,
                              row.is_async ? nullptr : Compute, row.is_async ? ComputeAsync : nullptr, CreateKernel,
                              DestroyKernel, row.host_memory.c_str(), &row});
  for (XlaRow &row : r.xla_kernels)
    r.xla_table.push_back({row.op.c_str(), row.types.c_str(), row.constants.c_str(), Emit, &row});
  r.plugin = {CYXLA_KERNEL_ABI,
              static_cast<int32_t>(r.op_table.size()),
              static_cast<int32_t>(r.kernel_table.size()),
              static_cast<int32_t>(r.xla_table.size()),
              sizeof(cyxla_op),
              sizeof(cyxla_kernel),
              sizeof(cyxla_xla_kernel),
              r.op_table.data(),
              r.kernel_table.data(),
              r.xla_table.data()};
  return &r.plugin;
}

/* Types of a constraint: of C++, or by number. */
template <typename... T>
std::string TypesText() {
  std::string text;
  (Append(&text, ",", DataTypeName(DataTypeOf<T>::value)), ...);
  return text;
}

}  // namespace detail

template <typename R>
int32_t OpKernelContext::Create(cyxla_context *raw, void *argument, void **value) {
  Context c(raw);
  return detail::Run(&c, "the creator of a resource", {raw->file, raw->line}, [argument, value](Context *) {
    R *made = nullptr;
    const Status status = (*static_cast<std::function<Status(R **)> *>(argument))(&made);
    *value = made;
    return status;
  });
}

/* Chain of CYXLA_REGISTER_OP. */
class OpBuilder {
 public:
  OpBuilder(const char *name, const char *file, int line) {
    row_.name = name;
    row_.site = {file, line};
  }

  OpBuilder &Input(const char *spec) { return detail::Append(&row_.inputs, ", ", spec), *this; }
  OpBuilder &Output(const char *spec) { return detail::Append(&row_.outputs, ", ", spec), *this; }
  OpBuilder &Attr(const char *spec) { return detail::Append(&row_.attrs, "; ", spec), *this; }
  OpBuilder &Doc(const char *text) { return row_.doc = text, *this; }
  OpBuilder &SetShapeFn(ShapeFn function) { return row_.shape = std::move(function), *this; }
  OpBuilder &SetIsStateful() { return row_.flags |= CYXLA_OP_STATEFUL, *this; }
  OpBuilder &SetIsCommutative() { return row_.flags |= CYXLA_OP_COMMUTATIVE, *this; }
  OpBuilder &SetIsAggregate() { return row_.flags |= CYXLA_OP_AGGREGATE, *this; }
  OpBuilder &SetAllowsUninitializedInput() { return row_.flags |= CYXLA_OP_ALLOWS_UNINITIALIZED_INPUT, *this; }

  void Register() const { detail::registry().ops.push_back(row_); }

 private:
  detail::OpRow row_;
};

/* Chain of CYXLA_REGISTER_KERNEL. */
class KernelBuilder {
 public:
  template <typename K>
  static KernelBuilder Of(const char *op, const char *file, int line) {
    KernelBuilder builder;
    builder.row_.op = op;
    builder.row_.site = {file, line};
    builder.row_.is_async = std::is_base_of<AsyncOpKernel, K>::value;
    builder.row_.factory = [](OpKernelConstruction *c) -> OpKernel * { return new K(c); };
    return builder;
  }

  KernelBuilder &Device(const char *type) { return row_.device = type, *this; }
  /* Types of C++ .. */
  template <typename... T>
  KernelBuilder &TypeConstraint(const char *attr) {
    return detail::Append(&row_.types, "; ", std::string(attr) + "=" + detail::TypesText<T...>()), *this;
  }
  /* .. or by name, "half,bfloat16". */
  KernelBuilder &TypeConstraint(const char *attr, const char *types) {
    return detail::Append(&row_.types, "; ", std::string(attr) + "=" + types), *this;
  }
  KernelBuilder &HostMemory(const char *argument) { return detail::Append(&row_.host_memory, "; ", argument), *this; }
  KernelBuilder &Label(const char *label) { return row_.label = label, *this; }
  KernelBuilder &Priority(int32_t priority) { return row_.priority = priority, *this; }

  void Register() const { detail::registry().kernels.push_back(row_); }

 private:
  detail::KernelRow row_;
};

/* Chain of CYXLA_REGISTER_XLA_KERNEL. */
class XlaKernelBuilder {
 public:
  XlaKernelBuilder(const char *op, const char *file, int line) {
    row_.op = op;
    row_.site = {file, line};
  }

  template <typename... T>
  XlaKernelBuilder &TypeConstraint(const char *attr) {
    return detail::Append(&row_.types, "; ", std::string(attr) + "=" + detail::TypesText<T...>()), *this;
  }
  XlaKernelBuilder &CompileTimeConstantInput(const char *name) {
    return detail::Append(&row_.constants, "; ", name), *this;
  }
  XlaKernelBuilder &Emit(EmitFn function) { return row_.emit = std::move(function), *this; }

  void Register() const { detail::registry().xla_kernels.push_back(row_); }

 private:
  detail::XlaRow row_;
};

namespace detail {

/* Variable that registers a chain when the library is loaded. */
struct Registrar {
  template <typename Builder>
  Registrar(const Builder &builder) {
    builder.Register();
  }
};

}  // namespace detail

#define CYXLA_CONCAT_(a, b) a##b
#define CYXLA_CONCAT(a, b) CYXLA_CONCAT_(a, b)
#define CYXLA_REGISTRAR_ \
  [[maybe_unused]] static const ::cyxla::detail::Registrar CYXLA_CONCAT(cyxla_registrar_, __COUNTER__)

#define CYXLA_REGISTER_OP(name) CYXLA_REGISTRAR_ = ::cyxla::OpBuilder(name, __FILE__, __LINE__)
#define CYXLA_REGISTER_KERNEL(op, ...) \
  CYXLA_REGISTRAR_ = ::cyxla::KernelBuilder::Of<__VA_ARGS__>(op, __FILE__, __LINE__)
#define CYXLA_REGISTER_XLA_KERNEL(op) CYXLA_REGISTRAR_ = ::cyxla::XlaKernelBuilder(op, __FILE__, __LINE__)

}  // namespace cyxla

/* The stamp and the entry of the library, once for all of its files. */
extern "C" {
__attribute__((visibility("default"), used)) inline const char cyxla_kernel_stamp[] = CYXLA_STAMP_TEXT;
__attribute__((visibility("default"), used)) inline const cyxla_plugin *cyxla_kernel_plugin(void) {
  return ::cyxla::detail::Plugin();
}
}

#endif
