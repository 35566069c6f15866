// What every function of the C interface does around the C++ call behind it: keeps exceptions in,
// turns an Error into its number, and leaves the words for muster_last_error().
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

/// Keeps `error` as the last of this thread, and returns its number. Where even the memory for its
/// words is missing, a shorter one stands in.
int fail(const Error& error) noexcept;

/// A null where there must be something: "the communicator is null".
int fail_null(const char* what) noexcept;

inline int finish(const Status& status) noexcept {
  return status ? MUSTER_OK : fail(status.error());
}

/// The outcome of an exception that is being handled.
int fail_with_current_exception() noexcept;

/// Runs `body`, which returns a code, and lets no exception out.
template <typename Body>
int guarded(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return fail_with_current_exception();
  }
}

/// What the caller's struct says, over `defaults`. It may be of an older or a newer library: what
/// it lacks keeps its default, what this library does not know is not read. Null is nothing but
/// defaults. `what` is "options"; `beginning` the macro that it should have begun with.
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

/// The enums of C++ from the numbers of C. A number that is none becomes 0, which is none either,
/// and is refused further down like any other; a cast could make it one that is.
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
