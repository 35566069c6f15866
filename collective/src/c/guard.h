// The common part of the functions of the C interface: catches exceptions, turns an Error into its
// code, and stores the message for muster_last_error().
//
// Thread-safety: the last error belongs to the calling thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "muster/collective.h"
#include "muster/collective/result.h"
#include "muster/collective/types.h"

namespace muster::collective::c {

/// Stores `error` as the last error of this thread and returns its code. If there is no memory for
/// the message, a fixed message is stored instead.
int fail(const Error& error) noexcept;

/// The error of a null argument: "the communicator is null".
int fail_null(const char* what) noexcept;

inline int finish(const Status& status) noexcept {
  return status ? MUSTER_OK : fail(status.error());
}

/// Stores the exception that is being handled, and returns its code.
int fail_with_current_exception() noexcept;

/// Runs `body`, which returns a code, and catches every exception.
template <typename Body>
int guarded(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return fail_with_current_exception();
  }
}

/// The caller's struct, completed by `defaults`. The struct may be that of an older or newer
/// library: missing fields keep their default, unknown fields are ignored. Null: all defaults.
/// `what` names the struct in messages; `beginning` is the macro that initialises it.
template <typename T>
Result<T> whole(const T* given, T defaults, const char* what, const char* beginning) {
  if (given == nullptr) return defaults;
  if (given->struct_size < sizeof(given->struct_size)) {
    return Error{ErrorCode::kBadArgument, "the " + std::string(what) + " has no struct_size",
                 "begin with " + std::string(beginning)};
  }
  std::memcpy(&defaults, given, std::min(given->struct_size, sizeof(T)));
  return defaults;
}

/// The enums of C++ from the numbers of C. An invalid number becomes 0, which is invalid too and is
/// refused by later checks; a cast could turn it into a valid one.
inline DataType type_of(int type) {
  return type < 0 || type > 255 ? DataType{} : static_cast<DataType>(type);
}
inline Reduction reduction_of(int op, double prescale, double postscale) {
  return {op < 0 || op > 255 ? ReduceOp{} : static_cast<ReduceOp>(op), prescale, postscale};
}

/// Empty for null.
inline std::string text_of(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace muster::collective::c
