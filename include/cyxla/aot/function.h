/* Base of the C++ classes of programs compiled by `cyxla aot`, with the interface of TensorFlow's tfcompile. C++11. */
#ifndef CYXLA_AOT_FUNCTION_H
#define CYXLA_AOT_FUNCTION_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "library.h"

namespace cyxla {
namespace aot {

/* A program with memory for its arguments, variables, results and temporaries. An instance is for one thread at a time;
 * several instances may run at once. */
class Function {
 public:
  /* Memory that an instance owns. Arguments in memory of the caller are set by set_arg_data, before Run. */
  enum class AllocMode { ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS, RESULTS_PROFILES_AND_TEMPS_ONLY };

  Function(const Function &) = delete;
  Function &operator=(const Function &) = delete;

  /* Run the program: results are those of result_data afterwards. Returns false if it fails, see error_msg. */
  bool Run() {
    for (std::size_t k = 0; k < args_.size(); ++k) {
      if (args_[k] == nullptr && info_->args[k].bytes > 0) {
        return Fail(CYX_INVALID_ARGUMENT, std::string("argument ") + info_->args[k].name + " has no data");
      }
    }
    char message[CYX_AOT_MESSAGE_BYTES] = {0};
    cyx_aot_run run = run_;
    run.size = sizeof(run);
    run.temp = temp_;
    run.message = message;
    code_ = entry_(args_.data(), results_.data(), &run);
    if (code_ != CYX_OK) return Fail(code_, message);
    for (int k = 0; k < num_updates_; ++k) {
      const cyx_aot_array &argument = info_->args[updates_[2 * k]];
      if (argument.bytes > 0) {
        std::memcpy(args_[updates_[2 * k]], results_[updates_[2 * k + 1]], static_cast<std::size_t>(argument.bytes));
      }
    }
    error_.clear();
    return true;
  }

  /* Text of the last error; empty after a run that succeeded. */
  const std::string &error_msg() const { return error_; }
  /* Code of the last run, one of library.h. */
  int32_t error_code() const { return code_; }

  int num_args() const { return info_->num_args; }
  int num_results() const { return info_->num_results; }
  int arg_size(std::size_t index) const { return static_cast<int>(info_->args[index].bytes); }
  int result_size(std::size_t index) const { return static_cast<int>(info_->results[index].bytes); }

  void *arg_data(std::size_t index) { return args_[index]; }
  const void *arg_data(std::size_t index) const { return args_[index]; }
  void **args() { return args_.data(); }
  /* Read an argument from memory of the caller, which has to outlive the runs; variables are written to as well. */
  void set_arg_data(std::size_t index, const void *data) { args_[index] = const_cast<void *>(data); }

  void *result_data(std::size_t index) { return results_[index]; }
  const void *result_data(std::size_t index) const { return results_[index]; }
  void **results() { return results_.data(); }
  /* Write a result to memory of the caller. */
  void set_result_data(std::size_t index, void *data) { results_[index] = data; }

  /* Return the index of an argument or result, -1 if there is none of this name. */
  int LookupArgIndex(const std::string &name) const { return Lookup(info_->args, info_->num_args, name); }
  int LookupResultIndex(const std::string &name) const { return Lookup(info_->results, info_->num_results, name); }

  /* Threads of the library's pool; 0: one for each processor, 1: the caller's alone. */
  void set_threads(int threads) { run_.threads = threads; }
  /* Threads of the host, see cyx_aot_run. */
  void set_parallel(void (*parallel)(void *host, void (*task)(void *data, int64_t k), void *data, int64_t tasks),
                    void *host) {
    run_.parallel = parallel;
    run_.host = host;
  }
  /* Make runs end soon after *cancel is not 0. */
  void set_cancel(const volatile int32_t *cancel) { run_.cancel = cancel; }

  const cyx_aot_info &info() const { return *info_; }

 protected:
  typedef int32_t (*Entry)(const void *const *args, void *const *results, const cyx_aot_run *run);

  /* updates: pairs of the index of an argument and of the result that is its new value. */
  Function(const cyx_aot_info *info, Entry entry, AllocMode mode, const int *updates, int num_updates)
      : info_(info),
        entry_(entry),
        updates_(updates),
        num_updates_(num_updates),
        run_(),
        code_(CYX_OK),
        temp_(nullptr) {
    args_.assign(static_cast<std::size_t>(info->num_args), nullptr);
    results_.assign(static_cast<std::size_t>(info->num_results), nullptr);
    const bool owns_args = mode == AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS;
    std::size_t bytes = Round(static_cast<std::size_t>(info->temp_bytes));
    for (int k = 0; owns_args && k < info->num_args; ++k) bytes += Round(Bytes(info->args[k]));
    for (int k = 0; k < info->num_results; ++k) bytes += Round(Bytes(info->results[k]));
    memory_.reset(new char[bytes + kAlignment]());
    char *next = memory_.get() + kAlignment - 1;
    next -= reinterpret_cast<std::uintptr_t>(next) % kAlignment;
    temp_ = next;
    next += Round(static_cast<std::size_t>(info->temp_bytes));
    for (int k = 0; owns_args && k < info->num_args; next += Round(Bytes(info->args[k])), ++k) args_[k] = next;
    for (int k = 0; k < info->num_results; next += Round(Bytes(info->results[k])), ++k) results_[k] = next;
  }
  ~Function() {}

 private:
  static const std::size_t kAlignment = 64;

  static std::size_t Bytes(const cyx_aot_array &array) { return static_cast<std::size_t>(array.bytes); }
  static std::size_t Round(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  static int Lookup(const cyx_aot_array *arrays, int count, const std::string &name) {
    for (int k = 0; k < count; ++k) {
      if (name == arrays[k].name) return k;
    }
    return -1;
  }

  bool Fail(int32_t code, const std::string &text) {
    code_ = code;
    error_ = text.empty() ? "the program failed" : text;
    return false;
  }

  const cyx_aot_info *info_;
  Entry entry_;
  const int *updates_;
  int num_updates_;
  cyx_aot_run run_;
  int32_t code_;
  std::string error_;
  std::vector<void *> args_, results_;
  std::unique_ptr<char[]> memory_;
  char *temp_;
};

}  // namespace aot
}  // namespace cyxla

#endif
