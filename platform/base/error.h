// What went wrong, for a person and for a program.
//
// An Error carries one sentence saying what is wrong with which value and one saying what to do
// about it; an input with several faults carries all of them, so nobody mends one to meet the next.
//
// Values, no locks: thread-safe as any value is.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::base {

/// The kinds that callers act on. Each maps to one HTTP status and one exit code
/// (docs/exit-codes.md).
enum class ErrorCode {
  kInvalid,      ///< the input is wrong; sending it again unchanged fails again
  kNotFound,     ///< what was named does not exist
  kConflict,     ///< it exists already, or its state forbids the request
  kRefused,      ///< the caller may not
  kExhausted,    ///< out of room: disk, descriptors, memory, slots
  kUnavailable,  ///< the other side does not answer; trying again may help
  kTimeout,      ///< a stated bound was passed
  kInternal,     ///< a defect or an unexpected answer of the system
};

/// The stable name of a code, e.g. "not_found".
std::string_view to_string(ErrorCode code);
/// The code of a stable name; kInternal for a name from a newer peer.
ErrorCode error_code_of(std::string_view name);

/// One fault in an input: where ("tasks[1].env", or a flag), what is wrong, and the line in the
/// file it came from (0: it came from no file).
struct Fault {
  std::string field;
  std::string what;
  int line = 0;

  bool operator==(const Fault&) const = default;
};

/// What an Error is about, for a program that decides by it or makes another sentence of it: each
/// is a struct of its own that derives from this. A program never reads `what` or `advice`.
struct ErrorDetail {
  virtual ~ErrorDetail() = default;

 protected:
  ErrorDetail() = default;
  ErrorDetail(const ErrorDetail&) = default;
  ErrorDetail(ErrorDetail&&) = default;
  ErrorDetail& operator=(const ErrorDetail&) = default;
  ErrorDetail& operator=(ErrorDetail&&) = default;
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string what;
  std::string advice;
  std::vector<Fault> faults;
  std::shared_ptr<const ErrorDetail> detail;  ///< does not leave the process

  /// `what`, then each fault and the advice on lines of their own.
  std::string to_string() const;
};

/// The detail of this type, or nullptr.
template <class Detail>
const Detail* detail_of(const Error& error) {
  return dynamic_cast<const Detail*>(error.detail.get());
}

/// A kInvalid error about a user's text: "'12x' is not a time".
Error invalid_text(std::string_view text, const std::string& what);

/// "what: strerror(number)" with the code that the errno deserves (ENOSPC is kExhausted, ...).
Error system_error(std::string what, int number);

}  // namespace muster::base
